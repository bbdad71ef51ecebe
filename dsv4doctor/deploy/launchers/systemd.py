"""Launcher `systemd`: a drop-in under /run, so that nothing permanent is touched.

A reboot alone takes the drop-in away. The baseline is the unit as it is without it.
"""

from __future__ import annotations

import re
import shlex

from dsv4doctor.deploy.document import Role
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.launchers.launcher import (
    RoleBaseline,
    Snippets,
    refuse_shell_string,
    role_folder,
)
from dsv4doctor.deploy.launchers.processes import read_process
from dsv4doctor.deploy.shell import HostShell
from dsv4doctor.errors import DoctorError

RUNTIME_FOLDER = "/run/systemd/system"
DROP_IN = "50-dsv4doctor.conf"
_EXEC_PATH = re.compile(r"path=(\S+)")


class SystemdLauncher:
    def read(self, role: Role, shell: HostShell) -> Launch | None:
        unit = _unit(role)
        shown = shell.do(
            f"mkdir -p {role_folder(role)} && "
            f"systemctl show {unit} -p MainPID -p LoadState -p ExecStart",
            f"reading unit {role.unit}",
        ).text
        facts = dict(line.partition("=")[::2] for line in shown.splitlines())
        if facts.get("LoadState") != "loaded":
            raise DoctorError(
                f"{shell.name}: unit {role.unit} is {facts.get('LoadState') or 'unknown'}",
                "give the name that `systemctl status` shows",
            )
        pid = facts.get("MainPID", "0")
        launch = read_process(shell, pid) if pid != "0" else None
        if launch is None or launch.argv[0].startswith("/"):
            return launch
        path = _EXEC_PATH.search(facts.get("ExecStart", ""))
        argv = (path[1], *launch.argv[1:]) if path else launch.argv
        return Launch(argv=argv, environment=launch.environment, workdir=launch.workdir)

    def record(self, role: Role, shell: HostShell, baseline: RoleBaseline) -> None:
        if not baseline.was_running:
            raise DoctorError(
                f"{shell.name}: unit {role.unit} does not run",
                f"start it first (systemctl start {role.unit}): its launch is the baseline",
            )
        refuse_shell_string(role, baseline.launch)

    def start(self, role: Role, shell: HostShell, baseline: RoleBaseline, launch: Launch) -> None:
        path = _drop_in_path(role)
        if launch == baseline.launch:
            shell.change(f"rm -f {shlex.quote(path)}", f"removing {path}")
        else:
            shell.put({path: drop_in(baseline.launch, launch)})
        shell.change(
            f"systemctl daemon-reload && date +%s >{role_folder(role)}/since && "
            f"systemctl restart {_unit(role)}",
            f"restarting {role.unit}",
            timeout_s=role.stop_timeout_s + role.ready.timeout_s,
        )

    def snippets(self, role: Role, baseline: RoleBaseline) -> Snippets:
        unit, folder, path = _unit(role), role_folder(role), shlex.quote(_drop_in_path(role))
        return Snippets(
            alive=f'case "$(systemctl is-active {unit})" in '
            "active|activating|reloading) true ;; *) false ;; esac",
            log=f'journalctl -u {unit} --since "@$(cat {folder}/since)" -o cat --no-pager',
            halt=f"systemctl stop {unit}",
            stop=":",
            restore=f"{{ if [ -e {path} ]; then rm -f {path} && systemctl daemon-reload && "
            f"date +%s >{folder}/since && systemctl restart {unit}; "
            f"else systemctl start {unit}; fi; }}",
        )


def drop_in(baseline: Launch, launch: Launch) -> str:
    """The unit's drop-in: the changed command line, variables added and taken out."""
    lines = ["# Written by dsv4doctor for an experiment; gone at the next boot.", "[Service]"]
    if launch.argv != baseline.argv:
        lines += ["ExecStart=", f"ExecStart={' '.join(map(_exec_word, launch.argv))}"]
    for name, value in launch.environment.items():
        if baseline.environment.get(name) != value:
            lines.append(f"Environment={_quoted(f'{name}={value}')}")
    lines += [
        f"UnsetEnvironment={name}"
        for name in baseline.environment
        if name not in launch.environment
    ]
    return "\n".join(lines) + "\n"


def _exec_word(word: str) -> str:
    """A word of ExecStart: `$` would be expanded there, unlike in Environment."""
    return _quoted(word).replace("$", "$$")


def _quoted(text: str) -> str:
    """Quoted as systemd.syntax(7) and systemd.unit(5) want it: C escapes, and `%%` for `%`."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'


def _unit(role: Role) -> str:
    return shlex.quote(_full_name(role))


def _full_name(role: Role) -> str:
    name = role.unit or ""
    return name if "." in name else f"{name}.service"


def _drop_in_path(role: Role) -> str:
    return f"{RUNTIME_FOLDER}/{_full_name(role)}.d/{DROP_IN}"


LAUNCHER = SystemdLauncher()
