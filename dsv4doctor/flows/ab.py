"""`ab`: a controlled experiment: arms in seeded blocks, each proved, compared, and put back.

A block is one launch of one arm. Finished blocks are on disk, and an experiment that was cut short
goes on with the next one; a deployment that was relaunched is back at its baseline at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import REPORT_MARKDOWN, RunDirectory
from dsv4doctor.client.sglang import inspect_server
from dsv4doctor.codec import to_builtins
from dsv4doctor.deploy.document import HostEntry
from dsv4doctor.errors import EXIT_INTERRUPTED, DoctorError
from dsv4doctor.experiment.arms import Arm, ArmKind, refuse_unhonoured
from dsv4doctor.experiment.blocks import Block
from dsv4doctor.experiment.proofs import verify
from dsv4doctor.experiment.verification import Check, Traces
from dsv4doctor.finding import Finding, Severity
from dsv4doctor.flows.ab_block import Driven, Job, drive_block, warm_up, with_counters
from dsv4doctor.flows.ab_load import load_run
from dsv4doctor.flows.ab_results import BlockBook, BlockResult, outcomes_of
from dsv4doctor.flows.ab_setup import (
    COMMAND,
    AbPlan,
    honoured_by_deployment,
    honoured_by_server,
)
from dsv4doctor.flows.ab_site import connector, deployment_of, open_site, relaunched
from dsv4doctor.flows.ab_sources import Source, Standing
from dsv4doctor.flows.ab_state import AbProgress, AbState, ArmState, strongest
from dsv4doctor.flows.ab_verdict import (
    AbFacts,
    body_of,
    exit_code_of,
    findings_of,
    is_decided,
    judge_blocks,
    look,
)
from dsv4doctor.hosts.transport import Transport
from dsv4doctor.progress import Progress
from dsv4doctor.report.ab import build_ab_report
from dsv4doctor.report.document import Report
from dsv4doctor.report.formats import markdown
from dsv4doctor.stats.rates import session_rate
from dsv4doctor.target import parse_endpoint

SECONDS_PER_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AbOutcome:
    """What `ab` has to say. `resume_hint` is the command that goes on with an interrupted run."""

    verdict: str
    exit_code: int
    findings: tuple[Finding, ...]
    body: Mapping[str, Any]
    report: Report
    resume_hint: str = ""


@dataclass(slots=True)
class Experiment:
    """One experiment under way."""

    plan: AbPlan
    run: RunDirectory
    book: BlockBook
    progress: Progress
    target: dict[str, Any] = field(default_factory=dict)
    restored: bool | None = None
    evidence: tuple[str, ...] = ()
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)


def run_ab(
    plan: AbPlan,
    progress: Progress,
    *,
    fail_on: Severity = Severity.WARNING,
    connect: Callable[[HostEntry], Transport] | None = None,
) -> AbOutcome:
    """Do what `plan` says; every finished block is in the run directory when this returns.

    Raises:
        UsageError: if an arm asks for what the target cannot be made.
        DoctorError: if a launch fails or a host is lost; the deployment was put back before.
    """
    _refuse(plan)
    run = _open_run(plan)
    try:
        work = Experiment(plan=plan, run=run, book=BlockBook(run), progress=progress)
        if plan.kind is ArmKind.RUN:
            for number, arm in enumerate(plan.arms):
                work.book.add(load_run(arm, number))
        else:
            with _interruptible(work), _source(work, connect) as source:
                _run_blocks(work, source)
        return _conclude(work, fail_on)
    finally:
        run.close()


def _refuse(plan: AbPlan) -> None:
    """Refuse, before anything is touched, what the target cannot honour."""
    if plan.kind is not ArmKind.SETTINGS:
        return
    if plan.base_url is not None:
        refuse_unhonoured(plan.arms, honoured_by_server(f"the server {plan.base_url}"))
        return
    deployment = deployment_of(plan, plan.output_dir)
    honours = deployment.honours
    name = "the lab" if plan.uses_lab else f"deployment {deployment.name}"
    known = honoured_by_deployment(
        name, honours.factors, any_flag=honours.any_flag, any_variable=honours.any_variable
    )
    refuse_unhonoured(plan.arms, known)


def _open_run(plan: AbPlan) -> RunDirectory:
    if plan.resume is not None:
        return RunDirectory.resume(plan.resume, argv=plan.argv)
    label = "-".join(arm.name for arm in plan.arms)[:40]
    details = {"seed": plan.seed, "plan": plan.manifest(), "begun": []}
    return RunDirectory.create(
        plan.output_dir, NewRun(command=COMMAND, label=label, argv=plan.argv, details=details)
    )


@contextmanager
def _interruptible(work: Experiment) -> Iterator[None]:
    """Ctrl-C at any time: the finished blocks are summed up all the same."""
    try:
        yield
    except KeyboardInterrupt:
        work.interrupted = True


@contextmanager
def _source(work: Experiment, connect: Callable[[HostEntry], Transport] | None) -> Iterator[Source]:
    """Where the blocks run; what was put back is known to `work` when this ends."""
    plan = work.plan
    if not plan.is_relaunched:
        yield _standing(work)
        return
    site = open_site(plan, work.run, connect or connector(plan.ssh_config))
    work.target["deployment"] = site.deployment.name
    work.target["base_url"] = site.deployment.base_url
    source = None
    try:
        with relaunched(plan, work.run, site, work.progress) as source:
            yield source
    except DoctorError:
        if work.book.blocks:
            work.progress.note(f"finished blocks are saved: dsv4doctor ab --resume {work.run.path}")
        raise
    finally:
        if source is not None:
            work.restored, work.evidence = source.restored, tuple(source.evidence)
            work.run.amend(restored=work.restored, restored_evidence=list(work.evidence))


def _standing(work: Experiment) -> Standing:
    plan = work.plan
    base_url = plan.base_url
    if base_url is None and plan.deployment is not None:
        base_url = deployment_of(plan, work.run.path).base_url
    endpoints = {
        arm.name: parse_endpoint(arm.base_url or base_url or "", api_key=plan.api_key)
        for arm in plan.arms
    }
    work.target["base_urls"] = {name: each.base_url for name, each in endpoints.items()}
    return Standing(endpoints=endpoints, progress=work.progress)


def _run_blocks(work: Experiment, source: Source) -> None:
    """Every block that is not yet done, until the budget is spent or nothing can change."""
    plan, began = work.plan, time.monotonic()
    blocks = plan.blocks()
    arms = {arm.name: arm for arm in plan.arms}
    for block in blocks:
        if block.number in work.book.numbers:
            continue
        minutes = (time.monotonic() - began) / SECONDS_PER_MINUTE
        if plan.max_minutes is not None and minutes >= plan.max_minutes:
            work.notes.append(f"Stopped after {minutes:.0f} minutes, as --max-minutes says.")
            return
        if block.number % len(arms) == 0 and _may_stop(work, block.round):
            work.notes.append(
                f"Stopped after {block.round} of {plan.rounds} rounds: every pair is known to "
                "differ."
            )
            return
        result = _run_block(work, source, arms[block.arm], block)
        if result is None:
            work.interrupted = True
            return
        work.book.add(result)
        work.progress.note(_told(result, len(work.book.blocks), len(blocks)))


def _may_stop(work: Experiment, rounds: int) -> bool:
    return rounds > 0 and is_decided(look(work.plan, work.book.blocks, rounds))


def _run_block(work: Experiment, source: Source, arm: Arm, block: Block) -> BlockResult | None:
    """One block from launch to log; None when it was interrupted, and then it does not count."""
    plan, run = work.plan, work.run
    begun = [*run.manifest.get("begun", ()), block.number]
    run.amend(begun=begun)
    job = Job(plan=plan, arm=arm, block=block, run=run, attempt=begun.count(block.number))
    state = _state(work, f"block {block.number + 1}: launching {arm.name}")
    work.progress.update(state)
    endpoint = source.prepare(arm, block.number)
    if not work.target.get("version"):
        _describe(work, endpoint.base_url)
    if plan.is_relaunched:  # one deployment serves one model; standing servers are asked each
        job = replace(job, plan=replace(plan, model=plan.model or work.target.get("model")))
    if not warm_up(job, endpoint):
        return None
    before = source.states(arm)
    counted = source.counters()
    shown = AbProgress(work.progress, _state(work, f"block {block.number + 1}: {arm.name}"))
    driven = drive_block(job, endpoint, shown)
    if driven.interrupted:
        return None
    used = source.counters().since(counted)
    # A wedged server may hang on every question; its launch is the one that was read before.
    after = source.states(arm) if driven.wedge is None else before
    logs, cuda_graph_used = source.keep_logs(arm, block.number)
    traces = with_counters(driven.traces, used, cuda_graph_used=cuda_graph_used)
    checks = _checks(arm, before, after, traces)
    return _result(block, driven, checks, attempt=job.attempt, logs=logs)


def _checks(
    arm: Arm, before: Mapping[str, Any], after: Mapping[str, Any], traces: Traces
) -> tuple[Check, ...]:
    """The proofs of every setting, server by server, then of the client's own."""
    found: dict[tuple[str, str, str], Check] = {}
    for role, (settings, state) in before.items():
        later = after[role][1] if role in after else None
        for check in verify(settings, state, later, traces).checks:
            said = check.read if len(before) == 1 else f"{role}: {check.read}"
            named = Check(setting=check.setting, standing=check.standing, read=said)
            found[role, check.setting, said] = named
    client = [setting for setting in arm.settings if setting.side.value == "client"]
    state = next(iter(before.values()))[1]
    for check in verify(client, state, state, traces).checks:
        found["client", check.setting, check.read] = check
    return tuple(found.values())


