"""A report of any command's JSON object: its values as facts, its lists of objects as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.codec import to_builtins
from dsv4doctor.report.document import Block, Column, Facts, Note, Report, Section, Table, Tone
from dsv4doctor.report.members import mapping, sequence
from dsv4doctor.report.wording import NO_VALUE
from dsv4doctor.units import many

_GOOD = frozenset({"clean", "fine", "healthy", "equivalent", "fits", "passed", "same", "better"})
_CAUTION = frozenset({"undecided", "unreachable"})
_ROWS_SHOWN = 200


def build_generic_report(
    command: str,
    verdict: str,
    data: Mapping[str, Any],
    *,
    findings: Sequence[Mapping[str, Any]] = (),
    exit_code: int | None = None,
) -> Report:
    """What `command` found, told from its JSON object alone."""
    plain: dict[str, Any] = to_builtins(dict(data))
    sections = [_finding_section(finding) for finding in findings]
    sections += _object_sections("What was found", plain)
    tone = Tone.GOOD if verdict in _GOOD else Tone.CAUTION if verdict in _CAUTION else Tone.BAD
    first = f": {findings[0].get('title')}" if findings else ""
    return Report(
        command=command,
        title=f"dsv4doctor {command}: {verdict}",
        verdict=verdict,
        verdict_sentence=f"{command} ended {verdict}{first}.",
        tone=tone,
        sections=tuple(sections),
        data=plain,
        findings=tuple(findings),
        exit_code=exit_code,
    )


def _finding_section(finding: Mapping[str, Any]) -> Section:
    blocks: list[Block] = [
        Facts(
            rows=tuple(
                (str(mapping(item).get("where")), str(mapping(item).get("what")))
                for item in sequence(finding.get("evidence"))
            )
        )
    ]
    if finding.get("remedy"):
        blocks.append(Note(text=str(finding["remedy"])))
    return Section(title=f"{finding.get('severity')}: {finding.get('title')}", blocks=tuple(blocks))


def _object_sections(title: str, value: Mapping[str, Any], level: int = 1) -> list[Section]:
    facts = [(key, _said(inner)) for key, inner in value.items() if not _is_nested(inner)]
    sections = [Section(title=title, blocks=(Facts(rows=tuple(facts)),), level=level)]
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            sections += _object_sections(key, inner, 2)
        elif _is_nested(inner):
            sections.append(Section(title=key, blocks=_table(inner), level=2))
    return sections


def _table(rows: Sequence[Mapping[str, Any]]) -> tuple[Block, ...]:
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    table = Table(
        columns=tuple(Column(title=name) for name in names),
        rows=tuple(tuple(_said(row.get(name)) for name in names) for row in rows[:_ROWS_SHOWN]),
    )
    left = len(rows) - _ROWS_SHOWN
    return (
        (table, Note(text=f"{many(left, 'more row')} in summary.json.")) if left > 0 else (table,)
    )


def _is_nested(value: Any) -> bool:
    """True for an object, and for a list of objects."""
    items = sequence(value)
    is_rows = bool(items) and all(isinstance(item, Mapping) for item in items)
    return is_rows or (isinstance(value, Mapping) and bool(value))


def _said(value: Any) -> str:
    if value is None:
        return NO_VALUE
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
