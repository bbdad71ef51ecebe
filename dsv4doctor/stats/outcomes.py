"""What an experiment hands to the statistics: each arm's sessions, launch by launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# One session: corrupted or not; None where it failed and could not be judged.
Outcome = bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmOutcomes:
    """An arm's sessions by launch, in the order of their prompts: corrupted, clean, or None where
    the session failed. `not_proved` says why the arm may not be what its name says; its results
    then count for nothing."""

    name: str
    launches: tuple[tuple[Outcome, ...], ...]
    not_proved: str = ""

    @property
    def corrupted(self) -> int:
        return sum(k for k, _ in launch_table(self.launches))

    @property
    def sessions(self) -> int:
        """Judged sessions."""
        return sum(n for _, n in launch_table(self.launches))


def launch_table(launches: Sequence[Sequence[Outcome]]) -> list[tuple[int, int]]:
    """(corrupted, judged) of each launch."""
    return [
        (sum(map(bool, launch)), sum(outcome is not None for outcome in launch))
        for launch in launches
    ]