def _result(
    block: Block, driven: Driven, checks: tuple[Check, ...], *, attempt: int, logs: tuple[str, ...]
) -> BlockResult:
    tally = driven.tally
    return BlockResult(
        number=block.number,
        round=block.round,
        arm=block.arm,
        prompt_seed=block.prompt_seed,
        began_unix=driven.began_unix,
        seconds=driven.seconds,
        outcomes=driven.outcomes,
        responses=tuple((s.corrupted, s.responses) for s in tally.by_session.values()),
        checks=checks,
        by_label=dict(tally.by_label),
        by_failure=dict(tally.by_failure),
        aborted_by_us=tally.aborted_by_us,
        wedge=driven.wedge,
        attempt=attempt,
        notes=tuple(driven.notes),
        logs=logs,
    )


def _describe(work: Experiment, base_url: str) -> None:
    """What the first server says of itself, for the report."""
    info = inspect_server(parse_endpoint(base_url, api_key=work.plan.api_key))
    work.target.update(engine=info.engine, version=info.version, model=info.model)


def _state(work: Experiment, doing: str) -> AbState:
    plan, blocks = work.plan, work.book.blocks
    rounds = len(blocks) // len(plan.arms)
    seen = look(plan, blocks, rounds) if rounds else ()
    values = [(c.a, c.b, c.e_value) for c in seen]
    rows = []
    for arm in plan.arms:
        outcomes = outcomes_of(arm, blocks)
        rows.append(
            ArmState(
                name=arm.name,
                blocks=len(outcomes.launches),
                sessions=outcomes.sessions,
                corrupted=outcomes.corrupted,
                rate=session_rate(outcomes.corrupted, outcomes.sessions),
                e_value=strongest(arm.name, values),
                not_proved=outcomes.not_proved if outcomes.launches else "",
            )
        )
    return AbState(
        doing=doing,
        blocks_done=len(blocks),
        blocks=plan.rounds * len(plan.arms),
        arms=tuple(rows),
    )


