"""The blocks of an experiment, one after the other: launch, drive, prove, keep."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.client.sglang import inspect_server
from dsv4doctor.experiment.arms import Arm
from dsv4doctor.experiment.blocks import Block
from dsv4doctor.experiment.proofs import verify
from dsv4doctor.experiment.verification import Check, Traces
from dsv4doctor.flows.ab_block import Driven, Job, drive_block, warm_up, with_counters
from dsv4doctor.flows.ab_results import BlockBook, BlockResult, outcomes_of
from dsv4doctor.flows.ab_setup import AbPlan
from dsv4doctor.flows.ab_sources import Source
from dsv4doctor.flows.ab_state import AbProgress, AbState, ArmState, strongest
from dsv4doctor.flows.ab_verdict import is_decided, look
from dsv4doctor.progress import Progress
from dsv4doctor.stats.rates import session_rate
from dsv4doctor.target import parse_endpoint
from dsv4doctor.units import many

SECONDS_PER_MINUTE = 60.0


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


def run_blocks(work: Experiment, source: Source) -> None:
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
                f"Stopped after {block.round} of {many(plan.rounds, 'round')}: every pair is known "
                "to differ."
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
    said = f"{result.corrupted_sessions} of {many(result.sessions, 'session')} corrupted"
    return (
        f"block {done} of {of}, {result.arm}: {said}"
        f"{f', {failed} failed' if failed else ''}"
        f"{', wedged' if result.wedge else ''}, {result.seconds:.0f} s"
    )
