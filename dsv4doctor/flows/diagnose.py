"""`diagnose`: the smallest set of arms that tells the causes apart, from a client's seat alone.

Each arm is chosen by what still stands, stops when it has said enough, and is on disk before the
next is chosen. Nothing on the server is changed but its prefix cache, by being used.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import REPORT_MARKDOWN, RunDirectory
from dsv4doctor.client.sglang import inspect_server
from dsv4doctor.codec import to_builtins
from dsv4doctor.differential.order import next_arm
from dsv4doctor.errors import EXIT_INTERRUPTED, DoctorError, UsageError
from dsv4doctor.finding import Finding, Severity
from dsv4doctor.flows.diagnose_arms import ArmRun, Bench
from dsv4doctor.flows.diagnose_plan import COMMAND, DiagnosePlan
from dsv4doctor.flows.diagnose_server import exclusions
from dsv4doctor.flows.diagnose_steps import STEPS, Diagnosis
from dsv4doctor.flows.diagnose_verdict import (
    DiagnoseFacts,
    body_of,
    exit_code_of,
    findings_of,
    verdict_of,
)
from dsv4doctor.flows.live_target import secrets_of, serving
from dsv4doctor.load.options import RunOptions
from dsv4doctor.load.probing import Probed, probe_server
from dsv4doctor.progress import Progress
from dsv4doctor.redact import scrub, scrub_value
from dsv4doctor.report.diagnose import build_diagnose_report
from dsv4doctor.report.document import Report
from dsv4doctor.report.formats import markdown

# A lag of less than this share of the stall time cannot have made a request fail.
LATE_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseOutcome:
    """What `diagnose` has to say."""

    verdict: str
    exit_code: int
    findings: tuple[Finding, ...]
    body: Mapping[str, Any]
    report: Report


def run_diagnose(
    plan: DiagnosePlan, progress: Progress, *, fail_on: Severity = Severity.WARNING
) -> DiagnoseOutcome:
    """Do what `plan` says; everything seen is in the run directory when this returns.

    Raises:
        UsageError: if the lab refuses its switches.
        DoctorError: if the run directory cannot be written.
    """
    details = {"seed": plan.seed, "plan": plan.manifest()}
    run = RunDirectory.create(
        plan.output_dir,
        NewRun(command=COMMAND, label=plan.scenario.name, argv=plan.argv, details=details),
    )
    with run.writing():
        work = Diagnosis(Bench(plan, run, progress))
        try:
            with serving(plan, run.path, progress) as endpoint:
                work.bench.served, work.bench.secrets = endpoint, secrets_of(endpoint)
                _ask_server(work)
                if _is_alive(work):
                    _run_arms(work)
        except KeyboardInterrupt:
            work.interrupted = True
        except UsageError:
            raise
        except DoctorError as problem:
            work.problem = scrub(problem.told, work.bench.secrets)
            progress.note(work.problem)
        return _conclude(work, fail_on)


def _ask_server(work: Diagnosis) -> None:
    info = inspect_server(work.bench.endpoint)
    args = scrub_value(dict(info.server_args), work.bench.secrets)
    work.bench.target.update(
        base_url=work.bench.endpoint.base_url, engine=info.engine, version=info.version,
        model=work.bench.plan.model or info.model, server_args=args,
    )  # fmt: skip
    work.case = replace(work.case, exclusions=exclusions(info.server_args, info.version))


def _is_alive(work: Diagnosis) -> bool:
    """Whether a small generation passes before any load of ours; what stood still before we came
    is nobody's doing that we could see.

    Raises:
        DoctorError: if nothing answers at all, or what answers refuses to generate.
    """
    probed = _probe(work)
    if probed.generates:
        return True
    if not any(probe.answered for probe in probed.probes):
        base_url = work.bench.endpoint.base_url
        raise DoctorError(f"no answer from {base_url}", "is the server up? check --base-url")
    if probed.refusal is not None:
        raise DoctorError(
            f"{work.bench.endpoint.base_url} generates nothing: {probed.refusal}",
            "check --base-url, --api-key and --model",
        )
    said = {probe.name: probe.status for probe in probed.probes}
    work.notes.append(
        f"The server gave no token before any load (/health says {said.get('/health')}): it stands "
        "still already. Take its stacks: dsv4doctor watch --once --stack-dump."
    )
    return False


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
            STEPS[arm.name](work, arm)
        except DoctorError as problem:
            if not work.runs:
                raise
            work.notes.append(str(problem))
            return
        run = work.runs.get(arm.name)
        if run is not None and run.interrupted:
            work.interrupted = True
            return
        if run is not None:
            _note_lateness(work, run)
        _save(work)
        if run is not None and run.wedge is not None and not _probe(work).generates:
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


def _probe(work: Diagnosis) -> Probed:
    plan = work.bench.plan
    model = str(work.bench.target.get("model") or "")
    options = RunOptions(model=model, probe_timeout_s=plan.stall_timeout_s)
    return asyncio.run(probe_server(work.bench.endpoint, options))


def _save(work: Diagnosis) -> None:
    """Write what is known after an arm: this process may be killed in the next."""
    facts = _facts(work, interrupted=True)
    verdict, findings = verdict_of(work.case, facts), findings_of(work.case, facts)
    code = exit_code_of(verdict, findings, Severity.WARNING)
    _write(work, body_of(work.case, facts), findings, code)


def _conclude(work: Diagnosis, fail_on: Severity) -> DiagnoseOutcome:
    """Sum up, and write what was summed up before it is shown."""
    run, facts = work.bench.run, _facts(work, interrupted=work.interrupted)
    if work.interrupted:
        work.bench.progress.note(
            f"interrupted; what was seen is in {run.path}. It cannot be resumed: run "
            "dsv4doctor diagnose again"
        )
    verdict, findings = verdict_of(work.case, facts), findings_of(work.case, facts)
    code = EXIT_INTERRUPTED if work.interrupted else exit_code_of(verdict, findings, fail_on)
    body = body_of(work.case, facts)
    report = build_diagnose_report(verdict, body, findings=findings, exit_code=code)
    run.amend(target=work.bench.target)
    _write(work, body, findings, code)
    run.write_text(REPORT_MARKDOWN, markdown.render(report))
    run.finish()
    return DiagnoseOutcome(
        verdict=verdict,
        exit_code=code,
        findings=findings,
        body=body,
        report=report,
    )


def _write(
    work: Diagnosis, body: Mapping[str, Any], findings: tuple[Finding, ...], code: int
) -> None:
    run = work.bench.run
    run.write_findings(to_builtins(findings))
    run.write_summary(
        {"verdict": body["verdict"], "exit_code": code, COMMAND: to_builtins(dict(body))}
    )


def _facts(work: Diagnosis, *, interrupted: bool) -> DiagnoseFacts:
    return DiagnoseFacts(
        run_dir=str(work.bench.run.path),
        target=work.bench.target,
        plan=work.bench.plan,
        runs=work.runs,
        notes=tuple(work.notes),
        interrupted=interrupted,
        seconds=time.monotonic() - work.began,
        problem=work.problem,
    )
