"""`diagnose`: the smallest set of arms that tells the causes apart, from a client's seat alone.

Each arm is chosen by what still stands, stops when it has said enough, and is on disk before the
next is chosen. Nothing on the server is changed but its prefix cache, by being used.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import REPORT_MARKDOWN, RunDirectory
from dsv4doctor.client.sglang import inspect_server
from dsv4doctor.codec import to_builtins
from dsv4doctor.differential.arms import ArmName, ArmSpec
from dsv4doctor.differential.causes import CauseName, Symptom
from dsv4doctor.differential.order import next_arm
from dsv4doctor.differential.readings import Case, Exclusion, Reading
from dsv4doctor.errors import EXIT_INTERRUPTED, DoctorError
from dsv4doctor.finding import Finding, Severity
from dsv4doctor.flows.diagnose_arms import MOST_ROUNDS, ArmRun, Bench, different_sessions, run_arm
from dsv4doctor.flows.diagnose_plan import COMMAND, DiagnosePlan
from dsv4doctor.flows.diagnose_server import exclusions
from dsv4doctor.flows.diagnose_text import check_texts
from dsv4doctor.flows.diagnose_verdict import (
    DiagnoseFacts,
    body_of,
    exit_code_of,
    findings_of,
)
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
from dsv4doctor.flows.live_target import secrets_of, serving
from dsv4doctor.flows.tally import Tally
from dsv4doctor.load.options import RunOptions
from dsv4doctor.load.probing import probe_server
from dsv4doctor.progress import Progress
from dsv4doctor.redact import scrub_value
from dsv4doctor.report.diagnose import build_diagnose_report
from dsv4doctor.report.document import Report
from dsv4doctor.report.formats import markdown

# A lag of less than this share of the stall time cannot have made a request fail.
LATE_SHARE = 0.25

_LOAD, _VALUES = Symptom.CORRUPT_UNDER_LOAD, Symptom.CORRUPT_VALUES
_SHARED = Symptom.CORRUPT_WHEN_SHARED
_UNDER_LOAD, _WITH_ABORTS = Symptom.WEDGED_UNDER_LOAD, Symptom.WEDGED_WITH_ABORTS


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseOutcome:
    """What `diagnose` has to say."""

    verdict: str
    exit_code: int
    findings: tuple[Finding, ...]
    body: Mapping[str, Any]
    report: Report


@dataclass(slots=True)
class Diagnosis:
    """A diagnosis under way."""

    bench: Bench
    case: Case = field(default_factory=Case)
    runs: dict[ArmName, ArmRun] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
    began: float = field(default_factory=time.monotonic)

    def add(self, reading: Reading) -> None:
        self.case = replace(self.case, readings=(*self.case.readings, reading))
        self.bench.progress.note(f"{reading.arm}: {reading.said}")


def run_diagnose(
    plan: DiagnosePlan, progress: Progress, *, fail_on: Severity = Severity.WARNING
) -> DiagnoseOutcome:
    """Do what `plan` says; everything seen is in the run directory when this returns.

    Raises:
        DoctorError: if the server cannot be reached or serves nothing, or the lab does not start.
    """
    details = {"seed": plan.seed, "plan": plan.manifest()}
    run = RunDirectory.create(
        plan.output_dir,
        NewRun(command=COMMAND, label=plan.scenario.name, argv=plan.argv, details=details),
    )
    try:
        with serving(plan, run.path, progress) as endpoint:
            bench = Bench(plan, run, progress, endpoint, secrets_of(endpoint))
            work = Diagnosis(bench)
            try:
                _ask_server(work)
                _run_arms(work)
            except KeyboardInterrupt:
                work.interrupted = True
        return _conclude(work, fail_on)
    finally:
        run.close()


def _ask_server(work: Diagnosis) -> None:
    info = inspect_server(work.bench.endpoint)
    args = scrub_value(dict(info.server_args), work.bench.secrets)
    work.bench.target.update(
        base_url=work.bench.endpoint.base_url, engine=info.engine, version=info.version,
        model=work.bench.plan.model or info.model, server_args=args,
    )  # fmt: skip
    work.case = replace(work.case, exclusions=exclusions(info.server_args, info.version))


def _run_arms(work: Diagnosis) -> None:
    budget_s = work.bench.plan.max_minutes * 60
    while (arm := next_arm(work.case)) is not None:
        if time.monotonic() - work.began > budget_s:
            work.notes.append(
                f"{work.bench.plan.max_minutes:g} minutes are over: {arm.name} not run"
            )
            return
        work.bench.progress.note(f"arm {arm.name}: {arm.changes}")
        try:
            _ARMS[arm.name](work, arm)
        except DoctorError as problem:
            if not work.runs:
                raise
            work.notes.append(str(problem))
            return
        run = work.runs.get(arm.name)
        if run is None:
            continue
        _note_lateness(work, run)
        if run.interrupted:
            work.interrupted = True
            return
        if run.wedge is not None and not _generates(work):
            work.notes.append("The server gives no token any more: no further arm could be run.")
            return


def _note_lateness(work: Diagnosis, run: ArmRun) -> None:
    """Failures are ours where our own event loop stood still for a good part of a stall time."""
    limit_ms = LATE_SHARE * work.bench.plan.stall_timeout_s * 1000
    if run.lag_ms >= limit_ms and run.tally.failures and run.wedge is None:
        said = (
            f"{run.name}: {run.tally.failures} requests failed while this client was up to "
            f"{run.lag_ms / 1000:.1f} s late"
        )
        work.case = replace(work.case, late=(*work.case.late, said))


def _generates(work: Diagnosis) -> bool:
    model = str(work.bench.target.get("model") or "")
    probed = asyncio.run(probe_server(work.bench.endpoint, RunOptions(model=model)))
    return probed.generates


def _load(work: Diagnosis, arm: ArmSpec) -> None:
    run = _until_enough(work, arm.name)
    if run.restored_tokens == 0.0:
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


_ARMS: Mapping[ArmName, Callable[[Diagnosis, ArmSpec], None]] = {
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


def _conclude(work: Diagnosis, fail_on: Severity) -> DiagnoseOutcome:
    """Sum up, and write what was summed up before it is shown."""
    run = work.bench.run
    facts = DiagnoseFacts(
        run_dir=str(run.path),
        target=work.bench.target,
        plan=work.bench.plan,
        runs=work.runs,
        notes=tuple(work.notes),
        interrupted=work.interrupted,
        seconds=time.monotonic() - work.began,
    )
    body = body_of(work.case, facts)
    verdict = str(body["verdict"])
    findings = findings_of(work.case, facts)
    exit_code = EXIT_INTERRUPTED if work.interrupted else exit_code_of(verdict, findings, fail_on)
    report = build_diagnose_report(verdict, body, findings=findings, exit_code=exit_code)
    run.amend(target=work.bench.target)
    run.write_findings(to_builtins(findings))
    run.write_summary({"verdict": verdict, "exit_code": exit_code, COMMAND: to_builtins(body)})
    run.write_text(REPORT_MARKDOWN, markdown.render(report))
    run.finish()
    return DiagnoseOutcome(
        verdict=verdict, exit_code=exit_code, findings=findings, body=body, report=report
    )
