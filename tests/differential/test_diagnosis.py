"""Each cause played through: what the arms would show if it were true, and what is concluded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

import pytest

from dsv4doctor.differential.arms import ARMS, PREDICTIONS, TELLING, ArmName, ArmSpec, Prediction
from dsv4doctor.differential.causes import CAUSES, CauseName, Symptom
from dsv4doctor.differential.order import next_arm
from dsv4doctor.differential.readings import Case, Exclusion, Mark, Reading, Wedged
from dsv4doctor.differential.standing import (
    Conclusion,
    Standing,
    conclude,
    judge,
)

GREAT = 5_000.0  # an e-value of a load of sixty sessions
LOAD, SHARED = Symptom.CORRUPT_UNDER_LOAD, Symptom.CORRUPT_WHEN_SHARED
VALUES, ABORTS = Symptom.CORRUPT_VALUES, Symptom.WEDGED_WITH_ABORTS
ONE_SERVER = (Exclusion(cause=CauseName.EARLY_SEND, said="one server"),)


@dataclass(frozen=True)
class Truth:
    """A server whose cause is known: which screens it makes sick, and whether codes of other
    sessions come back."""

    cause: CauseName | None
    sick: Mapping[ArmName, Symptom] = field(default_factory=dict)
    foreign: bool = False
    exclusions: tuple[Exclusion, ...] = ()


C = CauseName
TRUTHS = {
    "healthy": Truth(None),
    "healthy, one server": Truth(None, exclusions=ONE_SERVER),
    "index-K": Truth(C.INDEX_K_STALE_READ, {ArmName.LOAD: LOAD}, exclusions=ONE_SERVER),
    "index-K, disaggregated": Truth(C.INDEX_K_STALE_READ, {ArmName.LOAD: LOAD}),
    "decode store": Truth(C.DECODE_STORE, {ArmName.LOAD: LOAD}),
    "foreign page": Truth(
        C.FOREIGN_PAGE, {ArmName.LOAD: LOAD, ArmName.VALUES: VALUES}, foreign=True,
        exclusions=ONE_SERVER,
    ),
    "early send": Truth(C.EARLY_SEND, {ArmName.SAMPLES: SHARED}),
    "early send of a shared prompt": Truth(C.EARLY_SEND, {ArmName.LOAD: LOAD}),
    "parser": Truth(C.PARSER, {ArmName.VALUES: VALUES}),
    "parser in every call": Truth(C.PARSER, {ArmName.LOAD: LOAD, ArmName.VALUES: VALUES}),
    "model": Truth(C.MODEL_BASELINE, {ArmName.LOAD: LOAD}),
    "abort": Truth(C.WEDGE_AFTER_ABORT, {ArmName.ABORTS: ABORTS}),
    "overlap": Truth(C.WEDGE_OVERLAP, {ArmName.LOAD: Symptom.WEDGED_UNDER_LOAD}),
}  # fmt: skip


def show(truth: Truth, arm: ArmSpec, case: Case) -> Case:
    """The case after `arm` has shown what `truth` makes of it."""
    seen = truth.sick.get(arm.name)
    prediction = PREDICTIONS.get(arm.name, {}).get(truth.cause) if truth.cause else None
    reading = Reading(
        arm=arm.name,
        said="as the truth has it",
        seen=() if seen is None else (seen,),
        stays=GREAT if prediction is Prediction.STAYS else 0.01,
        goes=GREAT if prediction is Prediction.GOES else 0.01,
    )
    marks, wedged = case.foreign, case.wedged
    if arm.is_screen and seen in {LOAD, SHARED, VALUES}:
        mark = Mark(
            symptom=seen,
            said="codes",
            present=GREAT if truth.foreign else 1.0,
            absent=1.0 if truth.foreign else GREAT,
        )
        marks = (*marks, mark)
    if seen is ABORTS:
        wedged = Wedged(requests=60, before=360, said="it stopped")
    return Case(
        readings=(*case.readings, reading),
        foreign=marks,
        exclusions=case.exclusions,
        wedged=wedged,
        late=case.late,
    )


def play(truth: Truth) -> tuple[Case, list[ArmName]]:
    """All arms that are asked for, until none is or the server has stopped."""
    case, run = Case(exclusions=truth.exclusions), []
    while (arm := next_arm(case)) is not None:
        run.append(arm.name)
        case = show(truth, arm, case)
        if case.symptoms & {ABORTS, Symptom.WEDGED_UNDER_LOAD}:
            break
    return case, run


@pytest.mark.parametrize("name", TRUTHS)
def test_the_true_cause_is_named_first_and_alone(name: str) -> None:
    truth = TRUTHS[name]
    case, run = play(truth)
    assert len(run) == len(set(run))
    judged = judge(case)
    supported = [each.cause.name for each in judged if each.standing is Standing.SUPPORTED]
    if truth.cause is None:
        assert (conclude(case), supported) == (Conclusion.HEALTHY, [])
        return
    assert conclude(case) is Conclusion.DIAGNOSED
    assert supported == [truth.cause]
    assert judged[0].cause.name is truth.cause
    assert judged[0].for_


@pytest.mark.parametrize("name", TRUTHS)
def test_no_arm_is_run_that_nothing_hangs_on(name: str) -> None:
    truth = TRUTHS[name]
    _, run = play(truth)
    screens = [arm.name for arm in ARMS if arm.is_screen and arm.only_for is None]
    most = {
        "healthy": len(screens) + 1,  # samples of one conversation: it may be disaggregated
        "healthy, one server": len(screens),
        "overlap": 1,
    }
    assert len(run) <= most.get(name, len(screens) + 5), run
    assert run[0] is ArmName.LOAD
    if ArmName.ABORTS in run:
        assert run[-1] is ArmName.ABORTS, "what may stop the server comes last"


def test_weak_evidence_names_nothing() -> None:
    truth = TRUTHS["index-K"]
    case, _ = play(truth)
    weak = tuple(
        Reading(arm=r.arm, said=r.said, seen=r.seen, stays=min(r.stays, 3.0), goes=min(r.goes, 3.0))
        for r in case.readings
    )
    weaker = Case(readings=weak, exclusions=case.exclusions)
    assert conclude(weaker) is Conclusion.UNDECIDED
    assert all(each.standing is not Standing.SUPPORTED for each in judge(weaker))


def test_an_arm_that_was_not_what_it_says_counts_for_nothing() -> None:
    case, _ = play(TRUTHS["index-K"])
    spoilt = tuple(
        Reading(arm=r.arm, said=r.said, seen=r.seen, stays=r.stays, goes=r.goes,
                not_proved="512 cached tokens" if r.arm is ArmName.MISS else "")
        for r in case.readings
    )  # fmt: skip
    assert conclude(Case(readings=spoilt, exclusions=ONE_SERVER)) is Conclusion.UNDECIDED


def test_a_clean_screen_that_was_not_proved_leaves_it_undecided() -> None:
    case, _ = play(TRUTHS["healthy, one server"])
    assert conclude(case) is Conclusion.HEALTHY
    (first, *rest) = case.readings
    spoilt = Reading(arm=first.arm, said=first.said, not_proved="12 requests failed")
    assert conclude(Case(readings=(spoilt, *rest), exclusions=ONE_SERVER)) is Conclusion.UNDECIDED


def test_a_wedge_soon_after_little_load_is_not_blamed_on_aborts() -> None:
    case, _ = play(TRUTHS["abort"])
    few = Wedged(requests=60, before=60, said="it stopped")
    early = Case(readings=case.readings, exclusions=case.exclusions, wedged=few)
    assert conclude(early) is Conclusion.UNDECIDED
    open_ = {each.cause.name for each in judge(early) if each.standing is Standing.OPEN}
    assert open_ == {C.WEDGE_AFTER_ABORT, C.WEDGE_OVERLAP}


def test_failures_of_a_late_client_are_its_own() -> None:
    case, _ = play(TRUTHS["healthy, one server"])
    late = Case(readings=case.readings, exclusions=case.exclusions, late=("load: 9 failed",))
    (first, *_) = judge(late)
    assert (first.cause.name, first.standing) == (C.CLIENT_BOTTLENECK, Standing.SUPPORTED)


def test_the_servers_own_word_rules_out_and_is_told() -> None:
    said = Exclusion(cause=C.INDEX_K_STALE_READ, said="HiCache is off")
    case, _ = play(Truth(C.DECODE_STORE, {ArmName.LOAD: LOAD}, exclusions=(said, *ONE_SERVER)))
    judged = {each.cause.name: each for each in judge(case)}
    assert judged[C.INDEX_K_STALE_READ].standing is Standing.RULED_OUT
    assert "HiCache is off" in judged[C.INDEX_K_STALE_READ].against


def test_two_causes_at_once_are_both_named() -> None:
    """Symptoms that arrive together can have different causes."""
    case, _ = play(TRUTHS["index-K"])
    parser, _ = play(TRUTHS["parser"])
    both = [r for r in case.readings if r.arm is not ArmName.VALUES]
    both += [r for r in parser.readings if r.arm.value.startswith("values")]
    marks = (*case.foreign, *parser.foreign)
    together = Case(readings=tuple(both), foreign=marks, exclusions=ONE_SERVER)
    supported = {e.cause.name for e in judge(together) if e.standing is Standing.SUPPORTED}
    assert supported == {C.INDEX_K_STALE_READ, C.PARSER}


def test_the_tables_are_whole() -> None:
    names = {arm.name for arm in ARMS}
    assert names == set(ArmName)
    assert set(PREDICTIONS) == {arm.name for arm in ARMS if not arm.is_screen}
    assert {cause.name for cause in CAUSES} == set(CauseName)
    for symptom, causes in TELLING.items():
        for cause, arms in causes.items():
            assert symptom in next(c for c in CAUSES if c.name is cause).explains
            assert all(cause in PREDICTIONS[arm] for arm in arms)
    for symptom in (LOAD, VALUES):
        named = [cause.name for cause in CAUSES if symptom in cause.explains]
        for one, other in combinations(named, 2):
            arms = [PREDICTIONS[arm.name] for arm in ARMS if arm.name in PREDICTIONS]
            told = any(p[one] is not p[other] for p in arms if one in p and other in p)
            assert told or symptom is VALUES, f"nothing tells {one} from {other}"


def test_the_soak_knows_every_fault_of_the_lab() -> None:
    """A fault without a cause to be named would never be tried."""
    import runpy
    import sys
    from pathlib import Path

    from dsv4doctor.lab.faults import FAULT_NAMES

    folder = Path(__file__).parents[2] / "benchmarks"
    sys.path.insert(0, str(folder))
    try:
        soak = runpy.run_path(str(folder / "soak_diagnose.py"))
    finally:
        sys.path.remove(str(folder))
    assert set(soak["CAUSES"]) == set(FAULT_NAMES)
    named = {cause for cause in soak["CAUSES"].values() if cause is not None}
    assert named <= {cause.value for cause in CauseName}
