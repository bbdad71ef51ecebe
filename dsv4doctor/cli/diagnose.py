"""`dsv4doctor diagnose`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.bounds import MAX_MINUTES, MAX_SESSIONS
from dsv4doctor.cli.groups import with_groups
from dsv4doctor.cli.target_flags import LabFlags, ServerFlags, extra_body_of
from dsv4doctor.cli.telling import TellingFlags


@with_groups
def diagnose(
    *,
    sessions: Annotated[
        int,
        typer.Option("--sessions", min=1, max=MAX_SESSIONS, help="Concurrent sessions of an arm."),
    ] = 60,
    turns: options.Turns = None,
    scenario: options.ScenarioName = "tool-calls",
    max_minutes: Annotated[
        float,
        typer.Option(
            "--max-minutes", min=0.1, max=MAX_MINUTES, help="No arm begins after so long."
        ),
    ] = 20.0,
    seed: options.Seed = 42,
    stall_timeout: options.StallTimeout = 30.0,
    timeout: options.RequestTimeout = 600.0,
    server: ServerFlags,
    extra_request_body: options.ExtraBody = None,
    lab: LabFlags,
    output_dir: options.OutputDir = Path("reports"),
    telling: TellingFlags,
) -> None:
    """Find the cause from a client's seat: run the arms that tell the causes apart.

    Sends load to the deployment at --base-url (or to the lab), some of it aborted; changes nothing
    there. Example: dsv4doctor diagnose --base-url http://gpu7:30000
    """
    from dsv4doctor.flows.diagnose import run_diagnose
    from dsv4doctor.flows.diagnose_plan import DiagnosePlan
    from dsv4doctor.flows.repro_plan import load_scenario

    lab_options = lab.asked_for()
    plan = DiagnosePlan(
        seed=seed,
        output_dir=output_dir,
        scenario=load_scenario(scenario),
        sessions=sessions,
        turns=turns,
        endpoint=server.endpoint(lab_options),
        lab=lab_options,
        model=server.model,
        extra_body=extra_body_of(extra_request_body),
        stall_timeout_s=stall_timeout,
        request_timeout_s=timeout,
        max_minutes=max_minutes,
        argv=tuple(sys.argv),
    )
    with telling.progress() as progress:
        outcome = run_diagnose(plan, progress, fail_on=telling.least)
    telling.finish("diagnose", outcome, outcome.report, body=outcome.body)
