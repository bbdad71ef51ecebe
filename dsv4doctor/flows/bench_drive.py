"""The middle of `bench`: warm up, run block after block, judge and keep every reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.flows.bench_book import BenchBook, BlockFacts, facts_in
from dsv4doctor.flows.bench_plan import BenchPlan, BlockPlan
from dsv4doctor.flows.bench_prompts import scripts_of, warmup_scripts
from dsv4doctor.flows.bench_state import BenchState
from dsv4doctor.flows.driving import (
    as_sent,
    default_model,
    lag_figures,
    note_wedge,
    segment_of,
    write_record,
)
from dsv4doctor.flows.live_target import Inspection
from dsv4doctor.label import Judgement
from dsv4doctor.load.arrivals import offsets_s, ramp_s
from dsv4doctor.load.runner import (
    LoadRun,
    RunEnd,
    RunEnded,
    RunOptions,
    Tick,
    TurnDone,
    Wedge,
    run_sessions,
)
from dsv4doctor.progress import Progress
from dsv4doctor.record import exchange_of
from dsv4doctor.redact import scrub_value
from dsv4doctor.target import Endpoint

# Replies wait to be judged until their block is over, so that judging takes no time from reading;
# of a block that is cut short nothing is measured, so nothing is lost by it. Past so many bytes
# they are judged as they come.
HELD_BYTES = 128 * 1024 * 1024


@dataclass(slots=True)
class BenchWork:
    """One bench under way: what it was told to do, and what it has come to know."""

    plan: BenchPlan
    run: RunDirectory
    progress: Progress
    book: BenchBook = field(default_factory=BenchBook)
    blocks: list[BlockFacts] = field(default_factory=list)
    target: dict[str, Any] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    wedge: Wedge | None = None
    interrupted: bool = False
    unreachable: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def segment(self) -> int:
        return segment_of(self.run)

    @property
    def is_over(self) -> bool:
        return self.interrupted or self.wedge is not None or self.unreachable is not None


def replay(work: BenchWork) -> None:
    """Take in what earlier segments left on disk; blocks that were cut short are run again."""
    for record in work.run.records():
        if isinstance(record.get("level"), int):
            work.book.add(record)
    work.blocks = facts_in(work.run.manifest)


def drive(work: BenchWork, endpoint: Endpoint) -> None:
    """Run the blocks that are not yet done. Ctrl-C ends it in order, with `interrupted` set."""
    plan = work.plan
    model = plan.model or default_model(work, endpoint)
    if model is None:
        return
    inspection = Inspection(endpoint)
    done = {(facts.level, facts.block) for facts in work.blocks}
    state = BenchState(plan, work.blocks, work.book)
    warm: set[int] = set()
    for block in plan.order():
        if work.is_over:
            break
        if (block.level, block.number) in done:
            continue
        if block.level not in warm and plan.warmup_requests:
            warm.add(block.level)
            _warm_up(work, endpoint, model, block.level)
        if not work.is_over:
            _run_block(work, endpoint, _options(work, model, block), state.of(block))
    work.target.update(scrub_value(inspection.result(model), work.secrets))


def _options(work: BenchWork, model: str, block: BlockPlan) -> RunOptions:
    plan = work.plan
    level = plan.levels[block.level]
    return RunOptions(
        model=model,
        max_concurrency=level.max_concurrency,
        expected_sessions=level.num_prompts,
        stall_timeout_s=plan.stall_timeout_s,
        request_timeout_s=plan.request_timeout_s,
        extra_body=plan.extra_body,
        arrivals_s=_arrivals(plan, block),
        run_prefix=work.run.path.name.split("-", 1)[0].lower(),
    )


def _arrivals(plan: BenchPlan, block: BlockPlan) -> dict[int, float]:
    """When the sessions of a block arrive; empty when each starts as soon as a slot is free."""
    level = plan.levels[block.level]
    offsets: tuple[float, ...] = ()
    if plan.request_rate is not None:
        seed = (plan.seed, block.level, block.number)
        offsets = offsets_s(
            level.num_prompts, rate=plan.request_rate, arrival=plan.arrival, seed=seed
        )
    elif plan.ramp_up_s:
        streams = min(level.max_concurrency or level.num_prompts, level.num_prompts)
        offsets = ramp_s(streams, plan.ramp_up_s)
    first = level.first_session + block.number * level.num_prompts
    return {first + number: offset for number, offset in enumerate(offsets)}


def _warm_up(work: BenchWork, endpoint: Endpoint, model: str, level: int) -> None:
    """Send requests that are not measured; when none is served, the rest need not be sent."""
    options = replace(_options(work, model, BlockPlan(level=level, number=0)), arrivals_s={})
    served, failures = 0, Counter[str]()
    with run_sessions(endpoint, warmup_scripts(work.plan, level), options) as load:
        for event in _events(work, load):
            if isinstance(event, TurnDone):
                failure = event.reply.failure
                served += failure is None
                failures.update([] if failure is None else [failure.message])
            elif isinstance(event, Wedge):
                work.wedge = event
    if not served and not work.is_over:
        said = failures.most_common(1)[0][0] if failures else "no request was sent"
        work.unreachable = str(scrub_value(f"no warm-up request was served: {said}", work.secrets))
        work.progress.note(work.unreachable)


def _run_block(work: BenchWork, endpoint: Endpoint, options: RunOptions, state: BenchState) -> None:
    """Run one block; it counts when it came to its end."""
    block = state.block
    ended: RunEnded | None = None
    # Built before the clock starts: writing prompts must not hold up those already sent.
    scripts = list(scripts_of(work.plan, block))
    held: list[TurnDone] = []
    room = HELD_BYTES
    with run_sessions(endpoint, scripts, options) as load:
        for event in _events(work, load):
            if isinstance(event, TurnDone):
                held.append(event)
                room -= len(event.reply.raw)
                if room < 0:
                    _keep(work, held.pop(), block)
            elif isinstance(event, Tick):
                work.progress.update(state.after(event))
            elif isinstance(event, Wedge):
                note_wedge(work, event)
            elif isinstance(event, RunEnded):
                ended = event
    for event in held:
        _keep(work, event, block)
    if ended is None or ended.end is not RunEnd.COMPLETE or work.is_over:
        return
    if not work.book.completed_in(block.level, block.number, work.segment):
        work.unreachable = "Stopped: not one request of a whole block was served."
        return
    _note_block(work, block, ended)


def _note_block(work: BenchWork, block: BlockPlan, ended: RunEnded) -> None:
    facts = BlockFacts(
        level=block.level,
        block=block.number,
        segment=work.segment,
        client_lag_ms=lag_figures(ended.client_lag),
        timings_valid=ended.timings_valid,
    )
    work.blocks.append(facts)
    work.run.amend(blocks=[asdict(each) for each in work.blocks])


def _events(work: BenchWork, load: LoadRun) -> Iterable[object]:
    """The events of a load; after Ctrl-C the rest of them, with the work marked."""
    try:
        yield from load
    except KeyboardInterrupt:
        work.interrupted = True
        load.stop()
        yield from load


def _keep(work: BenchWork, event: TurnDone, block: BlockPlan) -> None:
    """Judge one reply and put it on disk; only then does it count."""
    event = replace(event, turn=as_sent(event.turn, work.plan.extra_body))
    record = write_record(
        work,
        event,
        _judgement(work, event),
        level=block.level,
        block=block.number,
        max_concurrency=work.plan.levels[block.level].max_concurrency,
    )
    work.book.add(record)


def _judgement(work: BenchWork, event: TurnDone) -> Judgement | None:
    """What the reply is; None where there is none, or where its text has no right form."""
    if event.reply.failure is not None or not work.plan.is_judged:
        return None
    # Imported when the first reply is there, so that the first request leaves sooner.
    from dsv4doctor.detect import judge

    exchange = exchange_of(event.script, event.turn, event.reply)
    if work.plan.prompts:
        # Prompts of the user's own hold no codes of ours.
        exchange = replace(exchange, canary_key=None, session=None, turn=None)
    return judge(exchange)
