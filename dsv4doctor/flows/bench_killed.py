"""A bench that never got to its summary, told from its records and its whole blocks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import DoctorError
from dsv4doctor.finding import Severity
from dsv4doctor.flows.bench_book import BenchBook, facts_in
from dsv4doctor.flows.bench_plan import BenchPlan, plan_from
from dsv4doctor.flows.bench_summary import BenchFacts, summarise_bench
from dsv4doctor.flows.bench_verdict import bench_findings, exit_code_of, verdict_of
from dsv4doctor.flows.cut_short import SoFar
from dsv4doctor.report.members import mapping

# What a record must have to be counted; a line that lost one of these was written by nobody's run.
_COUNTED = frozenset(
    {"session", "turn", "kind", "level", "block", "segment", "aborted", "failure", "primary",
     "also", "corrupted", "evidence", "stream", "prompt_tokens", "completion_tokens",
     "cached_tokens", "sent_unix", "ttft_ms", "itl_ms", "e2e_latency_ms"}
)  # fmt: skip


def sum_up_bench(directory: RunDirectory) -> SoFar:
    """What the records of a killed bench say; only whole blocks are measured.

    Raises:
        DoctorError: if its plan is damaged.
    """
    try:
        plan = plan_from(
            mapping(directory.manifest.get("plan")), BenchPlan(seed=0, output_dir=Path())
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DoctorError(
            f"{directory.path}/run.json is damaged: {error}", "run the bench again"
        ) from error
    book = BenchBook()
    for record in directory.records():
        if record.keys() >= _COUNTED and isinstance(record["level"], int):
            book.add(record)
    whole = [facts for facts in facts_in(directory.manifest) if facts.level < len(plan.levels)]
    facts = _facts(directory, plan)
    summary = summarise_bench(book, whole, facts)
    verdict = verdict_of(book, facts, summary)
    findings = bench_findings(book, facts, summary, verdict)
    return SoFar(
        verdict=verdict,
        exit_code=exit_code_of(verdict, findings, Severity.WARNING),
        body=summary,
        findings=to_builtins(findings),
    )


def _facts(directory: RunDirectory, plan: BenchPlan) -> BenchFacts:
    manifest = directory.manifest
    saved: Mapping[str, Any] = mapping(manifest.get("plan"))
    target = {name: saved.get(name) for name in ("base_url", "lab", "model")}
    return BenchFacts(
        run_dir=str(directory.path),
        target=mapping(manifest.get("target")) or target,
        workload=plan.workload(),
        concurrencies=tuple(level.max_concurrency for level in plan.levels),
        num_prompts=tuple(level.num_prompts for level in plan.levels),
        blocks=plan.blocks,
        warmup_requests=plan.warmup_requests,
        interrupted=True,
        segments=len(manifest["segments"]),
        torn_lines=directory.torn_lines,
    )
