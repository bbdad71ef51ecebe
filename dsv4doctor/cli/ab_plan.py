"""`dsv4doctor ab plan`: rates in, sessions out; touches nothing and needs no server."""

from __future__ import annotations

from typing import Annotated

import typer

from dsv4doctor.cli.bounds import MAX_SEED, MAX_SESSIONS
from dsv4doctor.cli.options import AsJson, NoColor


def ab_plan(
    p0: Annotated[
        float,
        typer.Option(
            "--p0", min=0.0, max=1.0, help="Rate of corrupted sessions in one arm, 0 to 1."
        ),
    ],
    p1: Annotated[
        float | None, typer.Option("--p1", min=0.0, max=1.0, help="Rate in the other arm.")
    ] = None,
    sessions: Annotated[
        int | None,
        typer.Option(
            "--sessions",
            min=1,
            max=MAX_SESSIONS,
            help="Sessions an arm: which rates they tell from --p0.",
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option("--alpha", min=0.0, max=1.0, help="Chance of a false alarm.")
    ] = 0.05,
    power: Annotated[
        float, typer.Option("--power", min=0.0, max=1.0, help="Chance to see what is there.")
    ] = 0.8,
    margin: Annotated[
        float, typer.Option("--margin", min=0.0, max=1.0, help="Difference that counts as none.")
    ] = 0.01,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=MAX_SEED, help="Of the simulated runs.")
    ] = 42,
    as_json: AsJson = False,
    no_color: NoColor = False,  # nothing here is coloured
) -> int:
    """Say how many sessions an arm are needed, or with --sessions what difference they can show."""
    from dsv4doctor.cli.output import emit_json
    from dsv4doctor.errors import EXIT_DONE
    from dsv4doctor.flows.ab_plan import VERDICT, PlanAsk, plan_sessions

    answer = plan_sessions(
        PlanAsk(p0=p0, p1=p1, sessions=sessions, alpha=alpha, power=power, margin=margin, seed=seed)
    )
    if as_json:
        emit_json("ab", VERDICT, EXIT_DONE, (), answer.body)
    else:
        typer.echo("\n".join(answer.lines))
    return EXIT_DONE
