"""Which arm to run next: the one that separates most of what still stands for its cost."""

from __future__ import annotations

from itertools import combinations

from dsv4doctor.differential.arms import ARMS, PREDICTIONS, ArmSpec, telling
from dsv4doctor.differential.causes import CAUSES, Cause, Symptom
from dsv4doctor.differential.readings import Case
from dsv4doctor.differential.standing import is_supported, stands, wanted_screens

# An arm that could only confirm what is left is worth half of one that separates two causes.
CONFIRMS = 0.5


def next_arm(case: Case) -> ArmSpec | None:
    """The next arm, or None when nothing that could be run would change what is known.

    What was seen is looked into before the next screen: a screen may stop the server.
    """
    seen = case.symptoms
    looks = [
        arm
        for arm in ARMS
        if not arm.is_screen
        and arm.symptom in seen
        and case.reading(arm.name) is None
        and (arm.after is None or case.reading(arm.after) is not None)
    ]
    worth = {arm.name: _gain(case, arm) / arm.cost for arm in looks}
    best = max(looks, key=lambda arm: worth[arm.name], default=None)
    if best is not None and worth[best.name] > 0.0:
        return best
    return next((arm for arm in wanted_screens(case) if case.reading(arm.name) is None), None)


def _gain(case: Case, arm: ArmSpec) -> float:
    standing = [cause for cause in CAUSES if stands(case, cause, arm.symptom)]
    predicted = PREDICTIONS[arm.name]
    separated = sum(
        predicted.get(one.name) is not predicted.get(other.name)
        for one, other in combinations(standing, 2)
        if one.name in predicted and other.name in predicted
    )
    return separated + CONFIRMS * sum(_needs(case, cause, arm) for cause in standing)


def _needs(case: Case, cause: Cause, arm: ArmSpec) -> bool:
    symptom: Symptom = arm.symptom
    return arm.name in telling(cause.name, symptom) and not is_supported(case, cause, symptom)
