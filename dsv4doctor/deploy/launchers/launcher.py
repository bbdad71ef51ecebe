"""What a launcher can do with one role: read it, change its launch, and say how to put it back."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Protocol

from dsv4doctor.deploy.document import Role
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.shell import HostShell
from dsv4doctor.errors import DoctorError


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleBaseline:
    """What a role was before anything was changed; not running is a baseline too."""

    role: str
    launch: Launch
    was_running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippets:
    """Shell text for one role, to be used behind the host library with `$S` set.

    `alive` is a condition, `log` prints the log of the present launch, `halt` stops what runs,
    `stop` takes the experiment away, `restore` brings the baseline back and does nothing where it
    runs already.
    """

    alive: str
    log: str
    halt: str
    stop: str
    restore: str


class Launcher(Protocol):
    """One way in which processes are started and stopped."""

    def read(self, role: Role, shell: HostShell) -> Launch | None:
        """The launch that runs now; None when none does.

        Raises:
            DoctorError: if the host knows no such container or unit.
        """
        ...

    def record(self, role: Role, shell: HostShell, baseline: RoleBaseline) -> None:
        """Keep on the host what restoring needs.

        Raises:
            DoctorError: if nothing runs that could be put back, or its flags cannot be changed.
        """
        ...

    def start(self, role: Role, shell: HostShell, baseline: RoleBaseline, launch: Launch) -> None:
        """Put `launch` in force; returns when it was started, ready or not."""
        ...

    def snippets(self, role: Role, baseline: RoleBaseline) -> Snippets:
        """What the host itself runs to look after the role, without us."""
        ...


def role_folder(role: Role) -> str:
    """The role's own folder, as shell text."""
    return f'"$S"/{shlex.quote(role.name)}'


def refuse_shell_string(role: Role, launch: Launch) -> None:
    """Flags cannot be changed inside one string that a shell takes apart.

    Raises:
        DoctorError: naming the role.
    """
    program = launch.argv[0].rpartition("/")[2] if launch.argv else ""
    if program in {"sh", "bash", "dash", "zsh"} and "-c" in launch.argv[:3]:
        raise DoctorError(
            f"role {role.name} is started by `{program} -c` with one long string",
            "start it with an argument list (exec form), so that single flags can be changed",
        )
