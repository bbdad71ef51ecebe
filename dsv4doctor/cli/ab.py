"""`dsv4doctor ab`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.ab_flags import ArmFlags, BudgetFlags
from dsv4doctor.cli.ab_plan import ab_plan
from dsv4doctor.cli.console import say
from dsv4doctor.cli.groups import with_groups
from dsv4doctor.cli.output import emit_json
from dsv4doctor.cli.target_flags import LabFlags, extra_body_of
from dsv4doctor.cli.telling import TellingFlags
from dsv4doctor.errors import UsageError

if TYPE_CHECKING:
    from dsv4doctor.flows.ab_setup import AbPlan

app = typer.Typer(
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(
    "plan",
    help="How many sessions an arm an experiment needs. Example: dsv4doctor ab plan --p0 0.18 "
    "--p1 0.01",
)(ab_plan)


@app.callback(invoke_without_command=True)
@with_groups
def ab(
    context: typer.Context,
    *,
    arms: ArmFlags,
    scenario: options.ScenarioName = "tool-calls",
    budget: BudgetFlags,
    stall_timeout: options.StallTimeout = 30.0,
    timeout: options.RequestTimeout = 600.0,
    model: options.Model = None,
    api_key: options.ApiKey = None,
    extra_request_body: options.ExtraBody = None,
    lab: LabFlags,
    output_dir: options.OutputDir = Path("reports"),
    resume: options.Resume = None,
    telling: TellingFlags,
) -> None:
    """A controlled experiment: arms relaunched block by block, proved, compared, put back.

    Sends load; relaunches what --deployment names (else the lab), and nothing else. Example:
    dsv4doctor ab --deployment gpu7.toml --arm on:hicache=on --arm off:hicache=off
    """
    if context.invoked_subcommand is not None:
        return
    from dsv4doctor.flows.ab_setup import AbPlan, LabOptions, parse_arms, resumed
    from dsv4doctor.flows.repro_plan import load_scenario

    lab_options = lab.asked_for()
    plan = AbPlan(
        arms=parse_arms(arms.arm or (), arms.run or ()),
        scenario=load_scenario(scenario),
        seed=budget.seed,
        output_dir=output_dir,
        deployment=arms.deployment,
        base_url=arms.base_url,
        ssh_config=arms.ssh_config,
        lab=lab_options or LabOptions(),
        model=model,
        api_key=api_key,
        extra_body=extra_body_of(extra_request_body),
        stall_timeout_s=stall_timeout,
        request_timeout_s=timeout,
        argv=tuple(sys.argv),
    )
    plan = budget.on(plan)
    if resume is not None:
        plan = resumed(resume, plan)
    _refuse_contradictions(plan, is_lab_named=lab_options is not None and resume is None)
    _run(plan, telling)


def _run(plan: AbPlan, telling: TellingFlags) -> NoReturn:
    from dsv4doctor.cli.ab_live import ab_display
    from dsv4doctor.flows.ab import run_ab

    # A terminal that goes away is an interruption too: the deployment has to be put back.
    signal.signal(signal.SIGHUP, _interrupt)
    with ab_display(enabled=not telling.no_progress, no_color=telling.no_color) as progress:
        outcome = run_ab(plan, progress, fail_on=telling.least)
    hint = outcome.resume_hint
    telling.finish(
        "ab",
        outcome,
        outcome.report,
        body=outcome.body,
        hint=hint and f"interrupted; finished blocks are saved. To go on: {hint}",
    )


@app.command("restore")
def restore(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A run that ab made.")],
    ssh_config: options.SshConfig = None,
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


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
