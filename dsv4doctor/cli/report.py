"""`dsv4doctor report`: flags to the flow, what it tells to stdout or a file."""

from __future__ import annotations

import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.console import asked_width, say, stdout_console
from dsv4doctor.cli.output import emit_json
from dsv4doctor.errors import DoctorError, UsageError

if TYPE_CHECKING:
    from dsv4doctor.flows.report import ReportOutcome


class Format(StrEnum):
    CONSOLE = "console"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


# What a terminal cannot show is not poured onto one.
_FOR_FILES = frozenset({Format.HTML, Format.PARQUET})


def report(
    run_dirs: Annotated[
        list[Path], typer.Argument(metavar="RUN_DIR...", help="Run directories, also killed ones.")
    ],
    format_: Annotated[
        Format, typer.Option("--format", "-f", help="What to make of them.")
    ] = Format.CONSOLE,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE|-", help="Where to; default: stdout."),
    ] = None,
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Remove hosts, prompts and keys; says what went."),
    ] = False,
    as_json: options.AsJson = False,
    no_color: options.NoColor = False,
) -> None:
    """Tell a run again, in any format; several runs are compared.

    Reads run directories and changes nothing in them. Exit code 0 says that the report was made,
    whatever the run found. Example: dsv4doctor report reports/RUN --format html --output run.html
    """
    from dsv4doctor.flows.report import ReportFormat, run_report

    target = None if output in {None, "-"} else Path(str(output))
    if target is None and format_ in _FOR_FILES and output is None and not as_json:
        _refuse_terminal(format_)
    if as_json and output == "-":
        raise UsageError(
            "--json and --output - both want stdout", "give --output FILE, or leave one out"
        )
    if target is not None:
        _check_place(target)
    outcome = run_report(run_dirs, ReportFormat(format_.value), redact=redact)
    for note in outcome.notes:
        say(note)
    if target is not None:
        _write(target, outcome.content)
        say(f"{format_.value} written to {target}")
    if outcome.removed:
        say(f"removed: {outcome.removed}")
    if as_json:
        body = {**outcome.body, "output": str(target) if target else None}
        emit_json("report", outcome.verdict, outcome.exit_code, (), body)
    elif target is None:
        _print(outcome, format_, no_color=no_color)
    raise typer.Exit(outcome.exit_code)


def _refuse_terminal(format_: Format) -> None:
    if sys.stdout is not None and sys.stdout.isatty():
        raise UsageError(
            f"--format {format_.value} is not for a terminal",
            f"--output run.{format_.value}, or --output - for a pipe",
        )


def _check_place(target: Path) -> None:
    """Told before the work: a large run takes seconds to tell."""
    problem = ""
    if not target.name or target.is_dir():
        problem = "it is a directory"
    elif not target.parent.is_dir():
        problem = f"there is no directory {target.parent}"
    if problem:
        raise DoctorError(
            f"cannot write {target}: {problem}", "give another --output, or - for stdout"
        )


def _write(target: Path, content: str | bytes) -> None:
    """Write whole or not at all: a reader never sees half a report.

    A device or a pipe is written to as it is: a rename would put a file in its place.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")
    is_special = target.exists() and not target.is_file()
    temporary = target.with_name(f".{target.name}.tmp")
    try:
        (target if is_special else temporary).write_bytes(data)
        if not is_special:
            temporary.replace(target)
    except OSError as error:
        if not is_special:
            with suppress(OSError):  # what cannot be written cannot be removed either
                temporary.unlink(missing_ok=True)
        raise DoctorError(
            f"cannot write {target}: {error.strerror}", "give another --output, or - for stdout"
        ) from error


def _print(outcome: ReportOutcome, format_: Format, *, no_color: bool) -> None:
    data = outcome.content
    if format_ is Format.CONSOLE and outcome.report is not None:
        from dsv4doctor.report.formats.console import print_report, render

        if sys.stdout.isatty():
            print_report(outcome.report, stdout_console(no_color=no_color))
            return
        if width := asked_width():
            data = render(outcome.report, width=width)
    sys.stdout.flush()
    sys.stdout.buffer.write(
        data if isinstance(data, bytes) else data.encode("utf-8", "backslashreplace")
    )
    sys.stdout.buffer.flush()
