"""Where an experiment's blocks run: a relaunched deployment, or servers left as they are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.sglang import ask_route, inspect_server
from dsv4doctor.deploy.counters import Counters, read_counters
from dsv4doctor.errors import DoctorError
from dsv4doctor.experiment.arms import Arm
from dsv4doctor.experiment.factors import Setting
from dsv4doctor.experiment.verification import ServerState
from dsv4doctor.progress import Progress
from dsv4doctor.target import Endpoint

# The server waits this long for its last requests before it flushes.
FLUSH_ROUTE = "/flush_cache?timeout=30"
FLUSH_DEADLINE_S = 40.0


class Source(Protocol):
    """What a block needs of its target."""

    restored: bool | None
    evidence: list[str]

    def prepare(self, arm: Arm, number: int) -> Endpoint: ...

    def states(self, arm: Arm) -> Mapping[str, tuple[tuple[Setting, ...], ServerState]]: ...

    def counters(self) -> Counters: ...

    def keep_logs(self, arm: Arm, number: int) -> tuple[tuple[str, ...], bool | None]: ...


@dataclass(slots=True)
class Standing:
    """Servers that already run: one an arm, or one for all. Nothing is changed there but its prefix
    cache, emptied before each block where arms share a server: the same prompts come again."""

    endpoints: Mapping[str, Endpoint]
    progress: Progress
    restored: bool | None = None
    evidence: list[str] = field(default_factory=list)
    _current: Endpoint | None = None

    def prepare(self, arm: Arm, number: int) -> Endpoint:
        """The arm's server, with an empty cache where it serves other arms too.

        Raises:
            DoctorError: if a shared cache cannot be emptied.
        """
        endpoint = self.endpoints[arm.name]
        self._current = endpoint
        if sum(other == endpoint for other in self.endpoints.values()) > 1:
            _flush(endpoint)
        return endpoint

    def states(self, arm: Arm) -> dict[str, tuple[tuple[Setting, ...], ServerState]]:
        info = inspect_server(self.endpoints[arm.name])
        return {"server": ((), ServerState(server_args=info.server_args))}

    def counters(self) -> Counters:
        return read_counters([self._current] if self._current else [])

    def keep_logs(self, _arm: Arm, _number: int) -> tuple[tuple[str, ...], bool | None]:
        return (), None


def _flush(endpoint: Endpoint) -> None:
    async def ask() -> str | None:
        async with HttpClient(endpoint) as http:
            answer = await ask_route(http, FLUSH_ROUTE, deadline_s=FLUSH_DEADLINE_S)
        return None if answer.is_ok else answer.problem or f"HTTP {answer.status}"

    problem = asyncio.run(ask())
    if problem:
        raise DoctorError(
            f"{endpoint.base_url} did not empty its cache: {problem}",
            "arms that share a server get the same prompts: it must serve nobody else meanwhile",
        )
