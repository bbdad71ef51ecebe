"""Which causes stand: elimination by e-values, support by what had to be seen and was.

A cause is ruled out when the mean e-value against it, over all arms that can speak against it (an
arm not run counts as nothing), reaches 1/alpha: a mean of e-values is an e-value, so the true cause
is ruled out with probability alpha at most, however the arms were chosen. It is supported when its
telling arms all showed decisively what it predicts and no other cause of the symptom stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dsv4doctor.differential.arms import ARMS, PREDICTIONS, ArmName, ArmSpec, Prediction, telling
from dsv4doctor.differential.causes import CAUSES, Cause, CauseName, Symptom
from dsv4doctor.differential.readings import Case, Mark, Reading

ALPHA = 0.05
DECISIVE = 1.0 / ALPHA
# A wedge is one observation and can never be decisive: this much says that the load without aborts
# had run three times as many requests as were needed with them.
WEDGE_WEIGHS = 2.5

CORRUPT = frozenset(
    {Symptom.CORRUPT_UNDER_LOAD, Symptom.CORRUPT_WHEN_SHARED, Symptom.CORRUPT_VALUES}
)
# Other sessions' text comes from other sessions' pages. A page table that names them always shows
# it; pages that were restored or sent with another owner's bytes in them may.
LEAVES_FOREIGN = frozenset({CauseName.FOREIGN_PAGE})
MAY_LEAVE_FOREIGN = LEAVES_FOREIGN | {CauseName.INDEX_K_STALE_READ, CauseName.EARLY_SEND}


class Standing(StrEnum):
    SUPPORTED = "supported"
    OPEN = "open"
    RULED_OUT = "ruled out"


_ORDER = (Standing.SUPPORTED, Standing.OPEN, Standing.RULED_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseStanding:
    """One cause with the evidence for and against it, in words; `e_against` is the greatest mean
    e-value against it over the symptoms that it explains."""

    cause: Cause
    standing: Standing
    for_: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    e_against: float = 0.0


class Conclusion(StrEnum):
    HEALTHY = "healthy"
    DIAGNOSED = "diagnosed"
    UNDECIDED = "undecided"


def conclude(case: Case) -> Conclusion:
    """The verdict on all that was seen; `healthy` needs every screen run, proved and clean."""
    if any(each.standing is Standing.SUPPORTED for each in judge(case)):
        return Conclusion.DIAGNOSED
    screens = [case.reading(arm.name) for arm in wanted_screens(case)]
    if case.symptoms or any(reading is None or reading.not_proved for reading in screens):
        return Conclusion.UNDECIDED
    return Conclusion.HEALTHY


def wanted_screens(case: Case) -> tuple[ArmSpec, ...]:
    """The screens that could meet anything new: one that only a single cause needs is left out
    where that cause is ruled out, or has been met by the load already."""
    out = {each.cause for each in case.exclusions}
    is_sick = Symptom.CORRUPT_UNDER_LOAD in case.symptoms
    return tuple(
        arm
        for arm in ARMS
        if arm.is_screen and (arm.only_for is None or not (is_sick or arm.only_for in out))
    )


def judge(case: Case) -> tuple[CauseStanding, ...]:
    """Every cause, the supported first, then those open, then those ruled out."""
    judged = [_judge(case, cause) for cause in CAUSES]
    return tuple(sorted(judged, key=lambda each: _ORDER.index(each.standing)))


def stands(case: Case, cause: Cause, symptom: Symptom) -> bool:
    """True while `cause` may be behind `symptom`."""
    if symptom not in cause.explains or _exclusions(case, cause):
        return False
    return _e_against(case, cause, symptom) < DECISIVE


def is_supported(case: Case, cause: Cause, symptom: Symptom) -> bool:
    """True when `cause` is what is left, and what it needs to have shown was seen."""
    if symptom not in case.symptoms or not stands(case, cause, symptom):
        return False
    if symptom is Symptom.WEDGED_WITH_ABORTS:
        is_weighty = case.wedged is not None and case.wedged.e_value >= WEDGE_WEIGHS
        return cause.name is CauseName.WEDGE_AFTER_ABORT and is_weighty
    if any(stands(case, other, symptom) for other in CAUSES if other is not cause):
        return False
    if cause.name in LEAVES_FOREIGN and not _has_mark(case, symptom):
        return False
    arms = telling(cause.name, symptom)
    if symptom in CORRUPT and not arms:
        return False  # nothing that could be run would confirm it there
    return all(_confirms(case, cause, arm) for arm in arms)


def _judge(case: Case, cause: Cause) -> CauseStanding:
    seen = sorted(cause.explains & case.symptoms)
    for_, against = _words(case, cause)
    e_against = max((_e_against(case, cause, symptom) for symptom in seen), default=0.0)
    if any(is_supported(case, cause, symptom) for symptom in seen):
        standing = Standing.SUPPORTED
    elif any(stands(case, cause, symptom) for symptom in seen):
        standing = Standing.OPEN
    elif seen or _exclusions(case, cause) or _was_looked_for(case, cause):
        standing = Standing.RULED_OUT
    else:
        standing = Standing.OPEN
    return CauseStanding(
        cause=cause, standing=standing, for_=for_, against=against, e_against=e_against
    )


def _tests(cause: Cause, symptom: Symptom) -> dict[ArmName, Prediction]:
    """The arms that look into `symptom` and for which `cause` predicts something."""
    return {
        arm.name: PREDICTIONS[arm.name][cause.name]
        for arm in ARMS
        if arm.symptom is symptom and cause.name in PREDICTIONS.get(arm.name, {})
    }


def _e_against(case: Case, cause: Cause, symptom: Symptom) -> float:
    tests = _tests(cause, symptom)
    values = [_against(case, arm, prediction) for arm, prediction in tests.items()]
    marks = [mark for mark in case.foreign if mark.symptom is symptom]
    if symptom in CORRUPT:
        if cause.name in LEAVES_FOREIGN:
            values.append(max((mark.absent for mark in marks), default=0.0))
        elif cause.name not in MAY_LEAVE_FOREIGN:
            values.append(max((mark.present for mark in marks), default=0.0))
    return sum(values) / len(values) if values else 0.0


def _against(case: Case, arm: ArmName, prediction: Prediction) -> float:
    reading = case.reading(arm)
    if reading is None or reading.not_proved:
        return 0.0
    return reading.goes if prediction is Prediction.STAYS else reading.stays


def _confirms(case: Case, cause: Cause, arm: ArmName) -> bool:
    reading = case.reading(arm)
    if reading is None or reading.not_proved:
        return False
    goes = PREDICTIONS[arm][cause.name] is Prediction.GOES
    return (reading.goes if goes else reading.stays) >= DECISIVE


def _has_mark(case: Case, symptom: Symptom) -> bool:
    return any(mark.symptom is symptom and mark.present >= DECISIVE for mark in case.foreign)


def _exclusions(case: Case, cause: Cause) -> tuple[str, ...]:
    return tuple(each.said for each in case.exclusions if each.cause is cause.name)


def _was_looked_for(case: Case, cause: Cause) -> bool:
    """True when every screen for what the cause explains has run and was what it says."""
    return all(reading is not None and not reading.not_proved for reading in _screens(case, cause))


def _screens(case: Case, cause: Cause) -> list[Reading | None]:
    """What the screens for the cause's symptoms showed; None where one has not run."""
    wanted = wanted_screens(case)
    arms = {arm.name for arm in wanted if arm.symptom in cause.explains}
    if Symptom.WEDGED_UNDER_LOAD in cause.explains or cause.explains == {Symptom.LATE_CLIENT}:
        arms.add(ArmName.LOAD)
    return [case.reading(arm.name) for arm in wanted if arm.name in arms]


