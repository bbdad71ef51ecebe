"""The command line: every command in one visible list, exit codes, and how errors are told."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from dsv4doctor import __version__
from dsv4doctor.cli import lab, repro, scan, size
from dsv4doctor.errors import EXIT_BUG, EXIT_INTERRUPTED, DoctorError

app = typer.Typer(
    name="dsv4doctor",
    help="Find out why a DeepSeek-V4 deployment corrupts its output, prove it, and fix what can "
    "be fixed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("repro")(repro.repro)
app.command("scan")(scan.scan)
app.command("size")(size.size)
app.add_typer(lab.app, name="lab")


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"dsv4doctor {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Exit codes: 0 nothing found, 1 findings, 2 usage, 3 could not do the work, 4 undecided,
    70 a bug of ours, 130 interrupted."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit with the contract's code; never returns."""
    # A supervisor's SIGTERM gets the orderly end that Ctrl-C gets.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(args=list(argv) if argv is not None else None, standalone_mode=False)
        sys.stdout.flush()
    except DoctorError as error:
        _tell(str(error), error.hint)
        code = error.exit_code
    except TyperException as error:
        _tell(error.format_message(), _usage_hint(error))
        code = error.exit_code
    except KeyboardInterrupt:
        _tell("interrupted")
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        code = _leave_closed_pipe()
    except typer.Abort:
        code = EXIT_INTERRUPTED
    except Exception:
        traceback.print_exc()
        _tell(
            "a bug in dsv4doctor, not in your deployment",
            "report it with the traceback above",
        )
        code = EXIT_BUG
    sys.exit(code or 0)


def _interrupt(_signum: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def _leave_closed_pipe() -> int:
    """The reader (`| head`) went away: not an error. Keeps the interpreter's last flush quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _tell(problem: str, hint: str = "") -> None:
    lines = [f"dsv4doctor: {' '.join(problem.split())}"]
    if hint:
        lines.append(f"  try: {hint}")
    try:
        print("\n".join(lines), file=sys.stderr, flush=True)
    except UnicodeEncodeError:
        print("\n".join(lines).encode("ascii", "backslashreplace").decode(), file=sys.stderr)
    except BrokenPipeError:
        return


def _usage_hint(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "dsv4doctor"
    return f"{command} --help"
