"""One block: an arm's sessions driven at a server, judged, and what they left behind."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import to_builtins
from dsv4doctor.deploy.counters import Counters
from dsv4doctor.errors import DoctorError
from dsv4doctor.experiment.arms import Arm
from dsv4doctor.experiment.blocks import Block
from dsv4doctor.experiment.proofs import IMMUNE_TOKENS
from dsv4doctor.experiment.verification import Traces
from dsv4doctor.flows.ab_setup import AbPlan
from dsv4doctor.flows.repro_drive import Work, drive
from dsv4doctor.flows.repro_plan import ReproPlan
from dsv4doctor.flows.tally import Tally
from dsv4doctor.progress import Progress, Silent
from dsv4doctor.scenario import History, Scenario, TurnKind
from dsv4doctor.stats.outcomes import Outcome
from dsv4doctor.target import Endpoint

# Contexts of the factor `context`, in tokens at the first and last turn: with all jitter, short
# prompts stay below where the indexer begins to choose, long ones are above it at the end.
SHORT_CONTEXT = (1000, 1500)
# Passages and values of a call that leave room for six turns there.
SHORT_PASSAGE = 40
SHORT_CANARIES = 1
LONG_CONTEXT = (2700, 5600)


class BlockRecords(RunDirectory):
    """The experiment's run directory as one block sees it: ids and sessions are made unique, and
    every record says its arm, block and attempt. `is_counted` False (warm-up): nothing is kept."""

    def __init__(self, parent: RunDirectory, extra: Mapping[str, Any], *, is_counted: bool) -> None:
        self.path: Path = parent.path
        self.manifest = parent.manifest
        self._parent = parent
        self._extra = extra
        self._is_counted = is_counted
        self.last_prompt_tokens: dict[int, int] = {}
        self.streamed: bool | None = None
        self.reports_cached = False

    def append_record(self, record: Mapping[str, Any]) -> None:
        """Add the record to the experiment's, and note what proves the client's factors."""
        if record["prompt_tokens"] is not None:
            self.last_prompt_tokens[record["session"]] = record["prompt_tokens"]
        if record["response"] is not None:
            self.streamed = bool(record["stream"])
        self.reports_cached = self.reports_cached or record["cached_tokens"] is not None
        if self._is_counted:
            renamed = {"id": self._unique(record["id"]), "session": self._session(record)}
            self._parent.append_record({**record, **renamed, **self._extra})

    def save_raw(self, record_id: str, body: bytes) -> str:
        return self._parent.save_raw(self._unique(record_id), body) if self._is_counted else ""

    def _unique(self, record_id: str) -> str:
        attempt = f"a{self._extra['attempt']}-" if self._extra["attempt"] > 1 else ""
        return f"b{self._extra['block']:03d}-{attempt}{record_id}"

    def _session(self, record: Mapping[str, Any]) -> int:
        return int(self._extra["block"] * self._extra["block_sessions"] + record["session"])


@dataclass(slots=True)
class Driven:
    """What driving a block brought; `traces` are the client's part of the proof."""

    tally: Tally
    outcomes: tuple[Outcome, ...]
    traces: Traces
    seconds: float
    began_unix: float
    wedge: Mapping[str, Any] | None = None
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One attempt at one block."""

    plan: AbPlan
    arm: Arm
    block: Block
    run: RunDirectory
    attempt: int


def drive_block(job: Job, endpoint: Endpoint, progress: Progress) -> Driven:
    """The block's sessions, from the block's prompts, with the arm's client-side settings.

    Raises:
        DoctorError: if the server served nothing at all.
    """
    extra = {
        "arm": job.arm.name,
        "block": job.block.number,
        "round": job.block.round,
        "attempt": job.attempt,
        "block_sessions": job.plan.sessions,
    }
    records = BlockRecords(job.run, extra, is_counted=True)
    work = Work(client_plan(job.plan, job.arm, job.block.prompt_seed), records, progress)
    began, began_unix = time.monotonic(), time.time()
    drive(work, endpoint)
    if work.unreachable is not None:
        raise DoctorError(f"arm {job.arm.name}: {work.unreachable}", "is the server up?")
    return Driven(
        tally=work.tally,
        outcomes=session_outcomes(work.tally, job.plan.sessions, work.plan.turn_count),
        traces=traces_of(work, records),
        seconds=time.monotonic() - began,
        began_unix=began_unix,
        wedge=to_builtins(work.wedge) if work.wedge else None,
        interrupted=work.interrupted,
        notes=work.notes,
    )


def warm_up(job: Job, endpoint: Endpoint) -> bool:
    """A few single-turn sessions of other prompts, not counted; False when interrupted."""
    if not job.plan.warmup:
        return True
    client = client_plan(job.plan, job.arm, job.block.prompt_seed + 1)
    client = replace(client, sessions=job.plan.warmup, turns=1, max_concurrency=None)
    work = Work(client, BlockRecords(job.run, {}, is_counted=False), Silent())
    drive(work, endpoint)
    return not work.interrupted


def session_outcomes(tally: Tally, sessions: int, turns: int) -> tuple[Outcome, ...]:
    """Each session as the statistics take it: a corrupted one counts even if it failed later; a
    clean one counts only when it went to its end."""

    def outcome(session: int) -> Outcome:
        share = tally.by_session.get(session)
        if share is not None and share.corrupted:
            return True
        ended = tally.ended_turns[session] >= turns and session not in tally.failed_sessions
        return False if share is not None and ended else None

    return tuple(outcome(session) for session in range(sessions))


def with_counters(traces: Traces, used: Counters, *, cuda_graph_used: bool | None) -> Traces:
    """The client's traces and the server's together; the client's own count of cached tokens, which
    is the responses' usage, goes first."""
    cached = traces.cached_tokens
    if cached is None and used.cached_tokens is not None:
        cached = int(used.cached_tokens)
    return replace(
        traces,
        host_hit_tokens=None if used.host_hit_tokens is None else int(used.host_hit_tokens),
        cached_tokens=cached,
        accept_length=used.accept_length,
        cuda_graph_used=cuda_graph_used,
    )


