"""What we keep on a host while it is under experiment: lock, restore script, heartbeat, deadman.

    FOLDER/lock/           run, owner, since: made by mkdir, so only one experiment gets it
    FOLDER/restore.sh      puts every role of this host back; for us, the deadman, and a person
    FOLDER/heartbeat       changes while we live
    FOLDER/restored        what the last restoring ended in

The lock goes only when the restore script has succeeded: a host that could not be put back stays
marked.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from dsv4doctor.deploy.document import Role
from dsv4doctor.deploy.launchers.launcher import Snippets
from dsv4doctor.deploy.shell import HostShell, data_file
from dsv4doctor.errors import DoctorError, UsageError

# What restoring may take beyond the time-outs of its roles.
RESTORE_MARGIN_S = 60.0

_RESTORE = """#!/bin/sh
# Written by dsv4doctor: puts deployment {deployment} on this host back to its baseline.
# By hand: sh {path}
umask 077
S={folder}
by=${{1:-hand}}
. "$S/host.sh"
tries=0
while ! mkdir "$S/restoring" 2>/dev/null; do
  # Somebody else is at it, or died at it.
  if is_alive "$S/restoring/pid"; then tries=0; else tries=$((tries + 1)); fi
  [ "$tries" -lt 15 ] || rm -rf "$S/restoring"
  nap
done
note_process "$S/restoring/pid" "$$"
trap 'rm -rf "$S/restoring"' EXIT
trap 'exit 1' HUP INT TERM
failed=
"""

_RESTORE_END = """
if [ -n "$failed" ]; then
  echo "not restored, by $by: $failed" >"$S/restored"
  cat "$S/restored" >&2
  exit 1
fi
echo "restored by $by at $(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$S/restored"
rm -rf "$S/lock"
"""


class HostHeld(DoctorError):
    """The host is under experiment already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleKept:
    """A role with its shell text."""

    role: Role
    snippets: Snippets
    was_running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus:
    """What a heartbeat brought back: whether the lock is still ours, and the deadman alive."""

    is_held: bool
    has_deadman: bool
    restored: str


def restore_script(deployment: str, folder: str, roles: Sequence[RoleKept]) -> str:
    """The script that puts `roles` (in the order of their start) back, each as it was."""
    quoted = shlex.quote(folder)
    path = shlex.quote(f"{folder}/restore.sh")
    lines = [_RESTORE.format(deployment=shlex.quote(deployment), folder=quoted, path=path)]
    for kept in reversed(roles):
        lines.append(f'{kept.snippets.stop} || failed="$failed stopping {kept.role.name};"')
    for kept in roles:
        lines.append(f'{kept.snippets.restore} || failed="$failed starting {kept.role.name};"')
        if kept.was_running and kept.role.ready.log_line:
            lines.append(_wait(kept))
    return "\n".join(lines) + _RESTORE_END


def _wait(kept: RoleKept) -> str:
    line = shlex.quote(kept.role.ready.log_line)
    check = f"{{ {kept.snippets.log}; }} 2>/dev/null | grep -qF -- {line}"
    # A role that was left alone has an old log, or none that we know of: it need only be alive.
    return (
        f'[ ! -e "$S"/{shlex.quote(kept.role.name)}/touched ] || '
        f"wait_until {kept.role.ready.timeout_s:.0f} {shlex.quote(kept.snippets.alive)} "
        f'{shlex.quote(check)} || failed="$failed {kept.role.name} not ready;"'
    )


