"""`ab`: a controlled experiment: arms in seeded blocks, each proved, compared, and put back.

A block is one launch of one arm. Finished blocks are on disk, and an experiment that was cut short
goes on with the next one; a deployment that was relaunched is back at its baseline at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.deploy.document import HostEntry
from dsv4doctor.errors import EXIT_INTERRUPTED, DoctorError
from dsv4doctor.experiment.arms import ArmKind, refuse_unhonoured
from dsv4doctor.finding import Severity
from dsv4doctor.flows.ab_deployment import connector, deployment_of, open_site
from dsv4doctor.flows.ab_load import load_run
from dsv4doctor.flows.ab_results import BlockBook
from dsv4doctor.flows.ab_rounds import Experiment, run_blocks
from dsv4doctor.flows.ab_setup import (
    COMMAND,
    AbPlan,
    honoured_by_deployment,
    honoured_by_server,
)
from dsv4doctor.flows.ab_site import relaunched
from dsv4doctor.flows.ab_sources import Source, Standing
from dsv4doctor.flows.ab_verdict import (
    AbFacts,
    body_of,
    exit_code_of,
    findings_of,
    judge_blocks,
)
from dsv4doctor.flows.conclusion import Conclusion, write_conclusion
from dsv4doctor.flows.driving import interruptible, segment_of
from dsv4doctor.hosts.transport import Transport
from dsv4doctor.progress import Progress
from dsv4doctor.report.ab import build_ab_report
from dsv4doctor.target import parse_endpoint


def run_ab(
    plan: AbPlan,
    progress: Progress,
    *,
    fail_on: Severity = Severity.WARNING,
    connect: Callable[[HostEntry], Transport] | None = None,
) -> Conclusion:
    """Do what `plan` says; every finished block is in the run directory when this returns.

    Raises:
        UsageError: if an arm asks for what the target cannot be made.
        DoctorError: if a launch fails or a host is lost; the deployment was put back before.
    """
    _refuse(plan)
    run = _open_run(plan)
    with run.writing():
        work = Experiment(plan=plan, run=run, book=BlockBook(run), progress=progress)
        if plan.kind is ArmKind.RUN:
            for number, arm in enumerate(plan.arms):
                work.book.add(load_run(arm, number))
        else:
            with interruptible(work), _source(work, connect) as source:
                run_blocks(work, source)
        return _conclude(work, fail_on)


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


def _conclude(work: Experiment, fail_on: Severity) -> Conclusion:
    """Sum up, and write what was summed up before it is shown."""
    run, plan, blocks = work.run, work.plan, work.book.blocks
    judged = judge_blocks(plan, blocks)
    facts = AbFacts(
        run_dir=str(run.path),
        target=work.target,
        restored=work.restored,
        restored_evidence=work.evidence,
        interrupted=work.interrupted,
        segments=segment_of(run),
        notes=tuple(work.notes),
    )
    findings = findings_of(judged, facts)
    verdict = judged.verdict.value
    exit_code = exit_code_of(judged.verdict, findings, facts, fail_on)
    if work.interrupted and facts.restored is not False:
        exit_code = EXIT_INTERRUPTED
    body = body_of(plan, blocks, judged, facts)
    report = build_ab_report(verdict, body, findings=findings, exit_code=exit_code)
    conclusion = Conclusion(
        verdict=verdict,
        exit_code=exit_code,
        findings=findings,
        body=body,
        report=report,
        resume_hint=f"dsv4doctor ab --resume {run.path}" if work.interrupted else "",
    )
    # An arm's records are many runs in one: the page is of a run.
    write_conclusion(run, conclusion, work.target, has_page=False)
    return conclusion
