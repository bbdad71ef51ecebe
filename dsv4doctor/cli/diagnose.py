"""`dsv4doctor diagnose`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.console import stdout_console
from dsv4doctor.cli.output import emit_json
from dsv4doctor.cli.target_flags import endpoint_of, extra_body_of, lab_of

_LOAD = "Load"


def diagnose(
    sessions: Annotated[
        int,
        typer.Option(
            "--sessions", min=1, help="Concurrent sessions of an arm.", rich_help_panel=_LOAD
        ),
    ] = 60,
    turns: Annotated[
        int | None, typer.Option("--turns", min=1, help="Turns a session.", rich_help_panel=_LOAD)
    ] = None,
    scenario: Annotated[
        str,
        typer.Option("--scenario", help="The load: name or TOML file.", rich_help_panel=_LOAD),
    ] = "tool-calls",
    max_minutes: Annotated[
        float,
        typer.Option(
            "--max-minutes", min=0.1, help="No arm begins after so long.", rich_help_panel=_LOAD
        ),
    ] = 20.0,
    seed: options.Seed = 42,
    stall_timeout: options.StallTimeout = 30.0,
    timeout: options.RequestTimeout = 600.0,
    base_url: options.BaseUrl = None,
    host: options.Host = None,
    port: options.Port = None,
    model: options.Model = None,
    api_key: options.ApiKey = None,
    header: options.Headers = None,
    extra_request_body: options.ExtraBody = None,
    insecure: options.Insecure = False,
    lab_index_k: options.LabIndexK = None,
    lab_hicache: options.LabHicache = None,
    lab_fault: options.LabFault = None,
    lab_fix: options.LabFix = None,
    lab_option: options.LabOption = None,
    output_dir: options.OutputDir = Path("reports"),
    fail_on: options.FailOnFlag = options.FailOn.WARNING,
    as_json: options.AsJson = False,
    no_progress: options.NoProgress = False,
    no_color: options.NoColor = False,
) -> None:
    """Find the cause from a client's seat: run the arms that tell the causes apart.

    Sends load to the deployment at --base-url (or to the lab), some of it aborted; changes nothing
    there. Example: dsv4doctor diagnose --base-url http://gpu7:30000
    """
    from dsv4doctor.cli.live import progress_display
    from dsv4doctor.finding import Severity
    from dsv4doctor.flows.diagnose import run_diagnose
    from dsv4doctor.flows.diagnose_plan import DiagnosePlan
    from dsv4doctor.flows.repro_plan import load_scenario

    lab = lab_of(lab_index_k, lab_hicache, lab_fault, lab_fix, lab_option)
    endpoint = endpoint_of(base_url, host, port, api_key, header, insecure=insecure, lab=lab)
    plan = DiagnosePlan(
        seed=seed,
        output_dir=output_dir,
        scenario=load_scenario(scenario),
        sessions=sessions,
        turns=turns,
        endpoint=endpoint,
        lab=lab,
        model=model,
        extra_body=extra_body_of(extra_request_body),
        stall_timeout_s=stall_timeout,
        request_timeout_s=timeout,
        max_minutes=max_minutes,
        argv=tuple(sys.argv),
    )
    with progress_display(enabled=not no_progress, no_color=no_color) as progress:
        outcome = run_diagnose(plan, progress, fail_on=Severity(fail_on.value))
    if as_json:
        emit_json("diagnose", outcome.verdict, outcome.exit_code, outcome.findings, outcome.body)
    else:
        from dsv4doctor.report.formats.console import print_report

        print_report(outcome.report, stdout_console(no_color=no_color))
    raise typer.Exit(outcome.exit_code)
