"""What it is to run a command on a host: the protocol, its values, and what can go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dsv4doctor.errors import DoctorError

DEFAULT_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A POSIX shell script to run on a host.

    `script` and `stdin` travel over the connection, never on a command line, so they may hold
    secrets and any bytes. `prefix` enters a container (`docker exec -i NAME`). While the command
    runs, `TMPDIR` names a private directory that is removed with it. All its processes die with it,
    and with the connection, unless they start a session of their own.
    """

    script: str
    stdin: bytes = b""
    timeout_s: float = DEFAULT_TIMEOUT_S
    prefix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """A complete answer: both streams as sent, checked by length and digest."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    seconds: float

    @property
    def text(self) -> str:
        """stdout as text; bytes that are not UTF-8 become U+FFFD."""
        return self.stdout.decode("utf-8", "replace")


class Transport(Protocol):
    """One host. `run` may be called from several threads; `close` ends what still runs."""

    @property
    def name(self) -> str: ...

    def run(self, command: Command) -> CommandResult: ...

    def close(self) -> None: ...


class HostError(DoctorError):
    """Something about a host that a person can act on; the problem names the host."""


class HostUnreachable(HostError):
    """No connection, or none that would let us in."""


class HostKeyRefused(HostError):
    """The host's key is unknown or not the one known; nothing was sent to it."""


class AnswerCut(HostError):
    """The connection ended, or something garbled the answer, before it was complete."""


class CommandTimeout(HostError):
    """The command outran its time; it was ended on the host."""
