"""Where an experiment stands, for the live table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsv4doctor.progress import Progress, ReproState
from dsv4doctor.rate import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmState:
    """One row: judged and corrupted sessions with the rate, and the strongest evidence that this
    arm differs from another; None before the first look."""

    name: str
    blocks: int
    sessions: int
    corrupted: int
    rate: Rate
    e_value: float | None
    not_proved: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbState:
    """A whole picture. `doing` says what happens on the host; `block` is the load under way."""

    doing: str
    blocks_done: int
    blocks: int
    arms: tuple[ArmState, ...]
    block: ReproState | None = None


class AbProgress:
    """A block's progress shown inside the experiment's."""

    def __init__(self, progress: Progress, state: AbState) -> None:
        self._progress = progress
        self._state = state

    def note(self, text: str) -> None:
        self._progress.note(text)

    def update(self, state: object) -> None:
        if isinstance(state, ReproState):
            self._progress.update(replace(self._state, block=state))


def strongest(name: str, comparisons: Sequence[tuple[str, str, float | None]]) -> float | None:
    """The greatest e-value of the pairs (a, b, e) that `name` is in."""
    values = [e for a, b, e in comparisons if name in (a, b) and e is not None]
    return max(values, default=None)
