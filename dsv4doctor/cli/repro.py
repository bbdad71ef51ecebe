"""`dsv4doctor repro`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.console import say, stdout_console
from dsv4doctor.cli.output import emit_json
from dsv4doctor.cli.resuming import say_unheeded
from dsv4doctor.cli.target_flags import endpoint_of, extra_body_of, lab_of

_LOAD = "Load"


def repro(
    sessions: Annotated[
        int, typer.Option("--sessions", min=1, help="Concurrent sessions.", rich_help_panel=_LOAD)
    ] = 60,
    turns: Annotated[
        int | None,
        typer.Option("--turns", min=1, help="Turns a session.", rich_help_panel=_LOAD),
    ] = None,
    scenario: Annotated[
        str,
        typer.Option("--scenario", help="Name or TOML file (see repro/).", rich_help_panel=_LOAD),
    ] = "tool-calls",
    context_tokens: Annotated[
        str | None,
        typer.Option(
            "--context-tokens",
            metavar="A:B",
            help="Prompt length at the first and the last turn.",
            rich_help_panel=_LOAD,
        ),
    ] = None,
    max_concurrency: Annotated[
        int | None,
        typer.Option(
            "--max-concurrency",
            "--concurrency",
            min=1,
            help="Requests in flight; default: one a session.",
            rich_help_panel=_LOAD,
        ),
    ] = None,
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
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="RUN_DIR", help="Finish a run that was cut short."),
    ] = None,
    fail_on: options.FailOnFlag = options.FailOn.WARNING,
    as_json: options.AsJson = False,
    no_progress: options.NoProgress = False,
    no_color: options.NoColor = False,
) -> None:
    """Drive concurrent multi-turn tool-call sessions and classify every response.

    Sends load to the deployment at --base-url, or starts the lab when there is none. Reads nothing
    else and changes nothing there. Example: dsv4doctor repro --base-url http://gpu7:30000
    """
    from dsv4doctor.cli.live import progress_display
    from dsv4doctor.finding import Severity
    from dsv4doctor.flows.repro import run_repro
    from dsv4doctor.flows.repro_plan import ReproPlan, load_scenario, resumed_plan

    lab = lab_of(lab_index_k, lab_hicache, lab_fault, lab_fix, lab_option)
    endpoint = endpoint_of(base_url, host, port, api_key, header, insecure=insecure, lab=lab)
    with progress_display(enabled=not no_progress, no_color=no_color) as progress:
        plan = ReproPlan(
            scenario=load_scenario(scenario),
            sessions=sessions,
            turns=turns,
            seed=seed,
            context_tokens=_context_range(context_tokens),
            endpoint=endpoint,
            lab=lab,
            model=model,
            extra_body=extra_body_of(extra_request_body),
            max_concurrency=max_concurrency,
            stall_timeout_s=stall_timeout,
            request_timeout_s=timeout,
            output_dir=output_dir,
            argv=tuple(sys.argv),
        )
        if resume is not None:
            plan = resumed_plan(resume, plan)
            say_unheeded(sys.argv[1:])
        outcome = run_repro(plan, progress, fail_on=Severity(fail_on.value))
    if as_json:
        emit_json("repro", outcome.verdict, outcome.exit_code, outcome.findings, outcome.summary)
    else:
        from dsv4doctor.report.formats.console import print_report

        print_report(outcome.report, stdout_console(no_color=no_color))
    if outcome.resume_hint:
        say(f"interrupted; what was seen is saved. To finish it: {outcome.resume_hint}")
    raise typer.Exit(outcome.exit_code)


def _context_range(text: str | None) -> tuple[int, int] | None:
    """`A:B` (or one number for both) in tokens; `2k` and `32K` as `units` reads them."""
    if text is None:
        return None
    from dsv4doctor.units import parse_tokens

    first, _, last = text.partition(":")
    return parse_tokens(first), parse_tokens(last or first)
