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
    context_settings={"help_option_names": ["-h", "--help"]},
)

Folder = Annotated[
    str | None,
    typer.Option(
        "--folder", help="Where it lies on the host [default: /var/tmp/dsv4doctor-UID/probe]."
    ),
]


def _action(name: str, does: str) -> None:
    """`probe NAME`, whose help says what it `does`."""

    @app.command(name, help=f"{does}\n\nExample: dsv4doctor probe {name} --ssh-host gpu7")
    @with_groups
    def action(
        *,
        hosts: HostFlags,
        folder: Folder = None,
        as_json: options.AsJson = False,
        no_color: options.NoColor = False,  # nothing here is coloured
    ) -> None:
        _probe(name, hosts, folder, as_json=as_json)


_action(
    "install",
    "Write the plugin's folder and print the two lines that the launch needs; nothing runs yet.",
)
_action(
    "status", "Say whether it is there, which ranks have loaded it, and what they cannot observe."
)
_action(
    "remove",
    "Silence the ranks that have it and remove the folder: nothing of it is left on the host.",
)


def _probe(action: str, hosts: HostFlags, folder: str | None, *, as_json: bool) -> None:
    from dsv4doctor.cli.output import emit_json
    from dsv4doctor.flows.probe import lines_of, run_probe

    outcome = run_probe(action, hosts.targets(), folder=folder)
    if as_json:
        emit_json("probe", outcome.verdict, outcome.exit_code, (), outcome.body)
    else:
        typer.echo("\n".join(lines_of(outcome)))
    raise typer.Exit(outcome.exit_code)
