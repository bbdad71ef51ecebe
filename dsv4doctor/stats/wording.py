"""A comparison in one plain sentence, for the console, the report and `reason` in JSON."""

from __future__ import annotations

from dsv4doctor.stats.outcomes import ArmOutcomes
from dsv4doctor.stats.rates import session_rate, upper_bound_clean
from dsv4doctor.verdict import Comparison, Verdict


def sentence(
    a: ArmOutcomes, b: ArmOutcomes, found: Comparison, notes: tuple[str, ...], margin: float
) -> str:
    """Both rates, the verdict, its strength, and what a reader must know beside it."""
    for arm in (a, b):
        if arm.not_proved:
            return f"{arm.name} was not proved to be what its name says: {arm.not_proved}"
    strength = (
        f"e = {found.e_value:.3g}" if found.e_value is not None else f"p = {found.p_value:.2g}"
    )
    parts = [told(a), told(b)]
    if found.verdict is Verdict.DIFFER:
        parts.append(f"they differ, {strength}")
    elif found.verdict is Verdict.EQUIVALENT:
        parts.append(f"equal to within {margin * 100:g} percentage points")
    else:
        estimate = found.difference.estimate
        if estimate is None or abs(estimate) > margin:
            parts.append(f"this can be noise, {strength}")
        else:
            largest = max(-found.difference.low, found.difference.high) * 100
            parts.append(f"no difference seen, but one of {largest:.2g} points is not ruled out")
        if found.sessions_needed is not None:
            parts.append(f"about {found.sessions_needed} sessions an arm would decide")
    return "; ".join([*parts, *notes])


def told(arm: ArmOutcomes) -> str:
    """The arm's rate in words: with its interval, or with the bound that a clean arm proves."""
    if not arm.sessions:
        return f"{arm.name}: no session that could be judged"
    if not arm.corrupted:
        bound = upper_bound_clean(arm.sessions) * 100
        return f"{arm.name}: 0 of {arm.sessions} sessions corrupted, below {bound:.2g} %"
    rate = session_rate(arm.corrupted, arm.sessions)
    share = arm.corrupted / arm.sessions * 100
    return (
        f"{arm.name} corrupts {share:.1f} % of {arm.sessions} sessions "
        f"[{rate.low * 100:.1f}, {rate.high * 100:.1f}]"
    )
