"""What each arm does: its load driven, its reading taken, the case grown by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from dsv4doctor.differential.arms import ArmName, ArmSpec
from dsv4doctor.differential.causes import CauseName, Symptom
from dsv4doctor.differential.readings import Case, Exclusion, Reading
from dsv4doctor.flows.diagnose_arms import MOST_ROUNDS, ArmRun, Bench, different_sessions, run_arm
from dsv4doctor.flows.diagnose_text import check_texts
from dsv4doctor.flows.diagnose_weighing import (
    PLENTY,
    REPLAYS,
    compared,
    foreign_mark,
    is_enough,
    is_plenty,
    reached,
    screen,
    sent_again,
    wedge_reading,
)
from dsv4doctor.flows.tally import Tally

_LOAD, _VALUES = Symptom.CORRUPT_UNDER_LOAD, Symptom.CORRUPT_VALUES
_SHARED = Symptom.CORRUPT_WHEN_SHARED
_UNDER_LOAD, _WITH_ABORTS = Symptom.WEDGED_UNDER_LOAD, Symptom.WEDGED_WITH_ABORTS


@dataclass(slots=True)
class Diagnosis:
    """A diagnosis under way; `problem` is what kept it from being one."""

    bench: Bench
    case: Case = field(default_factory=Case)
    runs: dict[ArmName, ArmRun] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    problem: str = ""
    began: float = field(default_factory=time.monotonic)

    def add(self, reading: Reading) -> None:
        self.case = replace(self.case, readings=(*self.case.readings, reading))
        self.bench.progress.note(f"{reading.arm}: {reading.said}")


def _load(work: Diagnosis, arm: ArmSpec) -> None:
    run = _until_enough(work, arm.name)
    if run.restored_tokens == 0.0 and run.tally.responses and not run.interrupted:
        said = "the server's counters say that nothing was restored from a host during the load"
        nothing = Exclusion(cause=CauseName.INDEX_K_STALE_READ, said=said)
        work.case = replace(work.case, exclusions=(*work.case.exclusions, nothing))
    _screened(work, run, _LOAD, _UNDER_LOAD)


def _samples(work: Diagnosis, arm: ArmSpec) -> None:
    _screened(work, _until_enough(work, arm.name), _SHARED, _UNDER_LOAD)


def _until_enough(work: Diagnosis, name: ArmName) -> ArmRun:
    """A load that is clean once is not repeated; one that went wrong goes on until others can be
    compared with it."""
    sessions = work.bench.plan.sessions

    def enough(tally: Tally) -> str | None:
        return "enough went wrong" if is_enough(tally, sessions) else None

    run = work.runs[name] = run_arm(work.bench, name, enough=enough)
    while run.wrong and _may_go_on(run) and not is_enough(run.tally, sessions):
        run = work.runs[name] = run_arm(work.bench, name, enough=enough, before=run)
    return run


def _may_go_on(run: ArmRun) -> bool:
    return run.rounds < MOST_ROUNDS and run.wedge is None and not run.interrupted


def _values(work: Diagnosis, arm: ArmSpec) -> None:
    run = work.runs[arm.name] = run_arm(work.bench, arm.name)
    _screened(work, run, _VALUES, _UNDER_LOAD)


def _single(work: Diagnosis, arm: ArmSpec) -> None:
    """The load has run already; it goes on only where the samples needed further rounds."""
    samples, load = work.runs[ArmName.SAMPLES], work.runs[ArmName.LOAD]
    while _may_go_on(load) and load.rounds < samples.rounds:
        if compared(samples, load).goes >= PLENTY:
            break
        load = work.runs[ArmName.LOAD] = run_arm(work.bench, ArmName.LOAD, before=load)
    work.add(replace(compared(samples, load), arm=arm.name))


def _screened(work: Diagnosis, run: ArmRun, corrupt: Symptom, wedge: Symptom) -> None:
    if run.wrong:
        work.case = replace(work.case, foreign=(*work.case.foreign, foreign_mark(run, corrupt)))
    work.add(screen(run, corrupt, wedge))


def _aborts(work: Diagnosis, arm: ArmSpec) -> None:
    run = work.runs[arm.name] = run_arm(work.bench, arm.name)
    if run.wedge is not None:
        load = work.runs.get(ArmName.LOAD)
        wedged = wedge_reading(load.tally if load else None, run)
        work.case = replace(work.case, wedged=wedged)
    work.add(screen(run, None, _WITH_ABORTS))
    if run.wrong and not work.case.symptoms & {_LOAD, _SHARED, _VALUES}:
        work.notes.append(
            f"{len(run.wrong)} replies were wrong with aborts, none without: no arm looks into that"
        )


def _other_load(work: Diagnosis, arm: ArmSpec) -> None:
    """As many rounds as the load had, as far into them as it went, unless less says enough."""
    load = work.runs[ArmName.LOAD]
    turns, sessions = reached(load), work.bench.plan.sessions
    run: ArmRun | None = None

    def enough(tally: Tally) -> str | None:
        rounds = 1 if run is None else run.rounds + 1
        if is_plenty(tally, rounds * sessions):
            return "enough went wrong"
        ended = [tally.ended_turns[session] >= turns for session in range(rounds * sessions)]
        return "the load had gone no further" if all(ended) else None

    while run is None or (_may_go_on(run) and run.rounds < load.rounds):
        run = work.runs[arm.name] = run_arm(work.bench, arm.name, enough=enough, before=run)
        reading = compared(load, run)
        if max(reading.goes, reading.stays) >= PLENTY:
            break
    work.add(compared(load, run))


def _again(source: ArmName) -> Callable[[Diagnosis, ArmSpec], None]:
    def arm_again(work: Diagnosis, arm: ArmSpec) -> None:
        chosen = different_sessions(work.runs[source].wrong, REPLAYS)
        run = work.runs[arm.name] = run_arm(work.bench, arm.name, only=chosen)
        work.add(sent_again(run, len(chosen)))

    return arm_again


def _text(source: ArmName) -> Callable[[Diagnosis, ArmSpec], None]:
    """The requests that failed alone: is their text right, however it is read?"""

    def arm_text(work: Diagnosis, arm: ArmSpec) -> None:
        alone = work.runs[source]
        run = work.runs[arm.name] = run_arm(work.bench, arm.name, only=alone.wrong)
        parser = work.bench.target["server_args"].get("tool_call_parser")
        check = check_texts(work.bench.endpoint, run.records, parser)
        reading = sent_again(run, len(alone.wrong), right_texts=check.right)
        streamed = check_texts(work.bench.endpoint, alone.records, parser)
        told = [said for said in (check.said, streamed.said) if said]
        work.add(replace(reading, said="; ".join([f"not streamed, {reading.said}", *told])))

    return arm_text


STEPS: Mapping[ArmName, Callable[[Diagnosis, ArmSpec], None]] = {
    ArmName.LOAD: _load,
    ArmName.ALONE: _again(ArmName.LOAD),
    ArmName.TEXT: _text(ArmName.ALONE),
    ArmName.MISS: _other_load,
    ArmName.SHORT: _other_load,
    ArmName.PRIVATE: _other_load,
    ArmName.FEW: _other_load,
    ArmName.SAMPLES: _samples,
    ArmName.SAMPLES_ALONE: _again(ArmName.SAMPLES),
    ArmName.SINGLE: _single,
    ArmName.VALUES: _values,
    ArmName.VALUES_ALONE: _again(ArmName.VALUES),
    ArmName.VALUES_TEXT: _text(ArmName.VALUES_ALONE),
    ArmName.ABORTS: _aborts,
}
