"""`dsv4doctor ab`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.ab_plan import ab_plan
from dsv4doctor.cli.console import say, stdout_console
from dsv4doctor.cli.output import emit_json
from dsv4doctor.errors import UsageError

if TYPE_CHECKING:
    from dsv4doctor.flows.ab_setup import AbPlan, LabChoice

app = typer.Typer(
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(
    "plan",
    help="How many sessions an arm an experiment needs. Example: dsv4doctor ab plan --p0 0.18 "
    "--p1 0.01",
)(ab_plan)

_ARMS = "Arms and target"
_BUDGET = "Budget and promises"

SshConfig = Annotated[
    Path | None,
    typer.Option("--ssh-config", help="Instead of ~/.ssh/config.", rich_help_panel=_ARMS),
]
Arms = Annotated[
    list[str] | None,
    typer.Option(
        "--arm",
        metavar="NAME[:factor=value,...]|NAME=URL",
        help="An arm; repeatable. Without any: index-K bf16/fp8 x HiCache on/off.",
        rich_help_panel=_ARMS,
    ),
]
Runs = Annotated[
    list[str] | None,
    typer.Option(
        "--run",
        metavar="NAME=RUN_DIR",
        help="A run of repro made earlier, as an arm; repeatable.",
        rich_help_panel=_ARMS,
    ),
]
DeploymentFile = Annotated[
    Path | None,
    typer.Option(
        "--deployment",
        metavar="FILE.toml",
        help="What is relaunched (docs/ab.md). Without it the lab.",
        rich_help_panel=_ARMS,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        help="A running server for arms of client-side factors; it is not relaunched.",
        rich_help_panel=_ARMS,
    ),
]
Sessions = Annotated[
    int, typer.Option("--sessions", min=1, help="Sessions a block.", rich_help_panel=_BUDGET)
]
Blocks = Annotated[
    int | None,
    typer.Option("--blocks", min=1, help="Blocks an arm [default: 2].", rich_help_panel=_BUDGET),
]
MaxSessions = Annotated[
    int | None,
    typer.Option(
        "--max-sessions",
        min=1,
        help="Sessions an arm at most; sets --blocks where that is not given.",
        rich_help_panel=_BUDGET,
    ),
]
MaxMinutes = Annotated[
    float | None,
    typer.Option(
        "--max-minutes",
        min=0.1,
        help="No block begins after so long.",
        rich_help_panel=_BUDGET,
    ),
]
Alpha = Annotated[
    float,
    typer.Option(
        "--alpha",
        min=1e-9,
        max=0.5,
        help="Chance of any false alarm over all pairs.",
        rich_help_panel=_BUDGET,
    ),
]
Margin = Annotated[
    float,
    typer.Option(
        "--margin",
        min=1e-6,
        max=0.5,
        help="Rates closer than this count as equal.",
        rich_help_panel=_BUDGET,
    ),
]
Warmup = Annotated[
    int,
    typer.Option(
        "--warmup", min=0, help="Sessions before each block, not counted.", rich_help_panel=_BUDGET
    ),
]
Deadman = Annotated[
    int,
    typer.Option(
        "--deadman",
        min=5,
        metavar="S",
        help="The hosts put themselves back when we were not heard of for so many seconds.",
        rich_help_panel=_BUDGET,
    ),
]


@app.callback(invoke_without_command=True)
def ab(
    context: typer.Context,
    arm: Arms = None,
    run: Runs = None,
    deployment: DeploymentFile = None,
    base_url: BaseUrl = None,
    ssh_config: SshConfig = None,
    scenario: Annotated[
        str, typer.Option("--scenario", help="Name or TOML file (see repro/).")
    ] = "tool-calls",
    sessions: Sessions = 60,
    turns: Annotated[int | None, typer.Option("--turns", min=1, help="Turns a session.")] = None,
    blocks: Blocks = None,
    max_sessions: MaxSessions = None,
    max_minutes: MaxMinutes = None,
    warmup: Warmup = 4,
    alpha: Alpha = 0.05,
    margin: Margin = 0.01,
    seed: options.Seed = 42,
    deadman: Deadman = 600,
    stall_timeout: Annotated[
        float, typer.Option("--stall-timeout", min=0.1, help="Seconds without a token: a stall.")
    ] = 30.0,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="Seconds a request may take.")
    ] = 600.0,
    model: options.Model = None,
    api_key: options.ApiKey = None,
    extra_request_body: options.ExtraBody = None,
    lab_index_k: options.LabIndexK = None,
    lab_hicache: options.LabHicache = None,
    lab_fault: options.LabFault = None,
    lab_fix: options.LabFix = None,
    lab_option: options.LabOption = None,
    output_dir: options.OutputDir = Path("reports"),
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="RUN_DIR", help="Go on with a run that was cut short."),
    ] = None,
    fail_on: options.FailOnFlag = options.FailOn.WARNING,
    as_json: options.AsJson = False,
    no_progress: options.NoProgress = False,
    no_color: options.NoColor = False,
) -> None:
    """A controlled experiment: arms relaunched block by block, proved, compared, put back.

    Sends load; relaunches what --deployment names (else the lab), and nothing else. Example:
    dsv4doctor ab --deployment gpu7.toml --arm on:hicache=on --arm off:hicache=off
    """
    if context.invoked_subcommand is not None:
        return
    from dsv4doctor.cli.ab_live import ab_display
    from dsv4doctor.finding import Severity
    from dsv4doctor.flows.ab import run_ab
    from dsv4doctor.flows.ab_setup import AbPlan, parse_arms, resumed
    from dsv4doctor.flows.repro_plan import load_scenario

    plan = AbPlan(
        arms=parse_arms(arm or (), run or ()),
        scenario=load_scenario(scenario),
        seed=seed,
        output_dir=output_dir,
        sessions=sessions,
        rounds=_rounds(blocks, max_sessions, sessions),
        max_minutes=max_minutes,
        turns=turns,
        warmup=warmup,
        alpha=alpha,
        margin=margin,
        deadman_s=deadman,
        deployment=deployment,
        base_url=base_url,
        ssh_config=ssh_config,
        lab=_lab(lab_index_k, lab_hicache, lab_fault, lab_fix, lab_option),
        model=model,
        api_key=api_key,
        extra_body=_extra_body(extra_request_body),
        stall_timeout_s=stall_timeout,
        request_timeout_s=timeout,
        argv=tuple(sys.argv),
    )
    if resume is not None:
        plan = resumed(resume, plan)
    is_lab_named = any((lab_index_k, lab_hicache, lab_fault, lab_fix, lab_option))
    _refuse_contradictions(plan, is_lab_named=is_lab_named and resume is None)
    # A terminal that goes away is an interruption too: the deployment has to be put back.
    signal.signal(signal.SIGHUP, _interrupt)
    with ab_display(enabled=not no_progress, no_color=no_color) as progress:
        outcome = run_ab(plan, progress, fail_on=Severity(fail_on.value))
    if as_json:
        emit_json("ab", outcome.verdict, outcome.exit_code, outcome.findings, outcome.body)
    else:
        from dsv4doctor.report.formats.console import print_report

        print_report(outcome.report, stdout_console(no_color=no_color))
    if outcome.resume_hint:
        say(f"interrupted; finished blocks are saved. To go on: {outcome.resume_hint}")
    raise typer.Exit(outcome.exit_code)


@app.command("restore")
def restore(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run that ab made.")],
    ssh_config: SshConfig = None,
    as_json: options.AsJson = False,
    no_color: options.NoColor = False,
) -> None:
    """Put a deployment back by hand: run the restore script on every host and read the result.

    Example: dsv4doctor ab restore reports/20261129T104500Z-ab-on-off
    """
    from dsv4doctor.flows.ab_restore import restore_run

    outcome = restore_run(run_dir, ssh_config, say)
    if as_json:
        emit_json("ab", outcome.verdict, outcome.exit_code, outcome.findings, outcome.body)
    else:
        typer.echo("\n".join(outcome.body["restored_evidence"]))
    raise typer.Exit(outcome.exit_code)


def _rounds(blocks: int | None, max_sessions: int | None, sessions: int) -> int:
    """Blocks an arm: as given, but no more than the sessions allow."""
    from dsv4doctor.flows.ab_setup import DEFAULT_ROUNDS

    if max_sessions is None:
        return blocks or DEFAULT_ROUNDS
    most = max_sessions // sessions
    if most < 1:
        raise UsageError(
            f"--max-sessions {max_sessions} is less than one block of {sessions}",
            "give a smaller --sessions, or more",
        )
    return min(blocks or most, most)


def _refuse_contradictions(plan: AbPlan, *, is_lab_named: bool) -> None:
    from dsv4doctor.flows.ab_setup import ArmKind

    named = [
        flag
        for flag, value in (("--deployment", plan.deployment), ("--base-url", plan.base_url))
        if value is not None
    ]
    if plan.kind is not ArmKind.SETTINGS and (named or is_lab_named):
        raise UsageError(
            "arms that name their own servers or runs were given beside another target",
            f"drop {', '.join(named) or 'the --lab-* flags'}",
        )
    if len(named) > 1 or (named and is_lab_named):
        raise UsageError(
            "two targets were given", "give one of --deployment, --base-url and the --lab-* flags"
        )


def _lab(
    index_k: options.IndexK | None,
    hicache: options.OnOff | None,
    fault: list[str] | None,
    fix: list[str] | None,
    extra: list[str] | None,
) -> LabChoice:
    from dsv4doctor.flows.ab_setup import LabChoice
    from dsv4doctor.flows.lab import default_index_k

    switches = []
    for item in extra or ():
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--lab-option {item!r} is no NAME=VALUE", "e.g. device-pages=620")
        switches.append((name.strip(), value.strip()))
    faults = tuple(fault or LabChoice().faults)
    return LabChoice(
        index_k=index_k.value if index_k else default_index_k(faults),
        hicache=hicache is not options.OnOff.OFF,
        faults=faults,
        fixes=tuple(fix or ()),
        switches=tuple(switches),
    )


def _extra_body(text: str | None) -> dict[str, Any]:
    try:
        body = json.loads(text or "{}")
    except ValueError as error:
        raise UsageError(f"--extra-request-body is no JSON: {error}", "give an object") from error
    if not isinstance(body, dict):
        raise UsageError("--extra-request-body is no JSON object", "give an object")
    return body


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
