"""Arms' outcomes + margin + budget -> a verdict for each pair, or "go on".

`differ` needs a p-value, adjusted for all pairs, of at most alpha; `equivalent` needs the interval
of the difference within the margin; all else is `undecided`, with the sessions that would decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations

from dsv4doctor.errors import UsageError
from dsv4doctor.stats.compare import difference, exact_test, holm
from dsv4doctor.stats.dispersion import Dispersion, dispersion
from dsv4doctor.stats.outcomes import ArmOutcomes, Outcome, launch_table
from dsv4doctor.stats.power import DEFAULT_POWER, plan, sessions_fixed, sessions_to_equate
from dsv4doctor.stats.sequential import (
    LEAST_ROUNDS,
    Evidence,
    launch_evidence,
    pair_evidence,
)
from dsv4doctor.stats.wording import sentence
from dsv4doctor.verdict import Comparison, Contrast, Verdict


class Looking(StrEnum):
    """How the sessions were come by, which says what test may be used."""

    ONCE = "once"  # runs already made, looked at once: a fixed-size exact test
    PAIRS = "pairs"  # endpoints that run all the time: sequential, a look after every pair
    LAUNCHES = "launches"  # a deployment relaunched for every block: sequential, launches vary


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What counts as a difference (`alpha`, over all pairs together) and as none (`margin`).

    `plan_needs` off spares a live display the calculation of `sessions_needed`.
    """

    alpha: float = 0.05
    margin: float = 0.01
    power: float = DEFAULT_POWER
    looking: Looking = Looking.LAUNCHES
    plan_needs: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """One pair's test before the adjustment for the others. `spread` is the variance of launches
    over the binomial's as seen, `inflation` what the interval's counts are divided by."""

    p_value: float
    name: str
    unit: str
    looks: int
    e_value: float | None = None
    inflation: float = 1.0
    spread: float = 1.0
    note: str = ""


def judge(
    arms: Sequence[ArmOutcomes], rules: Rules, *, finished_rounds: int | None = None
) -> tuple[Comparison, ...]:
    """Every pair of arms compared, in the order of the arms.

    While a run goes on, `finished_rounds` is the number of rounds whose launches have ended; None
    says that the run is over, and only then may a fixed-size test be used.

    Raises:
        ValueError: on fewer than two arms, or two of one name.
    """
    if len({arm.name for arm in arms}) < max(2, len(arms)):
        raise ValueError("a comparison needs two arms or more, each with its own name")
    pairs = list(combinations(arms, 2))
    tests = [_test(a, b, rules, finished_rounds) for a, b in pairs]
    proved = [n for n, (a, b) in enumerate(pairs) if not (a.not_proved or b.not_proved)]
    adjusted = dict(zip(proved, holm([tests[n].p_value for n in proved]), strict=True))
    return tuple(
        _comparison(a, b, tests[n], adjusted.get(n), rules) for n, (a, b) in enumerate(pairs)
    )


def overall(comparisons: Sequence[Comparison]) -> Verdict:
    """The verdict of the whole: `differ` if any pair does, else `undecided` if any is."""
    verdicts = {comparison.verdict for comparison in comparisons}
    for verdict in (Verdict.DIFFER, Verdict.UNDECIDED):
        if verdict in verdicts:
            return verdict
    return Verdict.EQUIVALENT if verdicts else Verdict.UNDECIDED


def may_stop(comparisons: Sequence[Comparison]) -> bool:
    """True when no further session can change anything: every pair is known to differ.

    `equivalent` rests on an interval of fixed size, so only the planned end may claim it.
    """
    return bool(comparisons) and all(c.verdict is Verdict.DIFFER for c in comparisons)


def effective_cell(arm: ArmOutcomes, inflation: float = 1.0) -> tuple[float, float]:
    """The arm's (corrupted, sessions), divided by the inflation of variance between launches."""
    return arm.corrupted / inflation, arm.sessions / inflation


def launch_inflation(arms: Sequence[ArmOutcomes], rules: Rules) -> float:
    """What an interval's counts are divided by as launches differ; 1 if none was relaunched."""
    if rules.looking is not Looking.LAUNCHES:
        return 1.0
    return _spread(arms).interval_inflation(1.0 - rules.alpha)


def _spread(arms: Sequence[ArmOutcomes]) -> Dispersion:
    return dispersion([launch_table(arm.launches) for arm in arms])


