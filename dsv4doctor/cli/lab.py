"""`dsv4doctor lab`: the embedded miniature deployment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsv4doctor.cli.console import say
from dsv4doctor.cli.lab_serve import serve
from dsv4doctor.cli.options import AsJson, NoColor

if TYPE_CHECKING:
    from dsv4doctor.flows.lab_replay import Outcome

app = typer.Typer(
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def lab() -> None:
    """The lab: a miniature SGLang deployment with real pages, real copies and real faults.

    Example: dsv4doctor lab serve --fault index-race --enable-hierarchical-cache
    """


app.command("serve")(serve)


@app.command("search")
def search(
    race: Annotated[
        list[str] | None, typer.Option(help="A race to look for; repeatable [default: all].")
    ] = None,
    as_version: Annotated[
        str | None, typer.Option(help="The release, 0.5.12 to 0.5.23 [default: the newest].")
    ] = None,
    disable_overlap_schedule: Annotated[
        bool, typer.Option("--disable-overlap-schedule", help="SGLang's.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="File for the first order that goes wrong.")
    ] = None,
    as_json: AsJson = False,
    no_color: NoColor = False,  # nothing here is coloured
) -> None:
    """Try every order in which about ten operations may happen, under a release's fences and gates.

    Exit code 1 when one goes wrong.
    Example: dsv4doctor lab search --as-version 0.5.18 --save race.json
    """
    from dsv4doctor.flows.lab_replay import search_races

    outcome = search_races(
        race or [], as_version=as_version, overlap=not disable_overlap_schedule, save_to=save
    )
    if save is not None:
        say(f"kept in {save}" if outcome.body["saved"] else f"nothing to keep: no {save} made")
    _tell(outcome, as_json=as_json)


@app.command("replay")
def replay(
    file: Annotated[
        Path, typer.Argument(help="What `lab search --save` or `lab serve --record` made.")
    ],
    as_version: Annotated[
        str | None, typer.Option(help="Under that release's orderings instead.")
    ] = None,
    as_json: AsJson = False,
    no_color: NoColor = False,  # nothing here is coloured
) -> None:
    """Run a kept interleaving or a recorded run again, exactly.

    An interleaving that goes wrong again ends with exit code 1, and so does a run that differs from
    its recording. Example: dsv4doctor lab replay f.json --as-version 0.5.23
    """
    from dsv4doctor.flows.lab_replay import replay_file

    _tell(replay_file(file, as_version=as_version), as_json=as_json)


def _tell(outcome: Outcome, *, as_json: bool) -> None:
    if as_json:
        from dsv4doctor.cli.output import emit_json

        emit_json("lab", outcome.verdict, outcome.exit_code, outcome.findings, outcome.body)
    else:
        for line in outcome.lines:
            typer.echo(line)
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)
