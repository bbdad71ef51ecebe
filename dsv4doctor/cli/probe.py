"""`dsv4doctor probe`: the plugin that `checksum live` listens to, put on hosts and taken away."""

from __future__ import annotations

from typing import Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.groups import with_groups
from dsv4doctor.cli.host_flags import HostFlags

app = typer.Typer(
    help="Put the plugin that follows index-K's bytes inside SGLang on hosts, ask it, take it "
    "away. Example: dsv4doctor probe install --ssh-host gpu7",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Folder = Annotated[
    str | None,
    typer.Option(
        "--folder", help="Where it lies on the host [default: /var/tmp/dsv4doctor-UID/probe]."
    ),
]


@app.command("install")
@with_groups
def install(
    *,
    hosts: HostFlags,
    folder: Folder = None,
    as_json: options.AsJson = False,
    no_color: options.NoColor = False,  # nothing here is coloured
) -> None:
    """Write the plugin's folder and print the two lines that the launch needs; nothing runs yet.

    Example: dsv4doctor probe install --ssh-host gpu7 --ssh-host gpu8
    """
    _probe("install", hosts, folder, as_json=as_json)


@app.command("status")
@with_groups
def status(
    *,
    hosts: HostFlags,
    folder: Folder = None,
    as_json: options.AsJson = False,
    no_color: options.NoColor = False,  # nothing here is coloured
) -> None:
    """Say whether it is there, which ranks have loaded it, and what they cannot observe.

    Example: dsv4doctor probe status --ssh-host gpu7
    """
    _probe("status", hosts, folder, as_json=as_json)


@app.command("remove")
@with_groups
def remove(
    *,
    hosts: HostFlags,
    folder: Folder = None,
    as_json: options.AsJson = False,
    no_color: options.NoColor = False,  # nothing here is coloured
) -> None:
    """Silence the ranks that have it and remove the folder: nothing of it is left on the host.

    Example: dsv4doctor probe remove --ssh-host gpu7
    """
    _probe("remove", hosts, folder, as_json=as_json)


def _probe(action: str, hosts: HostFlags, folder: str | None, *, as_json: bool) -> None:
    from dsv4doctor.cli.output import emit_json
    from dsv4doctor.flows.probe import lines_of, run_probe

    outcome = run_probe(action, hosts.targets(), folder=folder)
    if as_json:
        emit_json("probe", outcome.verdict, outcome.exit_code, (), outcome.body)
    else:
        typer.echo("\n".join(lines_of(outcome)))
    raise typer.Exit(outcome.exit_code)
