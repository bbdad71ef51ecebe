"""`scan`: read logs line by line, judge every response, say what is in them and when it began."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.logfiles import Line, Source, open_sources
from dsv4doctor.errors import EXIT_DONE, EXIT_FINDINGS, EXIT_INTERRUPTED, UsageError
from dsv4doctor.finding import Finding, Severity
from dsv4doctor.flows.scan_output import VerdictTable
from dsv4doctor.flows.scan_records import (
    BATCH_BYTES,
    BATCH_LINES,
    Judged,
    LineReader,
    Outcome,
    batches,
    begin_worker,
    few_collections,
    hangs_together,
    judge_lines,
    no_idle_threads,
)
from dsv4doctor.flows.scan_tally import Tally
from dsv4doctor.progress import Progress, Silent
from dsv4doctor.units import many

# What one worker gets at a time: long enough to outweigh the hand-over, short enough to spread.
_HAND_OVER_BYTES = 1 << 20
_HAND_OVER_LINES = 2000
# Batches under way a worker; bounds the memory whatever the log's size.
_AHEAD = 3
_UPDATE_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPlan:
    """What to scan and what to keep."""

    files: tuple[str, ...]
    per_record: bool = False
    group_by: tuple[str, ...] = ()
    output: Path | None = None
    jobs: int = 1
    fail_on: Severity = Severity.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanState:
    """How far a scan is: bytes of the files as they lie, seconds."""

    source: str
    bytes_read: int
    bytes_total: int | None
    records: int
    corrupted: int
    elapsed_s: float

    @property
    def left_s(self) -> float | None:
        """Seconds left at the pace so far; None where it cannot be said."""
        if not self.bytes_total or not self.bytes_read:
            return None
        return self.elapsed_s * max(0, self.bytes_total - self.bytes_read) / self.bytes_read


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """What a scan found; `body` is the document's `scan` member. `is_whole` is False when Ctrl-C
    ended it: then what had been read is counted."""

    verdict: str
    exit_code: int
    findings: tuple[Finding, ...]
    body: dict[str, Any]
    is_whole: bool = True


@dataclass(slots=True)
class _Keeper:
    """Where outcomes go: counted always, kept or written where asked for."""

    tally: Tally
    per_record: bool
    table: VerdictTable | None
    records: list[dict[str, Any]] = field(default_factory=list)

    def take(self, outcome: Outcome) -> None:
        self.tally.add(outcome)
        if not isinstance(outcome, Judged):
            return
        if self.table is not None:
            self.table.add(outcome)
        if self.per_record:
            self.records.append(_record(outcome))


def run_scan(plan: ScanPlan, progress: Progress | None = None) -> ScanResult:
    """Scan everything that the plan names.

    Raises:
        UsageError: when not one of the files can be read, or the output cannot be written.
    """
    progress = progress or Silent()
    sources = open_sources(plan.files)
    readable = [source for source in sources if source.problem is None]
    for source in sources:
        if source.problem is not None:
            progress.note(f"{source.name}: {source.problem}")
    if not readable:
        raise UsageError(
            _nothing(sources), "name log files, a quoted glob, or - for standard input"
        )
    if plan.output is not None:
        _refuse_overwriting(readable, plan.output)
    tally = Tally(group_by=plan.group_by)
    few_collections()
    no_idle_threads()
    if plan.output is None:
        keeper = _Keeper(tally, plan.per_record, None)
        is_whole = _read_all(plan, readable, keeper, progress)
    else:
        with VerdictTable(plan.output, plan.group_by) as table:
            keeper = _Keeper(tally, plan.per_record, table)
            is_whole = _read_all(plan, readable, keeper, progress)
    if not is_whole:
        return replace(
            _result(plan, sources, keeper),
            verdict="corrupted" if tally.corrupted else "undecided",
            exit_code=EXIT_INTERRUPTED,
            is_whole=False,
        )
    if tally.records + tally.failures + tally.aborted == 0 and tally.unreadable:
        raise UsageError(
            f"not one record in {readable[0].name}: "
            f"{many(tally.unreadable, 'line')} of no known form",
            "docs/scan.md lists the forms that are read; is this the right file?",
        )
    if tally.records + tally.failures + tally.aborted + tally.unreadable == 0:
        broken = [source for source in sources if source.problem is not None]
        if len(broken) == len(sources):
            raise UsageError(_nothing(sources), "is it a log of requests and responses?")
    return _result(plan, sources, keeper)


def _refuse_overwriting(sources: Sequence[Source], output: Path) -> None:
    for source in sources:
        if source.is_at(output):
            raise UsageError(
                f"--output {output} is a log to scan ({source.name}), and would overwrite it",
                "give another --output, or a glob that does not match it",
            )


def _read_all(
    plan: ScanPlan, sources: Sequence[Source], keeper: _Keeper, progress: Progress
) -> bool:
    """Read and count everything; False when Ctrl-C came before the end."""
    sizes = [source.size for source in sources]
    total = None if any(size is None for size in sizes) else sum(size or 0 for size in sizes)
    started = time.monotonic()
    told = 0.0
    done = 0
    pool = ProcessPoolExecutor(plan.jobs, initializer=begin_worker) if plan.jobs > 1 else None
    try:
        for source in sources:
            for outcome in _outcomes(source, plan, pool):
                keeper.take(outcome)
                now = time.monotonic()
                if now - told >= _UPDATE_S:
                    told = now
                    progress.update(
                        ScanState(
                            source=source.name,
                            bytes_read=done + source.bytes_read,
                            bytes_total=total,
                            records=keeper.tally.records,
                            corrupted=keeper.tally.corrupted,
                            elapsed_s=now - started,
                        )
                    )
            done += source.size or source.bytes_read
            if source.problem is not None:
                progress.note(f"{source.name}: {source.problem}")
    except KeyboardInterrupt:
        return False
    finally:
        if pool is not None:
            pool.shutdown(cancel_futures=True)
    return True


def _outcomes(
    source: Source, plan: ScanPlan, pool: ProcessPoolExecutor | None
) -> Iterator[Outcome]:
    lines = source.lines()
    if pool is None:
        yield from _in_order(source, lines, plan)
        return
    hanging: list[Line] = []
    waiting: deque[Future[list[Outcome]]] = deque()
    for batch in batches(_alone(lines, hanging), _HAND_OVER_BYTES, _HAND_OVER_LINES):
        waiting.append(pool.submit(judge_lines, source.name, batch, plan.group_by))
        if len(waiting) > _AHEAD * plan.jobs:
            yield from waiting.popleft().result()
    while waiting:
        yield from waiting.popleft().result()
    if hanging:
        yield from _in_order(source, chain(hanging, lines), plan)


def _alone(lines: Iterator[Line], hanging: list[Line]) -> Iterator[Line]:
    """The lines before the first stream or log line; that one is put into `hanging`. From there on
    lines hang together, and only one process knows what came before."""
    for line in lines:
        if hangs_together(line):
            hanging.append(line)
            return
        yield line


def _in_order(source: Source, lines: Iterator[Line], plan: ScanPlan) -> Iterator[Outcome]:
    """Judge some lines at a time; those that were read while waiting for Ctrl-C are judged too."""
    reader = LineReader(source.name, plan.group_by)
    batch: list[Line] = []
    held = number = 0
    begun = time.monotonic()
    while True:
        try:
            line = next(lines, None)
        except KeyboardInterrupt:
            yield from reader.judge(batch)
            raise
        if line is None:
            break
        number = line.number
        batch.append(line)
        held += len(line.raw)
        full = held >= BATCH_BYTES or len(batch) >= BATCH_LINES
        # A source that trickles is told of as it comes.
        if full or time.monotonic() - begun >= _UPDATE_S:
            yield from reader.judge(batch)
            batch, held, begun = [], 0, time.monotonic()
    yield from reader.judge(batch)
    yield from reader.finish(number)


def _record(judged: Judged) -> dict[str, Any]:
    judgement = judged.judgement
    return {
        "id": judged.id,
        "primary": judgement.primary.value,
        "also": [label.value for label in judgement.also],
        "evidence": [{"where": item.where, "what": item.what} for item in judgement.evidence],
        "corrupted": judgement.corrupted,
        "source": judged.source,
        "line": judged.line,
    }


def _result(plan: ScanPlan, sources: Sequence[Source], keeper: _Keeper) -> ScanResult:
    tally = keeper.tally
    findings = tuple(tally.findings())
    worst = max((finding.severity.rank for finding in findings), default=-1)
    body: dict[str, Any] = {
        "totals": tally.totals(),
        "sources": [{"name": source.name, "problem": source.problem} for source in sources],
        "unreadable": [
            {"where": f"{item.source}:{item.line}", "problem": item.problem}
            for item in tally.unreadable_named
        ],
        "onset": tally.onset(),
        "over_time": {"bucket_s": tally.trend.seconds, "buckets": tally.trend.buckets()},
    }
    if plan.group_by:
        body["groups"] = tally.groups()
    if plan.per_record:
        body["records"] = keeper.records
    return ScanResult(
        verdict="corrupted" if tally.corrupted else "clean",
        exit_code=EXIT_FINDINGS if worst >= plan.fail_on.rank else EXIT_DONE,
        findings=findings,
        body=body,
    )


def _nothing(sources: Sequence[Source]) -> str:
    if not sources:
        return "nothing to scan"
    first = sources[0]
    rest = f" (and {len(sources) - 1} more)" if len(sources) > 1 else ""
    return f"{first.name} {first.problem}{rest}"
