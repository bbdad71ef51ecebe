"""`bench`: how fast a deployment is, and whether what it says so fast is right.

Blocks of every level in turns, so that drift falls on all alike; each reply judged and on disk
before it counts. An interrupted bench is finished by `--resume`: whole blocks are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import EXIT_INTERRUPTED, UsageError
from dsv4doctor.finding import Severity
from dsv4doctor.flows.bench_compare import Baseline, check_comparable, compare
from dsv4doctor.flows.bench_drive import BenchWork, drive, replay
from dsv4doctor.flows.bench_output import append_sglang_lines, check_output_file
from dsv4doctor.flows.bench_plan import BenchPlan, with_prompts
from dsv4doctor.flows.bench_prompts import check_lengths
from dsv4doctor.flows.bench_summary import BenchFacts, summarise_bench
from dsv4doctor.flows.bench_verdict import bench_findings, exit_code_of, verdict_of
from dsv4doctor.flows.conclusion import Conclusion, write_conclusion
from dsv4doctor.flows.driving import interruptible
from dsv4doctor.flows.live_target import secrets_of, serving
from dsv4doctor.progress import Progress

if TYPE_CHECKING:
    pass

BENCH = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchWishes:
    """What is made of the numbers: a comparison within `margin`, SGLang's file, an exit code."""

    baseline: Path | None = None
    margin: float = 0.05
    output_file: Path | None = None
    output_details: bool = False
    fail_on: Severity = Severity.WARNING


def run_bench(plan: BenchPlan, wishes: BenchWishes, progress: Progress) -> Conclusion:
    """Do what `plan` says; everything seen is in the run directory when this returns.

    Raises:
        UsageError: if the plan cannot be carried out, or the baseline measured something else.
        DoctorError: if a file cannot be written, or the lab does not start.
    """
    plan.check()
    plan = with_prompts(plan)
    check_lengths(plan)
    baseline = _baseline(plan, wishes)
    if wishes.output_file is not None:
        check_output_file(wishes.output_file)
    for level in plan.levels:
        if level.max_concurrency is not None and level.num_prompts < level.max_concurrency:
            progress.note(
                f"{level.num_prompts} requests a block never fill {level.max_concurrency} in flight"
            )
    run = _open_run(plan)
    with run.writing():
        work = BenchWork(plan=plan, run=run, progress=progress)
        replay(work)
        with interruptible(work), serving(plan, run.path, progress) as endpoint:
            work.secrets = secrets_of(endpoint)
            work.target.update(base_url=endpoint.base_url, lab=plan.manifest()["lab"])
            drive(work, endpoint)
        return _conclude(work, wishes, baseline)


def _baseline(plan: BenchPlan, wishes: BenchWishes) -> Baseline | None:
    if wishes.baseline is None:
        return None
    from dsv4doctor.flows.report_load import load_run

    loaded = load_run(wishes.baseline)
    if loaded.command != BENCH:
        raise UsageError(
            f"{wishes.baseline} is a run of `{loaded.command}`",
            "give --baseline a directory that bench made",
        )
    baseline = Baseline(run_dir=str(wishes.baseline), summary=loaded.summary)
    levels = [level.max_concurrency for level in plan.levels]
    check_comparable(baseline, plan.workload(), levels)
    return baseline


def _open_run(plan: BenchPlan) -> RunDirectory:
    if plan.resume is not None:
        return RunDirectory.resume(plan.resume, argv=plan.argv)
    label = "-".join(str(level.max_concurrency or "any") for level in plan.levels)
    details = {"seed": plan.seed, "plan": plan.manifest(), "blocks": []}
    return RunDirectory.create(
        plan.output_dir, NewRun(command=BENCH, label=label, argv=plan.argv, details=details)
    )


def _conclude(work: BenchWork, wishes: BenchWishes, baseline: Baseline | None) -> Conclusion:
    """Sum up, and write what was summed up before it is shown."""
    # Reports are made when there is something to tell, and imported then.
    from dsv4doctor.report.bench import build_bench_report

    run, facts = work.run, _facts(work)
    summary = summarise_bench(work.book, work.blocks, facts)
    if baseline is not None:
        compare(summary, baseline, margin=wishes.margin)
    verdict = verdict_of(work.book, facts, summary)
    findings = bench_findings(work.book, facts, summary, verdict)
    code = exit_code_of(verdict, findings, wishes.fail_on)
    code = EXIT_INTERRUPTED if work.interrupted else code
    report = build_bench_report(verdict, summary, findings=findings, exit_code=code)
    conclusion = Conclusion(
        verdict=verdict,
        exit_code=code,
        findings=findings,
        body=summary,
        report=report,
        resume_hint=f"dsv4doctor bench --resume {run.path}" if work.interrupted else "",
    )
    write_conclusion(run, conclusion, work.target, has_page=True)
    if wishes.output_file is not None:
        records = list(_measured(work)) if wishes.output_details else []
        append_sglang_lines(wishes.output_file, summary, records, details=wishes.output_details)
    return conclusion


def _measured(work: BenchWork) -> Iterator[Mapping[str, Any]]:
    """The records of whole blocks."""
    whole = {(facts.level, facts.block, facts.segment) for facts in work.blocks}
    for record in work.run.records():
        if (record.get("level"), record.get("block"), record.get("segment")) in whole:
            yield record


def _facts(work: BenchWork) -> BenchFacts:
    plan = work.plan
    return BenchFacts(
        run_dir=str(work.run.path),
        target=work.target,
        workload=plan.workload(),
        concurrencies=tuple(level.max_concurrency for level in plan.levels),
        num_prompts=tuple(level.num_prompts for level in plan.levels),
        blocks=plan.blocks,
        warmup_requests=plan.warmup_requests,
        wedge=to_builtins(work.wedge) if work.wedge else None,
        interrupted=work.interrupted,
        unreachable=work.unreachable,
        segments=work.segment,
        torn_lines=work.run.torn_lines,
        notes=tuple(work.notes),
    )
