"""How a command ends: the document or the report on stdout, how to go on, the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.console import say, stdout_console
from dsv4doctor.cli.output import emit_json
from dsv4doctor.finding import Finding, Severity

if TYPE_CHECKING:
    from dsv4doctor.progress import Progress
    from dsv4doctor.report.document import Report


class Told(Protocol):
    """What a flow has to say."""

    @property
    def verdict(self) -> str: ...

    @property
    def exit_code(self) -> int: ...

    @property
    def findings(self) -> Sequence[Finding]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TellingFlags:
    """How the outcome is shown and what of it makes the exit code 1."""

    fail_on: options.FailOnFlag = options.FailOn.WARNING
    as_json: options.AsJson = False
    no_progress: options.NoProgress = False
    no_color: options.NoColor = False

    @property
    def least(self) -> Severity:
        """The least severity that makes the exit code 1."""
        return Severity(self.fail_on.value)

    def progress(self) -> AbstractContextManager[Progress]:
        """The display that these flags and the terminal allow."""
        from dsv4doctor.cli.live import progress_display

        return progress_display(enabled=not self.no_progress, no_color=self.no_color)

    def finish(
        self, command: str, outcome: Told, report: Report, *, body: Any, hint: str = ""
    ) -> NoReturn:
        """Show `report`, or with `--json` the document whose `command` member is `body`; say `hint`
        on stderr; leave.

        Raises:
            typer.Exit: always, with the outcome's code.
        """
        if self.as_json:
            emit_json(command, outcome.verdict, outcome.exit_code, outcome.findings, body)
        else:
            from dsv4doctor.report.formats.console import print_report

            print_report(report, stdout_console(no_color=self.no_color))
        if hint:
            say(hint)
        raise typer.Exit(outcome.exit_code)
