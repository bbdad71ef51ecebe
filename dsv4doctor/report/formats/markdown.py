"""A report as Markdown that can be pasted into a bug report; nothing in it acts on the page."""

from __future__ import annotations

import re

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
from dsv4doctor.safetext import markdown_block, markdown_code, markdown_text, one_line

NAME = "markdown"
SUFFIX = ".md"
_CELL_CHARS = 400
# What was received stands in full elsewhere; a cell shows how it begins and ends.
_VERBATIM_CHARS = 160
_LINE_CHARS = 1000
# Words and numbers, which no Markdown reads as anything else; all other values are code spans.
# An underscore inside a word emphasises nothing, one beside a word does; `www.` becomes a link.
_PLAIN = re.compile(r"[A-Za-z0-9–(][A-Za-z0-9 ,.:;%()–'/_-]*\Z")
_ACTS = re.compile(r"://|www\.|(?<!\w)_|_(?!\w)|__", re.IGNORECASE)


def render(report: Report) -> str:
    """The report as GitHub-flavoured Markdown."""
    parts = [f"## {markdown_text(report.title)}", f"**{markdown_text(report.verdict_sentence)}**"]
    for section in report.sections:
        parts.append(_heading(section))
        parts.extend(_block(each) for each in section.blocks)
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(section: Section) -> str:
    return f"{'#' * (2 + section.level)} {markdown_text(section.title)}"


def _block(each: Block) -> str:
    if isinstance(each, Note):
        text = markdown_text(each.text)
        return f"**{text}**" if each.tone is not Tone.PLAIN else text
    if isinstance(each, Facts):
        return "\n".join(f"- {_cell(name)}: {_cell(value)}" for name, value in each.rows)
    if isinstance(each, Table):
        return _table(each)
    if isinstance(each, RateTable):
        return f"{markdown_text(each.caption)}:\n\n{_table(as_table(each))}"
    if isinstance(each, Verbatim):
        return f"{markdown_text(each.caption)}:\n\n{markdown_block(each.text)}"
    return _command(each)


def _command(command: Command) -> str:
    return f"```sh\n{one_line(command.line, _LINE_CHARS)}\n```\n\n{markdown_text(command.why)}"


def _table(table: Table) -> str:
    titles = [_cell(column.title) if column.title else " " for column in table.columns]
    rules = ["---:" if column.is_number else "---" for column in table.columns]
    rows = [
        [
            markdown_code(cell, _VERBATIM_CHARS) if column.is_verbatim else _cell(cell)
            for column, cell in zip(table.columns, row, strict=True)
        ]
        for row in table.rows
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (titles, rules, *rows))


def _cell(text: str) -> str:
    if not text:
        return " "
    if _PLAIN.match(text) and not _ACTS.search(text):
        return one_line(text, _CELL_CHARS)
    return markdown_code(text, _CELL_CHARS)