def _told(result: BlockResult, done: int, of: int) -> str:
    failed = len(result.outcomes) - result.sessions
    said = f"{result.corrupted_sessions} of {result.sessions} sessions corrupted"
    return (
        f"block {done} of {of}, {result.arm}: {said}"
        f"{f', {failed} failed' if failed else ''}"
        f"{', wedged' if result.wedge else ''}, {result.seconds:.0f} s"
    )


def _conclude(work: Experiment, fail_on: Severity) -> AbOutcome:
    """Sum up, and write what was summed up before it is shown."""
    run, plan, blocks = work.run, work.plan, work.book.blocks
    judged = judge_blocks(plan, blocks)
    facts = AbFacts(
        run_dir=str(run.path),
        target=work.target,
        restored=work.restored,
        restored_evidence=work.evidence,
        interrupted=work.interrupted,
        segments=len(run.manifest["segments"]),
        notes=tuple(work.notes),
    )
    findings = findings_of(judged, facts)
    verdict = judged.verdict.value
    exit_code = exit_code_of(judged.verdict, findings, facts, fail_on)
    if work.interrupted and facts.restored is not False:
        exit_code = EXIT_INTERRUPTED
    body = body_of(plan, blocks, judged, facts)
    report = build_ab_report(verdict, body, findings=findings, exit_code=exit_code)
    run.amend(target=work.target)
    run.write_findings(to_builtins(findings))
    run.write_summary({"verdict": verdict, "exit_code": exit_code, COMMAND: to_builtins(body)})
    run.write_text(REPORT_MARKDOWN, markdown.render(report))
    run.finish()
    return AbOutcome(
        verdict=verdict,
        exit_code=exit_code,
        findings=findings,
        body=body,
        report=report,
        resume_hint=f"dsv4doctor ab --resume {run.path}" if work.interrupted else "",
    )
