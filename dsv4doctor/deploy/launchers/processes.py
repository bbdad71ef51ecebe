"""What the kernel says of a process on a host: its command line, environment and folder."""

from __future__ import annotations

import os

from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.shell import HostShell


def read_process(shell: HostShell, pid: str) -> Launch | None:
    """The launch of process `pid`; None where it is gone.

    Raises:
        HostError: if it may not be read: it belongs to another user.
    """
    command_line = shell.run(f"cat /proc/{pid}/cmdline").stdout
    if not command_line:
        return None
    environment = shell.do(f"cat /proc/{pid}/environ", f"reading process {pid}").stdout
    workdir = os.fsdecode(shell.run(f"readlink /proc/{pid}/cwd").stdout).rstrip("\n")
    pairs = (os.fsdecode(word).partition("=") for word in environment.split(b"\0") if word)
    return Launch(
        argv=tuple(os.fsdecode(word) for word in command_line.split(b"\0")[:-1]),
        environment={name: value for name, _, value in pairs},
        workdir=workdir or None,
    )