class Keeper:
    """The state of one host; `run` names the experiment that holds it."""

    def __init__(self, shell: HostShell, run: str, owner: str) -> None:
        self._shell = shell
        self._run = run
        self._owner = owner
        self._beats = 0
        shell.holder = run

    def take(self) -> bool:
        """Mark the host as ours. True where this run held it already (a run that is resumed).

        Raises:
            HostHeld: naming the run that holds it, and how to put it back by hand.
            UsageError: if another host of this run is this very one.
        """
        holder = self._shell.do(
            'mkdir -p "$S" || exit 1\n'
            'if mkdir "$S/lock" 2>/dev/null; then\n'
            '  rm -f "$S/restore.sh" "$S/restored" "$S/stop.sh" "$S"/*/touched\n'
            f'  printf "%s" {shlex.quote(self._owner)} >"$S/lock/owner" && '
            f'printf "%s" {shlex.quote(self._shell.name)} >"$S/lock/host" && '
            f'date -u +%Y-%m-%dT%H:%M:%SZ >"$S/lock/since" && '
            f'printf "%s" {shlex.quote(self._run)} >"$S/lock/run" || '
            # Shells tell a full disk in words of their own ("I/O error").
            '{ rm -rf "$S/lock"; echo "cannot write to $S, is the disk full? '
            '$(df -P "$S" | tail -n 1)" >&2; exit 1; }\n'
            'else cd "$S/lock"; for each in run host owner since; do\n'
            '  cat "$each" 2>/dev/null; echo; done; fi',
            "marking it as under experiment",
        ).text
        if not holder:
            return False
        run, host, owner, since = holder.split("\n")[:4]
        if run == self._run and host == self._shell.name:
            return True
        if run == self._run:
            raise UsageError(
                f"hosts {host} and {self._shell.name} are one machine with one folder",
                "name it once, or give each a state_dir of its own",
            )
        said = " since ".join(line for line in (owner, since) if line)
        raise HostHeld(
            f"{self._shell.name} is under experiment already, by {said or 'an unknown run'}",
            f"if that run is dead: dsv4doctor ab restore RUN_DIR, or there: {self.by_hand()}",
        )

    def install(self, script: str) -> None:
        """Put the restore script, the library and the deadman on the host."""
        folder = self._shell.folder
        self._shell.put(
            {
                f"{folder}/host.sh": data_file("host.sh"),
                f"{folder}/deadman.sh": data_file("deadman.sh"),
                f"{folder}/restore.sh": script,
            }
        )

    def start_deadman(self, limit_s: int) -> None:
        """Start the deadman; before this nothing may be changed on the host."""
        self._shell.do(
            # One that an earlier part of this run left counts silences that are over.
            'while is_alive "$S/restoring/pid"; do nap; done; stop_process "$S/deadman.pid" 2\n'
            'rm -f "$S/restored"; echo start >"$S/heartbeat" || exit 1\n'
            f'setsid sh "$S/deadman.sh" "$S" {limit_s} {shlex.quote(self._run)} '
            '</dev/null >>"$S/deadman.log" 2>&1 &\n'
            'deadman=$!; wait_detached "$deadman"; note_process "$S/deadman.pid" "$deadman"\n'
            'is_alive "$S/deadman.pid"',
            "starting the deadman",
        )

    def beat(self) -> HostStatus:
        """Tell the deadman that we live, and hear how the host stands."""
        self._beats += 1
        said = self._shell.do(
            f'echo {self._run}.{self._beats} >"$S/heartbeat"\n'
            'cat "$S/lock/run" 2>/dev/null; echo\n'
            'is_alive "$S/deadman.pid" && echo yes || echo no\ncat "$S/restored" 2>/dev/null; :',
            "the heartbeat",
        ).text.split("\n", 2)
        return HostStatus(
            is_held=said[0] == self._run, has_deadman=said[1] == "yes", restored=said[2].strip()
        )

    def restore(self, roles: Sequence[RoleKept]) -> str:
        """Run the restore script; what it ended in.

        Raises:
            HostError: if the host cannot be put back.
        """
        seconds = sum(kept.role.stop_timeout_s + kept.role.ready.timeout_s for kept in roles)
        return self._shell.do(
            'holder=$(cat "$S/lock/run" 2>/dev/null)\n'
            f'[ -z "$holder" ] || [ "$holder" = {shlex.quote(self._run)} ] || '
            '{ echo "another experiment holds it: $(cat "$S/lock/owner")" >&2; exit 1; }\n'
            'sh "$S/restore.sh" doctor && cat "$S/restored"',
            "putting it back",
            timeout_s=seconds + RESTORE_MARGIN_S,
        ).text.strip()

    def by_hand(self) -> str:
        """The command that puts the host back without us."""
        command = f"sh {shlex.quote(self._shell.folder + '/restore.sh')}"
        target = self._shell.entry.ssh
        return f"ssh {shlex.quote(target)} {shlex.quote(command)}" if target else command
