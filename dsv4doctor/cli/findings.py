"""Findings below a result: a line each, its evidence and the next step further in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsv4doctor.finding import Finding, Severity

if TYPE_CHECKING:
    from rich.console import Console

# Legible on black and on white.
STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold magenta", Severity.INFO: "bold"}
_CHARS = 1200
_INDENT = 4


def print_finding(console: Console, finding: Finding, *, mark: str = "", aside: str = "") -> None:
    """Print one finding; `mark` in place of its severity, `aside` between that and its title."""
    from rich.text import Text

    from dsv4doctor.safetext import one_line

    head = Text(mark or finding.severity.value, style=STYLES[finding.severity])
    head.append(f" {one_line(aside)}" if aside else "", style="default")
    console.print(head.append(f" {one_line(finding.title, _CHARS)}", style="not bold default"))
    for evidence in finding.evidence:
        print_below(console, f"{one_line(evidence.where)}: {one_line(evidence.what, _CHARS)}")
    if finding.remedy:
        print_below(console, f"try: {one_line(finding.remedy, _CHARS)}")


def print_below(console: Console, text: str) -> None:
    """Print a line of a finding, all of it further in; `text` is shown as it is."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(Padding(Text(text), (0, 0, 0, _INDENT), expand=False))
