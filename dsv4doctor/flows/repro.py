"""`repro`: drive sessions at a deployment or at the lab, judge every reply, say what it means.

Each reply is judged and on disk before anything shows it. A killed run is finished by `--resume`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import EXIT_INTERRUPTED
from dsv4doctor.finding import Severity
from dsv4doctor.flows.conclusion import Conclusion, write_conclusion
from dsv4doctor.flows.driving import interruptible, lag_figures, segment_of
from dsv4doctor.flows.live_target import secrets_of, serving
from dsv4doctor.flows.repro_drive import Work, drive, replay
from dsv4doctor.flows.repro_plan import ReproPlan
from dsv4doctor.flows.repro_verdict import (
    RunFacts,
    exit_code_of,
    findings_of,
    summarise,
    verdict_of,
)
from dsv4doctor.progress import Progress

if TYPE_CHECKING:
    pass


def run_repro(
    plan: ReproPlan, progress: Progress, *, fail_on: Severity = Severity.WARNING
) -> Conclusion:
    """Do what `plan` says; everything seen is in the run directory when this returns.

    Raises:
        UsageError: if the plan cannot be carried out by any server.
        DoctorError: if the run directory cannot be written, or the lab does not start.
    """
    plan.check()
    run = _open_run(plan)
    with run.writing():
        work = Work(plan, run, progress)
        replay(work)
        with interruptible(work), serving(plan, run.path, progress) as endpoint:
            work.secrets = secrets_of(endpoint)
            work.target.update(base_url=endpoint.base_url, lab=plan.manifest()["lab"])
            drive(work, endpoint)
        return _conclude(work, fail_on)


def _open_run(plan: ReproPlan) -> RunDirectory:
    if plan.resume is not None:
        return RunDirectory.resume(plan.resume, argv=plan.argv)
    details = {"seed": plan.seed, "plan": plan.manifest()}
    return RunDirectory.create(
        plan.output_dir,
        NewRun(command="repro", label=plan.scenario.name, argv=plan.argv, details=details),
    )


def _conclude(work: Work, fail_on: Severity) -> Conclusion:
    """Sum up, and write what was summed up before it is shown."""
    # Reports are made when there is something to tell, and imported then.
    from dsv4doctor.report.build import build_repro_report

    run, tally = work.run, work.tally
    facts = _facts(work)
    verdict = verdict_of(tally, facts)
    findings = findings_of(tally, facts, verdict)
    exit_code = EXIT_INTERRUPTED if work.interrupted else exit_code_of(verdict, findings, fail_on)
    summary = summarise(tally, facts)
    examples = [record for kept in tally.examples.values() for record in kept]
    report = build_repro_report(
        verdict, summary, findings=findings, examples=examples, exit_code=exit_code
    )
    conclusion = Conclusion(
        verdict=verdict,
        exit_code=exit_code,
        findings=findings,
        body=summary,
        report=report,
        resume_hint=f"dsv4doctor repro --resume {run.path}" if work.interrupted else "",
    )
    write_conclusion(run, conclusion, work.target, has_page=True)
    return conclusion


def _facts(work: Work) -> RunFacts:
    plan, ended = work.plan, work.ended
    return RunFacts(
        run_dir=str(work.run.path),
        target=work.target,
        scenario=plan.scenario.name,
        seed=plan.seed,
        sessions=plan.sessions,
        turns=plan.turn_count,
        context_tokens=plan.context_tokens,
        wedge=to_builtins(work.wedge) if work.wedge else None,
        client_lag_ms=lag_figures(ended.client_lag) if ended else None,
        timings_valid=ended.timings_valid if ended else None,
        interrupted=work.interrupted,
        unreachable=work.unreachable,
        segments=segment_of(work.run),
        torn_lines=work.run.torn_lines,
        notes=tuple(work.notes),
    )
