"""Where probes can be asked: this machine, or a host over SSH; a host's ranks in one round trip."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.checksum import probe_relay
from dsv4doctor.checksum.remote import Where, run_program
from dsv4doctor.hosts.transport import Transport

# Where `probe install` puts the plugin: the sockets of all users' probes on a host.
DEFAULT_FOLDERS = ("${DSV4DOCTOR_PROBE_DIR}", "/var/tmp/dsv4doctor-*/probe/run")
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request to the probe at `socket`; None: to every probe of the site."""

    request: Mapping[str, Any]
    socket: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What came back from one socket: the rank's answer, or why there is none.

    `is_old`: the socket is left over from a process that has ended.
    """

    socket: str
    answer: Mapping[str, Any] | None
    gone: str = ""
    is_old: bool = False


class Site:
    """One machine with ranks on it. `connect` None is this machine, without a detour; a host is
    connected to when it is asked first."""

    def __init__(
        self,
        name: str,
        folders: Sequence[str],
        *,
        connect: Callable[[], Transport] | None = None,
        where: Where | None = None,
    ) -> None:
        self.name = name
        self._folders = list(folders)
        self._connect = connect
        self._transport: Transport | None = None
        self._where = where or Where()

    @property
    def is_remote(self) -> bool:
        return self._connect is not None

    def ask(self, asks: Sequence[Ask]) -> list[Answered]:
        """The answers, in the order of the asks; none where the site has no probe.

        Raises:
            HostError: if the host cannot be reached or has no Python.
        """
        job = {"folders": self._folders, "asks": [[ask.socket, ask.request] for ask in asks]}
        found = probe_relay.relay(job) if self._connect is None else self._remotely(job)
        return [
            _answered(str(socket), answer)
            for socket, answer in zip(found["asked"], found["answers"], strict=True)
        ]

    def _remotely(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self._connect is not None
        if self._transport is None:
            self._transport = self._connect()
        source = inspect.getsource(probe_relay)
        text = f"{source}\n\nmain({json.dumps(job)!r})\n".encode("ascii")
        return run_program(self._transport, text, self._where, _TIMEOUT_S)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _answered(socket: str, answer: Mapping[str, Any]) -> Answered:
    if "gone" not in answer:
        return Answered(socket=socket, answer=answer)
    is_old = bool(answer.get("is_old"))
    return Answered(socket=socket, answer=None, gone=str(answer["gone"]), is_old=is_old)
