"""The command line: every command in one visible list, exit codes, and where every error ends."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import typer
import typer.main
from typer.core import TyperGroup
from typer.exceptions import TyperException

from dsv4doctor import __version__
from dsv4doctor.cli.early import interrupt_as_usual
from dsv4doctor.cli.failing import PROGRAM, Failing
from dsv4doctor.cli.streams import make_streams_safe
from dsv4doctor.errors import DoctorError, Interrupted


class CommandEntry(NamedTuple):
    """Where a command lives (`module` of `dsv4doctor.cli`) and what it is for, in one line."""

    module: str
    attribute: str
    summary: str


# Every command there is, in the order of `--help`. A module is imported when its command runs:
# flags of many commands cost more to build than the rest of the start.
COMMANDS: dict[str, CommandEntry] = {
    "repro": CommandEntry(
        "repro", "repro", "Drive concurrent tool-call sessions and classify every response."
    ),
    "ab": CommandEntry(
        "ab", "app", "A controlled experiment: arms relaunched, proved, compared, put back."
    ),
    "bench": CommandEntry(
        "bench", "bench", "Measure speed, judge every reply beside it, compare with a baseline."
    ),
    "diagnose": CommandEntry(
        "diagnose", "diagnose", "Find the cause from a client's seat: arms that tell them apart."
    ),
    "watch": CommandEntry(
        "watch", "watch", "Watch a server: real generations and canaries at an interval."
    ),
    "scan": CommandEntry("scan", "scan", "Judge every response in logs."),
    "size": CommandEntry("size", "size", "What the KV pools cost and what they really allocate."),
    "audit": CommandEntry(
        "audit", "audit", "Known-bad combinations in launch lines, servers, logs and trees."
    ),
    "patch": CommandEntry(
        "patch", "patch", "Price index-K as it is stored, and gate its reads: a diff."
    ),
    "report": CommandEntry(
        "report", "report", "Tell a run again, in any format; several are compared."
    ),
    "checksum": CommandEntry(
        "checksum", "app", "Checksum cache pages: kernels, memory and copies, here and over SSH."
    ),
    "probe": CommandEntry(
        "probe", "app", "Put the plugin that checksum live listens to on hosts; take it away."
    ),
    "lab": CommandEntry("lab", "app", "The lab: a miniature SGLang deployment to try on."),
}


class CommandGroup(TyperGroup):
    """The root group; commands come from `COMMANDS`."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, imported now; None if there is none."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        from dsv4doctor.cli.empty_values import refusing_empty_values

        target = getattr(importlib.import_module(f"dsv4doctor.cli.{entry.module}"), entry.attribute)
        if isinstance(target, typer.Typer):
            return refusing_empty_values(typer.main.get_group(target))
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name)(target)
        return refusing_empty_values(typer.main.get_command(alone))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C that it did not answer itself is told, not swallowed."""
        from dsv4doctor.cli import output

        output.begin()
        interrupt_as_usual()  # up to here, with typer's own imports, there was nothing to save
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Interrupted("interrupted") from stop

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


app = typer.Typer(
    cls=CommandGroup,
    name=PROGRAM,
    help="Find out why a DeepSeek-V4 deployment corrupts its output, prove it, and fix what can "
    "be fixed.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    make_streams_safe()
    words = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    failing = Failing(words, COMMANDS)
    try:
        # The name also where `python -m` started it: a lab's problems are told by its parent.
        code = app(args=words, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except DoctorError as error:
        code = failing.tell(str(error), error.hint, exit_code=error.exit_code)
    except TyperException as error:
        code = failing.tell(error.format_message(), _usage_hint(error), exit_code=error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = failing.tell_interrupted()
    except SystemExit as end:
        code = end.code
    except OSError as error:
        code = failing.tell_os_error(error)
    except Exception:
        code = failing.tell_bug()
    sys.exit(code or 0)


def _interrupt(_signum: int, _frame: Any) -> None:
    raise KeyboardInterrupt


def _usage_hint(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else PROGRAM
    return f"{command} --help"
