"""How a flow tells what it is doing; the default says nothing, the command line shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Progress(Protocol):
    """`note` is a line for a person; `update` replaces the state of the running work."""

    def note(self, text: str) -> None: ...

    def update(self, state: object) -> None: ...


class Silent:
    """Says nothing."""

    def note(self, text: str) -> None:
        """Drop the line."""

    def update(self, state: object) -> None:
        """Drop the state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproState:
    """Where a `repro` run stands: a whole picture, not a change. None is unknown.

    `requests_done` counts responses, failures and requests aborted by us; `quiet_s` is how long no
    token has come from any session while requests were in flight. `unit` is what `sessions` counts.
    """

    phase: str
    sessions: int
    sessions_done: int = 0
    requests: int = 0
    requests_done: int = 0
    in_flight: int = 0
    responses: int = 0
    corrupted_responses: int = 0
    failures: int = 0
    aborted_by_us: int = 0
    by_label: tuple[tuple[str, int], ...] = ()
    tokens_per_s: float | None = None
    elapsed_s: float = 0.0
    left_s: float | None = None
    quiet_s: float | None = None
    unit: str = "session"
