"""A diagnosis, told: the causes with what speaks for and against each, then the arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.codec import to_builtins
from dsv4doctor.report.document import (
    Block,
    Column,
    Command,
    Facts,
    Note,
    Report,
    Section,
    Table,
    Tone,
)
from dsv4doctor.report.members import mapping, sequence

_TONES = {"healthy": Tone.GOOD, "diagnosed": Tone.BAD}


def build_diagnose_report(
    verdict: str,
    body: Mapping[str, Any],
    *,
    findings: Sequence[Any] = (),
    exit_code: int | None = None,
) -> Report:
    """The report of a diagnosis from its JSON object."""
    plain: dict[str, Any] = to_builtins(dict(body))
    causes = [mapping(each) for each in sequence(plain.get("considered"))]
    sections = (
        [_cause(each) for each in causes if each.get("standing") in {"supported", "open"}]
        if verdict != "healthy"
        else []
    )
    ruled_out = [each for each in causes if each.get("standing") == "ruled out"]
    if ruled_out:
        sections.append(_ruled_out(ruled_out))
    sections.append(_arms([mapping(arm) for arm in sequence(plain.get("arms"))]))
    notes = [Note(text=str(note), tone=Tone.CAUTION) for note in sequence(plain.get("notes"))]
    if plain.get("interrupted"):
        notes.append(
            Note(text="It did not come to its end: this is what was seen.", tone=Tone.CAUTION)
        )
    if notes:
        sections.append(Section(title="Notes", blocks=tuple(notes)))
    return Report(
        command="diagnose",
        title=f"dsv4doctor diagnose: {verdict}",
        verdict=verdict,
        verdict_sentence=_sentence(verdict, causes, plain),
        tone=_TONES.get(verdict, Tone.CAUTION),
        sections=tuple(sections),
        data=plain,
        findings=tuple(to_builtins(list(findings))),
        exit_code=exit_code,
    )


def _sentence(verdict: str, causes: Sequence[Mapping[str, Any]], body: Mapping[str, Any]) -> str:
    if verdict == "healthy":
        return "No arm met anything wrong; how much that proves stands below."
    if verdict == "unreachable":
        return f"Nothing could be diagnosed: {'; '.join(map(str, sequence(body.get('notes'))))}."
    symptoms = ", ".join(str(each) for each in sequence(body.get("symptoms")))
    if verdict == "diagnosed":
        named = [f"{c['name']}: {c['claim']}" for c in causes if c.get("standing") == "supported"]
        return f"Met: {symptoms}. Cause: {'; '.join(named)}."
    if not symptoms:
        return "Nothing wrong was met, but not every arm showed what it takes to call it healthy."
    still = [str(each["name"]) for each in causes if each.get("standing") == "open"]
    return f"Met: {symptoms}. Undecided between: {', '.join(still) or 'none of the causes known'}."


def _cause(cause: Mapping[str, Any]) -> Section:
    rows = [("for", str(said)) for said in sequence(cause.get("for"))]
    rows += [("against", str(said)) for said in sequence(cause.get("against"))]
    blocks: list[Block] = [Note(text=str(cause.get("claim")))]
    if rows:
        blocks.append(Facts(rows=tuple(rows)))
    blocks.append(Command(line=str(cause.get("next")), why="what settles it"))
    return Section(title=f"{cause.get('standing')}: {cause.get('name')}", blocks=tuple(blocks))


def _ruled_out(causes: Sequence[Mapping[str, Any]]) -> Section:
    rows = tuple(
        (str(cause.get("name")), "; ".join(str(said) for said in sequence(cause.get("against"))))
        for cause in causes
    )
    columns = (Column(title="cause"), Column(title="against it"))
    return Section(title="Ruled out", blocks=(Table(columns=columns, rows=rows),))


def _arms(arms: Sequence[Mapping[str, Any]]) -> Section:
    rows = tuple(
        (
            str(arm.get("name")),
            str(arm.get("changes")),
            str(arm.get("said"))
            + (f" (not counted: {arm['not_proved']})" if arm.get("not_proved") else ""),
            f"{arm.get('seconds') or 0:.0f}",
        )
        for arm in arms
    )
    columns = (
        Column(title="arm"),
        Column(title="what it changes"),
        Column(title="what it showed"),
        Column(title="s", is_number=True),
    )
    return Section(title="Arms", blocks=(Table(columns=columns, rows=rows),))
