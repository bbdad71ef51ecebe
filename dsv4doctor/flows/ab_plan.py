"""`ab plan`: how many sessions an arm tell two rates apart, and what so many sessions can see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dsv4doctor.errors import UsageError
from dsv4doctor.stats.compare import LARGEST_TABLE
from dsv4doctor.stats.power import (
    DEFAULT_ALPHA,
    DEFAULT_POWER,
    Detectable,
    SessionsPerArm,
    detectable,
    plan,
    sessions_to_equate,
)

VERDICT = "planned"
DEFAULT_MARGIN = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAsk:
    """Rates 0 to 1. With `p1`: the sessions that tell it from `p0`. With `sessions`: what they can
    see beside `p0`."""

    p0: float
    p1: float | None = None
    sessions: int | None = None
    alpha: float = DEFAULT_ALPHA
    power: float = DEFAULT_POWER
    margin: float = DEFAULT_MARGIN
    seed: int = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAnswer:
    """`equivalence_sessions`: an arm, to show two arms of rate `p0` equal to within the margin."""

    ask: PlanAsk
    sessions_per_arm: SessionsPerArm | None
    detectable: Detectable | None
    equivalence_sessions: int

    @property
    def body(self) -> dict[str, Any]:
        """What stands under `ab` in the JSON document."""
        ask = self.ask
        return {
            "plan": {
                "p0": ask.p0,
                "p1": ask.p1,
                "alpha": ask.alpha,
                "power": ask.power,
                "margin": ask.margin,
                "seed": ask.seed,
                "fixed_test": self.fixed_test,
                "sessions_per_arm": self.sessions_per_arm,
                "detectable": self.detectable,
                "equivalence_sessions_per_arm": self.equivalence_sessions,
            }
        }

    @property
    def fixed_test(self) -> str | None:
        if self.sessions_per_arm is None:
            return None
        return "boschloo" if self.sessions_per_arm.fixed <= LARGEST_TABLE else "fisher"

    @property
    def lines(self) -> tuple[str, ...]:
        """The answer for a person, a line each."""
        return tuple(_lines(self))


def plan_sessions(ask: PlanAsk) -> PlanAnswer:
    """The answer to `ask`; the same for the same seed.

    Raises:
        UsageError: on values out of range, equal or too close rates, or nothing to plan.
    """
    if ask.p1 is None and ask.sessions is None:
        raise UsageError("nothing to plan", "give --p1 RATE or --sessions N beside --p0")
    if not 0.0 < ask.margin < 1.0:
        raise UsageError(f"--margin {ask.margin:g} is out of range", "give a share between 0 and 1")
    needed = seen = None
    if ask.p1 is not None:
        needed = plan(ask.p0, ask.p1, ask.alpha, ask.power, ask.seed)
    if ask.sessions is not None:
        seen = detectable(ask.sessions, ask.p0, ask.alpha, ask.power)
    return PlanAnswer(
        ask=ask,
        sessions_per_arm=needed,
        detectable=seen,
        equivalence_sessions=sessions_to_equate(ask.p0, ask.margin, ask.alpha, ask.power),
    )


def _lines(answer: PlanAnswer) -> list[str]:
    ask, needed, seen = answer.ask, answer.sessions_per_arm, answer.detectable
    lines = []
    if needed is not None and ask.p1 is not None:
        lines += [
            f"To tell {_percent(ask.p0)} from {_percent(ask.p1)} of sessions corrupted "
            f"(alpha {ask.alpha:g}, power {ask.power:g}), sessions an arm:",
            f"  {needed.fixed:>9,}  looked at once ({str(answer.fixed_test).title()}'s exact test)",
            f"  {needed.sequential_mean:>9,}  on average, looked at after every pair",
            f"  {needed.sequential_at_power:>9,}  by then stopped with probability {ask.power:g}",
            f"  {needed.sequential_p95:>9,}  by then stopped with probability 0.95",
            "Where arms are relaunched, launches that vary need more: count on several rounds.",
        ]
    if seen is not None:
        lines.append(
            f"{seen.sessions:,} sessions an arm (alpha {ask.alpha:g}, power {ask.power:g}) tell "
            f"{_percent(ask.p0)} from:"
        )
        lines.append(_side("at most", seen.lower, "no lower rate, not even 0"))
        lines.append(_side("at least", seen.higher, "no higher rate, not even 100 %"))
    lines.append(
        f"To show two arms of {_percent(ask.p0)} equal to within {_percent(ask.margin)}: "
        f"{answer.equivalence_sessions:,} sessions an arm."
    )
    return lines


def _side(bound: str, rate: float | None, otherwise: str) -> str:
    return f"  {otherwise}" if rate is None else f"  {bound} {_percent(rate)}"


def _percent(rate: float) -> str:
    return f"{rate * 100:.3g} %"