def traces_of(work: Work, records: BlockRecords) -> Traces:
    """What the client saw of the arm while it ran."""
    last = records.last_prompt_tokens.values()
    return Traces(
        cached_tokens=work.tally.cached_tokens if records.reports_cached else None,
        peak_in_flight=work.ended.peak_in_flight if work.ended else None,
        prompt_tokens=(min(last), max(last)) if last else None,
        aborted=work.tally.aborted_by_us,
        streamed=records.streamed,
    )


def client_plan(plan: AbPlan, arm: Arm, prompt_seed: int) -> ReproPlan:
    """A block's load as `repro` drives it: the experiment's, with the arm's own settings of it."""
    factors = arm.factors
    concurrency = factors.get("concurrency")
    return ReproPlan(
        scenario=scenario_of(plan.scenario, factors),
        sessions=plan.sessions,
        turns=plan.turns,
        seed=prompt_seed,
        model=plan.model,
        extra_body=plan.extra_body,
        max_concurrency=int(concurrency) if concurrency else None,
        stall_timeout_s=plan.stall_timeout_s,
        request_timeout_s=plan.request_timeout_s,
        output_dir=plan.output_dir,
    )


def scenario_of(scenario: Scenario, factors: Mapping[str, str]) -> Scenario:
    """The scenario with the arm's client-side settings in it."""
    if factors.get("context") == "short":
        scenario = _short(scenario)
    elif factors.get("context") == "long":
        scenario = replace(scenario, context_tokens=_long(scenario))
    if factors.get("aborts") == "off":
        kinds = tuple(k for k in scenario.turn_kinds if k is not TurnKind.ABORTED)
        scenario = replace(scenario, turn_kinds=kinds or (TurnKind.TOOL_CALL,))
    elif factors.get("aborts") == "on" and TurnKind.ABORTED not in scenario.turn_kinds:
        scenario = replace(scenario, turn_kinds=(*scenario.turn_kinds, TurnKind.ABORTED))
    if "stream" in factors:
        scenario = replace(scenario, stream=factors["stream"] == "on")
    if "history" in factors:
        scenario = replace(scenario, history=History(factors["history"]))
    if "cache" in factors:
        scenario = replace(scenario, salts_prompts=factors["cache"] == "miss")
    if "temperature" in factors:
        sampling = replace(scenario.sampling, temperature=float(factors["temperature"]))
        scenario = replace(scenario, sampling=sampling)
    return scenario


def _short(scenario: Scenario) -> Scenario:
    """The scenario in contexts where the indexer takes all; what is asked for is made to fit."""
    return replace(
        scenario,
        context_tokens=SHORT_CONTEXT,
        shared_prompt_tokens=min(scenario.shared_prompt_tokens, SHORT_CONTEXT[0] // 2),
        long_text_tokens=min(scenario.long_text_tokens, SHORT_PASSAGE),
        canaries_per_call=min(scenario.canaries_per_call, SHORT_CANARIES),
        calls_per_turn=1,
    )


def _long(scenario: Scenario) -> tuple[int, int]:
    least = scenario.context_tokens[1] * (1 - scenario.context_jitter)
    return scenario.context_tokens if least > IMMUNE_TOKENS else LONG_CONTEXT
