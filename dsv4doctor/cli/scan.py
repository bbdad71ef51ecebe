"""`dsv4doctor scan`: flags to a plan, the plan to its flow, the result to stdout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.bounds import MAX_PROCESSES
from dsv4doctor.cli.console import asked_width, say, stdout_console
from dsv4doctor.cli.output import emit_json
from dsv4doctor.errors import UsageError

if TYPE_CHECKING:
    from dsv4doctor.flows.scan import ScanResult

_GROUPS_SHOWN = 20


def scan(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Logs, globs, or - for standard input."),
    ] = None,
    per_record: Annotated[
        bool, typer.Option("--per-record", help="List every record's verdict.")
    ] = False,
    group_by: Annotated[
        list[str] | None,
        typer.Option("--group-by", help="time, model, host or any key; repeatable."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="All verdicts as .csv or .parquet."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", min=1, max=MAX_PROCESSES, help="Processes that judge.")
    ] = 1,
    fail_on: options.FailOnFlag = options.FailOn.WARNING,
    as_json: options.AsJson = False,
    no_progress: options.NoProgress = False,
    no_color: options.NoColor = False,
) -> None:
    """Judge every response in logs: what is corrupted, how, and since when.

    Reads files and changes nothing. Example: dsv4doctor scan 'logs/*.jsonl.gz' --group-by host
    """
    from dsv4doctor.cli.scan_progress import ScanProgress
    from dsv4doctor.finding import Severity
    from dsv4doctor.flows.scan import ScanPlan, run_scan

    if not files:
        if sys.stdin.isatty():
            raise UsageError("no log named", "dsv4doctor scan FILE..., or - for standard input")
        say("no log named: reading standard input")
        files = ["-"]
    elif "-" in files and sys.stdin.isatty():
        say("reading standard input; end it with Ctrl-D")
    plan = ScanPlan(
        files=tuple(files),
        per_record=per_record,
        group_by=tuple(group_by or ()),
        output=output,
        jobs=jobs,
        fail_on=Severity(fail_on.value),
    )
    with ScanProgress(enabled=not no_progress) as progress:
        result = run_scan(plan, progress)
    if as_json:
        emit_json("scan", result.verdict, result.exit_code, result.findings, result.body)
    else:
        _print(result, no_color=no_color)
    if output is not None:
        say(f"verdicts written to {output}")
    totals = result.body["totals"]
    if result.is_whole and not totals["records"] + totals["failures"] + totals["aborted_by_us"]:
        say("no response was read: that says nothing about any")
    if not result.is_whole:
        say("interrupted; what had been read is counted above. Run it again to read the rest")
    raise typer.Exit(result.exit_code)


def _print(result: ScanResult, *, no_color: bool) -> None:
    from dsv4doctor.cli.scan_view import lines_of, wrapped

    console = stdout_console(no_color=no_color)
    # In a file a line stays whole, for `grep`; where somebody looks, it fits.
    is_read = sys.stdout.isatty() or asked_width() is not None
    for line in lines_of(result, groups_shown=_GROUPS_SHOWN):
        for piece in wrapped(line, console) if is_read else (line,):
            console.print(piece, markup=False, highlight=False, soft_wrap=True)
