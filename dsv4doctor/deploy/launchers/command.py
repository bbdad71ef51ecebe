"""Launcher `command`: a command line started detached, in a session and with a log of its own.

The process that runs is found by our own note of it, else as the one that listens on the role's
port. Its command line, environment and folder are the baseline.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from dsv4doctor.deploy.document import Role
from dsv4doctor.deploy.launch import Launch, start_script
from dsv4doctor.deploy.launchers.launcher import (
    RoleBaseline,
    Snippets,
    refuse_shell_string,
    role_folder,
)
from dsv4doctor.deploy.launchers.processes import read_process
from dsv4doctor.deploy.shell import HostShell
from dsv4doctor.errors import UsageError

DEFAULT_PORT = 80


class CommandLauncher:
    def read(self, role: Role, shell: HostShell) -> Launch | None:
        port = urlsplit(role.url).port or DEFAULT_PORT
        folder = role_folder(role)
        found = shell.do(
            f"mkdir -p {folder} || exit 1\n"
            f"if ! is_alive {folder}/pid; then\n"
            f'  pid=$(listener_of {port}); [ -n "$pid" ] || exit 0\n'
            f'  note_process {folder}/pid "$pid" && echo baseline >{folder}/running\n'
            f"fi\ncut -d' ' -f1 {folder}/pid",
            f"looking for {role.name}",
        ).text.strip()
        return read_process(shell, found) if found else None

    def record(self, role: Role, shell: HostShell, baseline: RoleBaseline) -> None:
        if not baseline.launch.argv:
            raise UsageError(
                f"role {role.name}: nothing listens at {role.url} and the file has no argv",
                "start it, or give argv in the deployment file",
            )
        refuse_shell_string(role, baseline.launch)
        shell.put({f"{shell.folder}/{role.name}/baseline.sh": start_script(baseline.launch)})

    def start(self, role: Role, shell: HostShell, baseline: RoleBaseline, launch: Launch) -> None:
        is_baseline = launch == baseline.launch
        name = "baseline" if is_baseline else "arm"
        if not is_baseline:
            shell.put({f"{shell.folder}/{role.name}/arm.sh": start_script(launch)})
        folder = role_folder(role)
        shell.change(
            f"stop_process {folder}/pid {role.stop_timeout_s:.0f} && "
            f"echo {name} >{folder}/running && {_start(role, name, is_whole=launch.is_whole)}",
            f"starting {role.name}",
            timeout_s=role.stop_timeout_s + 60,
        )

    def snippets(self, role: Role, baseline: RoleBaseline) -> Snippets:
        folder = role_folder(role)
        stop = f"stop_process {folder}/pid {role.stop_timeout_s:.0f}"
        alive = f"is_alive {folder}/pid"
        start = _start(role, "baseline", is_whole=baseline.launch.is_whole)
        return Snippets(
            alive=alive,
            log=f"cat {folder}/log",
            halt=stop,
            stop=f'if [ "$(cat {folder}/running 2>/dev/null)" = arm ]; then {stop}; fi',
            restore=f"{{ {alive} || {{ echo baseline >{folder}/running && {start}; }}; }}"
            if baseline.was_running
            else stop,
        )


def _start(role: Role, name: str, *, is_whole: bool) -> str:
    folder = role_folder(role)
    environment = "whole" if is_whole else "added"
    return f"start_process {folder}/pid {folder}/{name}.sh {folder}/log {environment}"


LAUNCHER = CommandLauncher()
