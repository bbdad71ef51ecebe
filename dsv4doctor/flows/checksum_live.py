"""`checksum live`: follow index-K's bytes in running ranks, and name the hop where they change.

The ranks are armed, a load is driven (or whatever is served is watched), the probes are drained
beside it, and what they saw is joined: by page and layer within a rank, by room between a prefill
and a decode rank, and by request with the replies' verdicts. Nothing is called clean by a detector
that was not seen to catch a flipped byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dsv4doctor.artifacts.jsonlines import encode
from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import REPORT_MARKDOWN, RunDirectory
from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import EXIT_INTERRUPTED, DoctorError, UsageError
from dsv4doctor.finding import Severity
from dsv4doctor.flows.checksum import Outcome
from dsv4doctor.flows.checksum_live_body import body_of, change_fields, host_rows
from dsv4doctor.flows.checksum_live_collect import Collector
from dsv4doctor.flows.checksum_live_find import begin_watch
from dsv4doctor.flows.checksum_live_findings import findings_of
from dsv4doctor.flows.checksum_live_plan import INSTALL_HINT, LivePlan, sites_of, with_probes
from dsv4doctor.flows.checksum_live_ranks import Watch
from dsv4doctor.flows.checksum_live_verdict import Seen, exit_code_of, verdict_of
from dsv4doctor.flows.cut_short import OBSERVATIONS
from dsv4doctor.flows.live_target import Inspection, first_model, secrets_of, serving
from dsv4doctor.flows.repro_drive import Work, drive
from dsv4doctor.progress import Progress
from dsv4doctor.redact import scrub, scrub_value
from dsv4doctor.target import Endpoint
from dsv4doctor.tracing.trace import Trace
from dsv4doctor.units import many

if TYPE_CHECKING:
    from dsv4doctor.report.document import Report

CHANGES = "changes.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOutcome:
    """What `checksum live` has to say; `outcome.body` is the contract's `checksum` object."""

    outcome: Outcome
    report: Report
    run_dir: str


def run_live(
    plan: LivePlan, progress: Progress, *, fail_on: Severity = Severity.WARNING
) -> LiveOutcome:
    """Do what `plan` says; everything seen is in the run directory when this returns.

    Raises:
        UsageError: if the plan cannot be carried out.
        DoctorError: if the run directory cannot be written.
    """
    if plan.drives:
        plan.load.check()
    run = RunDirectory.create(
        plan.load.output_dir,
        NewRun(
            command="checksum",
            label="live",
            argv=plan.load.argv,
            details={"seed": plan.load.seed, "plan": plan.load.manifest()},
        ),
    )
    with run.writing():
        live = _Live(plan, Work(plan.load, run, progress, sends_rid=True), progress)
        _watch(live)
        return _conclude(live, fail_on)


@dataclass(slots=True)
class _Live:
    """An observation under way; `watch` has no rank where none could be observed."""

    plan: LivePlan
    work: Work
    progress: Progress
    watch: Watch = field(
        default_factory=lambda: Watch(ranks=[], trace=Trace(awaits_sends=False), tests=None)
    )


def _watch(live: _Live) -> None:
    """Observe until it is over; what ends it before its time is known to `live` afterwards."""
    try:
        with with_probes(live.plan) as probed:
            _observe(live, probed)
    except KeyboardInterrupt:
        live.work.interrupted = True
    except UsageError:
        raise
    except DoctorError as problem:
        said = scrub(problem.told, live.work.secrets)
        live.watch.problems.append(said)
        live.progress.note(said)


def _observe(live: _Live, plan: LivePlan) -> None:
    """Arm, load, drain, disarm; a rank is disarmed whatever happens.

    Raises:
        DoctorError: if the server cannot be reached, has no probe, or the lab does not start.
    """
    work = live.work
    with _served(plan, work, live.progress) as endpoint, sites_of(plan, endpoint) as sites:
        watch = live.watch = begin_watch(plan, sites, work.run.path / OBSERVATIONS)
        if not watch.ranks:
            said = "; ".join(watch.unreachable)
            live.progress.note(f"nothing can be observed: {said}; try: {INSTALL_HINT}")
            return
        try:
            with Collector(watch) as collector:
                live.progress.note(_armed(watch))
                if plan.drives and endpoint is not None:
                    drive(work, endpoint)
                else:
                    collector.wait(plan.watch_s)
        finally:
            watch.end()


@contextmanager
def _served(plan: LivePlan, work: Work, progress: Progress) -> Iterator[Endpoint | None]:
    if not plan.has_server:
        yield None
        return
    with serving(plan.load, work.run.path, progress) as endpoint:
        work.secrets = secrets_of(endpoint)
        work.target.update(base_url=endpoint.base_url, lab=plan.load.manifest()["lab"])
        if not plan.drives:
            inspection = Inspection(endpoint)
            model = plan.load.model or first_model(endpoint, work.secrets)
            work.target.update(scrub_value(inspection.result(model), work.secrets))
        yield endpoint


def _armed(watch: Watch) -> str:
    tested = "with the detector's self-test" if watch.tests else "without a self-test"
    names = ", ".join(rank.name for rank in watch.ranks)
    return f"observing {many(len(watch.ranks), 'rank')} {tested}: {names}"


def _conclude(live: _Live, fail_on: Severity) -> LiveOutcome:
    """Judge, and write what was judged before it is shown."""
    from dsv4doctor.report.checksum_live import build_live_report
    from dsv4doctor.report.formats import markdown

    work, watch, run = live.work, live.watch, live.work.run
    seen = Seen.of(live.plan, work, watch, list(run.records()))
    verdict = verdict_of(seen)
    findings = findings_of(seen, verdict)
    code = exit_code_of(verdict, findings, fail_on)
    if work.interrupted:
        code = EXIT_INTERRUPTED
    observed: dict[str, Any] = to_builtins(body_of(seen))
    body = {"hosts": host_rows(watch), "checks": seen.checks(), "live": observed}
    report = build_live_report(
        verdict, observed, findings=[to_builtins(finding) for finding in findings], exit_code=code
    )
    run.amend(target=work.target)
    run.write_findings(to_builtins(findings))
    run.write_summary({"verdict": verdict, "exit_code": code, "checksum": to_builtins(body)})
    run.write_text(CHANGES, _lines(change_fields(each) for each in watch.trace.changes))
    run.write_text(REPORT_MARKDOWN, markdown.render(report))
    _write_page(run, report)
    run.finish()
    return LiveOutcome(
        outcome=Outcome(verdict=verdict, exit_code=code, findings=findings, body=body),
        report=report,
        run_dir=str(run.path),
    )


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(encode(row).decode() + "\n" for row in rows)


def _write_page(run: RunDirectory, report: Report) -> None:
    from dsv4doctor.flows.report_page import REPORT_HTML, html_page

    run.write_text(REPORT_HTML, html_page(report, run.records()))
