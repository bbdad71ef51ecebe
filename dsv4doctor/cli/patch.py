"""`dsv4doctor patch`: the fix of an SGLang tree as a diff, or applied."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dsv4doctor.cli.options import AsJson, NoColor


def patch(
    source: Annotated[
        Path, typer.Option("--source", help="An SGLang tree: checkout, wheel or site-packages.")
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Apply it; each file is backed up beside itself.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only say; exit code 1 when there is work.")
    ] = False,
    as_json: AsJson = False,
    no_color: NoColor = False,  # nothing here is coloured
) -> None:
    """Price index-K as it is stored, and gate every read of it: a minimal diff.

    Prints the diff and changes nothing without --write. Refuses, with the reason, a tree without
    these faults, one it does not know, and one already patched. Example: dsv4doctor patch
    --source /sgl-workspace/sglang/python
    """
    from dsv4doctor.cli.console import say
    from dsv4doctor.errors import UsageError
    from dsv4doctor.flows.patch import run_patch

    if write and check:
        raise UsageError("--write and --check exclude each other", "one of them")
    outcome = run_patch(source, write=write)
    code = outcome.exit_code(check=check)
    if outcome.fix.reason:
        say(outcome.fix.reason)
    if as_json:
        from dsv4doctor.cli.output import emit_json

        emit_json("patch", outcome.verdict, code, outcome.findings, outcome.body())
        raise typer.Exit(code)
    for found in outcome.fix.patches:
        say(f"{outcome.prefix}{found.path}: {'; '.join(found.fixes)}")
    if outcome.written:
        say("written; the old files lie beside them as *.dsv4doctor.orig. Restart the server")
    if not check:
        typer.echo(outcome.diff, nl=False)
    raise typer.Exit(code)
