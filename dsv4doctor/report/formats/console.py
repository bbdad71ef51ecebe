"""A report for a terminal: 80 columns are enough, and a pipe or a light background do no harm."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from dsv4doctor.report.document import (
    Block,
    Command,
    Facts,
    Note,
    RateTable,
    Report,
    Section,
    Table,
    Tone,
    Verbatim,
)
from dsv4doctor.report.rate_table import as_table
from dsv4doctor.safetext import block, one_line

if TYPE_CHECKING:
    from rich.console import Console

NAME = "console"
SUFFIX = ".txt"
# A rendering to a string is for files and logs.
_WIDTH = 100
_NOTE_CHARS = 1200
_CELL_CHARS = 400
# What was received stands in full elsewhere; a cell shows how it begins and ends.
_VERBATIM_CHARS = 160
_LINE_CHARS = 1000
# Legible on black and on white; yellow and cyan are not.
_STYLES = {
    Tone.PLAIN: "",
    Tone.GOOD: "bold green",
    Tone.BAD: "bold red",
    Tone.CAUTION: "bold magenta",
}


def render(report: Report, *, width: int = _WIDTH) -> str:
    """The report as plain text, `width` columns wide."""
    from rich.console import Console

    file = StringIO()
    print_report(report, Console(file=file, width=width, no_color=True, highlight=False))
    # Cells are padded for a screen; a file needs no blanks at the end of its lines.
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def print_report(report: Report, console: Console) -> None:
    """Print the report; text from outside is neither markup nor escapes to the console."""
    from rich.text import Text

    # A terminal that cannot show a character gets its escape instead of a crash of ours.
    reconfigure = getattr(console.file, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    console.print(Text(one_line(report.title), style="bold"))
    console.print(Text(one_line(report.verdict_sentence, _NOTE_CHARS), style=_STYLES[report.tone]))
    for section in report.sections:
        _print_section(section, console)


def _print_section(section: Section, console: Console) -> None:
    from rich.text import Text

    console.print()
    console.print(Text(one_line(section.title), style="bold" if section.level > 1 else "bold u"))
    for each in section.blocks:
        _print_block(each, console)


def _print_block(each: Block, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    if isinstance(each, Note):
        console.print(Text(one_line(each.text, _NOTE_CHARS), style=_STYLES[each.tone]))
    elif isinstance(each, Facts):
        _print_facts(each, console)
    elif isinstance(each, Table):
        _print_table(each, console)
    elif isinstance(each, RateTable):
        console.print(Text(one_line(each.caption)))
        _print_table(as_table(each), console)
    elif isinstance(each, Verbatim):
        console.print(Text(f"{one_line(each.caption)}:"))
        console.print(Padding(Text(block(each.text), overflow="fold"), (0, 0, 0, 4), expand=False))
    elif isinstance(each, Command):
        # Never broken by us, so that it can be copied.
        console.print(Text(f"  $ {one_line(each.line, _LINE_CHARS)}"), soft_wrap=True)
        console.print(Padding(Text(one_line(each.why, _NOTE_CHARS)), (0, 0, 0, 4), expand=False))


def _print_facts(facts: Facts, console: Console) -> None:
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.rows:
        grid.add_row(Text(one_line(name)), Text(one_line(value, _CELL_CHARS)))
    console.print(grid)


def _print_table(table: Table, console: Console) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, header_style="")
    for column in table.columns:
        grid.add_column(
            Text(one_line(column.title)),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number,
            overflow="fold",
        )
    for row in table.rows:
        grid.add_row(
            *(
                Text(one_line(cell, _VERBATIM_CHARS if column.is_verbatim else _CELL_CHARS))
                for column, cell in zip(table.columns, row, strict=True)
            )
        )
    console.print(grid)