def _words(case: Case, cause: Cause) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What speaks for the cause and what against it, an arm's own words each."""
    for_, against = [], list(_exclusions(case, cause))
    seen = cause.explains & case.symptoms
    for reading in case.readings:
        if seen & set(reading.seen):
            for_.append(_said(reading))
    for symptom in sorted(seen):
        for arm, prediction in _tests(cause, symptom).items():
            found = case.reading(arm)
            if found is None or found.not_proved:
                continue
            goes = prediction is Prediction.GOES
            if (found.goes if goes else found.stays) >= DECISIVE:
                for_.append(_said(found))
            if (found.stays if goes else found.goes) >= DECISIVE:
                against.append(_said(found))
        for mark in (each for each in case.foreign if each.symptom is symptom):
            side = _side(cause, mark)
            if side is not None:
                (for_ if side else against).append(mark.said)
    if case.wedged is not None and Symptom.WEDGED_WITH_ABORTS in seen:
        (for_ if cause.name is CauseName.WEDGE_AFTER_ABORT else against).append(case.wedged.said)
    if Symptom.LATE_CLIENT in seen:
        for_ += case.late
    if not seen:
        screens = [r for r in _screens(case, cause) if r is not None and not r.not_proved]
        is_of_flow = not cause.explains & CORRUPT
        against += [
            f"{reading.arm}: {reading.flow}" if is_of_flow else _said(reading)
            for reading in screens
        ]
    return tuple(for_), tuple(against)


def _side(cause: Cause, mark: Mark) -> bool | None:
    """Whether the mark speaks for the cause (True), against it (False), or not at all."""
    if mark.present >= DECISIVE:
        may = cause.name in MAY_LEAVE_FOREIGN
        return None if may and cause.name not in LEAVES_FOREIGN else may
    return False if mark.absent >= DECISIVE and cause.name in LEAVES_FOREIGN else None


def _said(reading: Reading) -> str:
    return f"{reading.arm}: {reading.said}"
