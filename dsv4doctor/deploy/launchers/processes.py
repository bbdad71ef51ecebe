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
    said = shell.do(
        f'cd "$TMPDIR" && cat /proc/{pid}/cmdline >words && [ -s words ] || exit 0\n'
        f"cat /proc/{pid}/environ >pairs && readlink /proc/{pid}/cwd >folder || exit 1\n"
        "echo $(wc -c <words) $(wc -c <pairs); cat words pairs folder",
        f"reading process {pid}",
    ).stdout
    if not said:
        return None
    head, _, rest = said.partition(b"\n")
    words, pairs_end = (int(size) for size in head.split())
    pairs_end += words
    workdir = os.fsdecode(rest[pairs_end:]).rstrip("\n")
    environment = (
        os.fsdecode(word).partition("=") for word in rest[words:pairs_end].split(b"\0") if word
    )
    return Launch(
        argv=tuple(os.fsdecode(word) for word in rest[:words].split(b"\0")[:-1]),
        environment={name: value for name, _, value in environment},
        workdir=workdir or None,
    )