def _test(a: ArmOutcomes, b: ArmOutcomes, rules: Rules, finished: int | None) -> _Test:
    if rules.looking is Looking.PAIRS:
        evidence = pair_evidence(*_aligned(a, b))
        return _sequential(evidence, 1.0, 1.0)
    rounds = min(len(a.launches), len(b.launches))
    if rules.looking is Looking.LAUNCHES and rounds >= LEAST_ROUNDS:
        evidence = launch_evidence(a.launches, b.launches, finished)
        return _sequential(evidence, launch_inflation((a, b), rules), _spread((a, b)).inflation)
    note = ""
    if rules.looking is Looking.LAUNCHES:
        note = "one launch an arm: whether launches differ among themselves is not known"
    if finished is None:
        p_value, name, looks = *exact_test(a.corrupted, a.sessions, b.corrupted, b.sessions), 1
    else:
        p_value, name, looks = 1.0, "none: too early to look", 0
    return _Test(p_value=p_value, name=name, unit="session", looks=looks, note=note)


def _aligned(a: ArmOutcomes, b: ArmOutcomes) -> tuple[list[Outcome], list[Outcome]]:
    """Sessions that had the same prompts, side by side: a block cut short shifts no later one."""
    pairs = [
        pair
        for one, other in zip(a.launches, b.launches, strict=False)
        for pair in zip(one, other, strict=False)
    ]
    return [one for one, _ in pairs], [other for _, other in pairs]


def _sequential(evidence: Evidence, inflation: float, spread: float) -> _Test:
    return _Test(
        p_value=evidence.p_value,
        name="discordant-pair betting",
        unit="session" if spread == 1.0 else "launch",
        looks=evidence.looks,
        e_value=evidence.e_value,
        inflation=inflation,
        spread=spread,
    )


def _comparison(
    a: ArmOutcomes, b: ArmOutcomes, test: _Test, adjusted: float | None, rules: Rules
) -> Comparison:
    (k1, n1), (k2, n2) = effective_cell(a, test.inflation), effective_cell(b, test.inflation)
    contrast = difference(k1, n1, k2, n2, level=1.0 - rules.alpha)
    if adjusted is None:
        verdict, needed = Verdict.UNDECIDED, None
    else:
        verdict = _verdict(contrast, adjusted, rules)
        needed = _needed(a, b, test.spread, rules) if verdict is Verdict.UNDECIDED else None
    unspoken = Comparison(
        a=a.name,
        b=b.name,
        verdict=verdict,
        difference=contrast,
        p_value=test.p_value,
        p_value_adjusted=1.0 if adjusted is None else adjusted,
        e_value=test.e_value,
        test=test.name,
        unit=test.unit,
        looks=test.looks,
        reason="",
        sessions_needed=needed,
    )
    return replace(unspoken, reason=sentence(a, b, unspoken, _notes(test), rules.margin))


def _verdict(contrast: Contrast, adjusted: float, rules: Rules) -> Verdict:
    if adjusted <= rules.alpha:
        return Verdict.DIFFER
    if -rules.margin <= contrast.low and contrast.high <= rules.margin:
        return Verdict.EQUIVALENT
    return Verdict.UNDECIDED


def _needed(a: ArmOutcomes, b: ArmOutcomes, spread: float, rules: Rules) -> int | None:
    """Sessions an arm that would decide, were the rates seen the true ones; None where unknown."""
    if not (rules.plan_needs and a.sessions and b.sessions):
        return None
    p, q = a.corrupted / a.sessions, b.corrupted / b.sessions
    try:
        if abs(p - q) <= rules.margin:
            pooled = (a.corrupted + b.corrupted) / (a.sessions + b.sessions)
            sessions = sessions_to_equate(pooled, rules.margin, rules.alpha, rules.power)
        elif rules.looking is Looking.ONCE:
            sessions = sessions_fixed(p, q, rules.alpha, rules.power)
        else:
            sessions = plan(p, q, rules.alpha, rules.power).sequential_at_power
    except UsageError:  # too close to be told apart by any number that could be run
        return None
    return max(round(sessions * spread), max(a.sessions, b.sessions) + 1)


def _notes(test: _Test) -> tuple[str, ...]:
    spread = f"launches vary {test.spread:.1f} times as much as chance makes them on average"
    return tuple(
        note for note, said in ((test.note, test.note), (spread, test.spread > 1.0)) if said
    )
