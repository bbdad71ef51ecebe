"""The promise in numbers: over seeded streams of replies the true cause is seldom ruled out.

A deployment is what its sessions show: with which chance a turn goes wrong in an arm. It answers
in place of a server; which arm comes next, when it stops and what it says are the real thing.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.differential.arms import ARMS, PREDICTIONS, ArmName, Prediction
from dsv4doctor.differential.causes import CauseName
from dsv4doctor.differential.order import next_arm
from dsv4doctor.differential.readings import Exclusion
from dsv4doctor.differential.standing import ALPHA, Standing, judge
from dsv4doctor.experiment.verification import Verification
from dsv4doctor.flows import diagnose_steps
from dsv4doctor.flows.diagnose_arms import ArmRun, Bench, Request
from dsv4doctor.flows.diagnose_plan import DiagnosePlan
from dsv4doctor.flows.diagnose_weighing import HARDLY, MOSTLY, NAMED_SHARE, NOISE
from dsv4doctor.flows.tally import Share, Tally
from dsv4doctor.progress import Silent
from dsv4doctor.target import Endpoint

SESSIONS, TURNS = 60, 6
STREAMS, FEW_STREAMS = 60, 12
C = CauseName
CORRUPTING = (
    C.INDEX_K_STALE_READ, C.DECODE_STORE, C.FOREIGN_PAGE, C.EARLY_SEND, C.PARSER, C.MODEL_BASELINE,
)  # fmt: skip
AGAIN = {ArmName.ALONE, ArmName.TEXT, ArmName.SAMPLES_ALONE, ArmName.VALUES_ALONE,
         ArmName.VALUES_TEXT}  # fmt: skip


class Deployment:
    """One whose every corruption comes from `cause`.

    `hardest`: it keeps the cause's predictions only just: what should be gone shows up as often as
    noise may, what fails alone fails in no more than half of the tries.
    """

    def __init__(self, cause: CauseName, chance: random.Random, *, hardest: bool) -> None:
        self.cause, self.chance, self.hardest = cause, chance, hardest
        # Of sessions, under the load; what fails seldom is rather called undecided.
        self.share = chance.choice((0.03, 0.1, 0.3, 0.6, 0.9) if hardest else (0.15, 0.3, 0.6, 0.9))
        self.else_ = {arm.name: chance.random() < 0.5 for arm in ARMS}
        self.is_shared_only = cause is C.EARLY_SEND and chance.random() < 0.5
        is_apart = cause is C.EARLY_SEND or chance.random() < 0.5
        one_server = Exclusion(cause=C.EARLY_SEND, said="one server")
        self.exclusions = () if is_apart else (one_server,)

    def run_arm(
        self,
        bench: Bench,
        name: ArmName,
        *,
        only: Collection[Request] | None = None,
        enough: Callable[[Tally], str | None] = lambda _: None,
        before: ArmRun | None = None,
    ) -> ArmRun:
        tally = before.tally if before else Tally()
        wrong = list(before.wrong) if before else []
        foreign = list(before.foreign) if before else []
        rounds = before.rounds + 1 if before else 1
        chance, draw = self._chance(name), self.chance.random
        for turn in range(TURNS):
            for session in self._sessions(only, turn, rounds):
                is_wrong = draw() < chance
                tally.by_session.setdefault(session, Share()).add(corrupted=is_wrong)
                tally.by_label["canary_mismatch" if is_wrong else "clean"] += 1
                tally.ended_turns[session] += 1
                if is_wrong:
                    wrong.append((session, turn))
                    if draw() < self._named():
                        foreign.append((session, turn))
            if enough(tally):
                break
        return ArmRun(
            name=name, tally=tally, wrong=tuple(wrong), foreign=tuple(foreign), records=(),
            verification=Verification(checks=()), begun=len(tally.by_session), rounds=rounds,
            wedge=None, lag_ms=0.0, restored_tokens=None, interrupted=False, seconds=0.0,
        )  # fmt: skip

    def _sessions(
        self, only: Collection[Request] | None, turn: int, rounds: int
    ) -> Collection[int]:
        """Those that are asked this turn, in the order in which they answer."""
        if only is not None:
            return [session for session, asked in sorted(only) if asked == turn]
        return self.chance.sample(range(SESSIONS * (rounds - 1), SESSIONS * rounds), SESSIONS)

    def _named(self) -> float:
        """How often a wrong reply holds a code of another session."""
        if self.cause is C.FOREIGN_PAGE:
            return NAMED_SHARE if self.hardest else 0.5
        return 0.0

    def _chance(self, arm: ArmName) -> float:
        """Of a turn to go wrong."""
        under_load = _of_turn(self.share)
        if arm in (ArmName.LOAD, ArmName.SAMPLES):
            return 0.0 if arm is ArmName.LOAD and self.is_shared_only else under_load
        if arm is ArmName.SINGLE or arm is ArmName.ABORTS:
            return 0.0
        if arm is ArmName.VALUES:
            return under_load if self.cause in (C.PARSER, C.MODEL_BASELINE) else 0.0
        prediction = PREDICTIONS[arm].get(self.cause)
        is_there = self.else_[arm] if prediction is None else prediction is Prediction.STAYS
        if arm in AGAIN:
            return (MOSTLY if self.hardest else 1.0) if is_there else self.hardest * HARDLY
        return under_load if is_there else self.hardest * _of_turn(NOISE)


def _of_turn(share: float) -> float:
    """The chance of a turn that makes `share` of sessions go wrong."""
    return float(1.0 - (1.0 - share) ** (1.0 / TURNS))


Standings = dict[CauseName, Standing]


@pytest.fixture
def diagnosed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Deployment], Standings]:
    """How every cause of a deployment stands in the end; empty where it never failed."""
    plan = DiagnosePlan(seed=1, output_dir=tmp_path, sessions=SESSIONS, turns=TURNS)
    run = RunDirectory.create(tmp_path, NewRun(command="diagnose", label="x", argv=()))

    def standings(deployment: Deployment) -> Standings:
        monkeypatch.setattr(diagnose_steps, "run_arm", deployment.run_arm)
        bench = Bench(plan, run, Silent(), Endpoint(base_url="http://127.0.0.1:9"))
        bench.target["server_args"] = {}
        work = diagnose_steps.Diagnosis(bench)
        work.case = replace(work.case, exclusions=deployment.exclusions)
        while (arm := next_arm(work.case)) is not None:
            diagnose_steps.STEPS[arm.name](work, arm)
        judged = {each.cause.name: each.standing for each in judge(work.case)}
        return judged if work.case.symptoms else {}

    yield standings
    run.close()


def streams(cause: CauseName, count: int, *, hardest: bool) -> Iterator[Deployment]:
    for number in range(count):
        yield Deployment(cause, random.Random(f"{cause} {number}"), hardest=hardest)


@pytest.mark.parametrize("cause", CORRUPTING)
def test_the_true_cause_is_ruled_out_in_one_of_twenty_at_most(
    cause: CauseName, diagnosed: Callable[[Deployment], Standings]
) -> None:
    found = [diagnosed(each) for each in streams(cause, STREAMS, hardest=True)]
    failed = [each for each in found if each]
    assert len(failed) > STREAMS / 2
    out = sum(each[cause] is Standing.RULED_OUT for each in failed)
    assert out <= ALPHA * len(failed)


@pytest.mark.parametrize("cause", CORRUPTING)
def test_a_cause_that_keeps_its_predictions_is_named_and_no_other(
    cause: CauseName, diagnosed: Callable[[Deployment], Standings]
) -> None:
    named: Counter[tuple[CauseName, ...]] = Counter()
    for deployment in streams(cause, FEW_STREAMS, hardest=False):
        judged = diagnosed(deployment)
        if judged:
            named[tuple(each for each in judged if judged[each] is Standing.SUPPORTED)] += 1
    assert named[cause,] >= 0.9 * named.total()
