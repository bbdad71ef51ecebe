"""The worst replies of a run: what was expected beside what came, and why it was judged so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsv4doctor.report.document import Block, Column, Facts, Section, Table, Verbatim
from dsv4doctor.report.members import sequence
from dsv4doctor.report.rows import reply_text
from dsv4doctor.report.wording import LABEL_MEANINGS, WORST_FIRST, count

_EVIDENCE_SHOWN = 5
_ARGUMENTS_SHOWN = 8
_EXCERPT_BEFORE = 40
_EXCERPT_AFTER = 120


def worst_examples(
    records: Iterable[Mapping[str, Any]], most: int = 3
) -> tuple[Mapping[str, Any], ...]:
    """At most `most` corrupted records, the gravest label first, none twice while others wait.

    Among records of one label the shortest reply comes first: the easiest to read and to pass on;
    among equally long ones that with most further labels.
    """
    by_label: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if record.get("corrupted"):
            by_label.setdefault(str(record.get("primary")), []).append(record)
    for group in by_label.values():
        group.sort(key=_hard_to_read)
    order = sorted(by_label, key=_gravity)
    chosen: list[Mapping[str, Any]] = []
    while len(chosen) < most and any(by_label.values()):
        for label in order:
            if by_label[label] and len(chosen) < most:
                chosen.append(by_label[label].pop(0))
    return tuple(chosen)


def example_section(record: Mapping[str, Any]) -> Section:
    """One reply as a section of its own."""
    primary = str(record.get("primary"))
    also = [str(label) for label in sequence(record.get("also"))]
    title = f"{record.get('id')}: {primary}" + (f", also {', '.join(also)}" if also else "")
    blocks: list[Block] = [_facts(record, primary)]
    expected = _expectations(record)
    if expected is not None:
        blocks.append(expected)
    response = record.get("response")
    if isinstance(response, Mapping):
        blocks.extend(_received(response))
    return Section(title=title, blocks=tuple(blocks), level=2)


def _hard_to_read(record: Mapping[str, Any]) -> tuple[int, int, str]:
    return len(reply_text(record)), -len(sequence(record.get("also"))), str(record.get("id"))


def _gravity(label: str) -> int:
    return WORST_FIRST.index(label) if label in WORST_FIRST else len(WORST_FIRST)


def _facts(record: Mapping[str, Any], primary: str) -> Facts:
    rows = [("what it is", LABEL_MEANINGS.get(primary, primary))]
    for item in sequence(record.get("evidence"))[:_EVIDENCE_SHOWN]:
        if isinstance(item, Mapping):
            rows.append(("evidence", f"{item.get('where')}: {item.get('what')}"))
    rows.append(("session, turn", f"{record.get('session')}, {record.get('turn')}"))
    if record.get("kind"):
        rows.append(("asked for", str(record["kind"])))
    if isinstance(record.get("prompt_tokens"), int):
        cached = record.get("cached_tokens")
        said = f"{count(record['prompt_tokens'])} tokens"
        rows.append(("prompt", f"{said}, {count(cached)} of them cached" if cached else said))
    response = record.get("response")
    if isinstance(response, Mapping):
        rows.append(("finish_reason", str(response.get("finish_reason"))))
    if record.get("raw"):
        rows.append(("bytes as received", str(record["raw"])))
    return Facts(rows=tuple(rows))


def _expectations(record: Mapping[str, Any]) -> Table | None:
    """Each value that the reply had to repeat beside what stands there; None without any."""
    canaries = [item for item in sequence(record.get("canaries")) if isinstance(item, Mapping)]
    if not canaries:
        return None
    response = record.get("response")
    reply = response if isinstance(response, Mapping) else {}
    rows = [_compared(canary, reply) for canary in canaries]
    # What is wrong comes first; what is right may be left out.
    rows.sort(key=lambda row: row[0] == "yes")
    return Table(
        columns=(
            Column(title="right"),
            Column(title="where"),
            Column(title="expected", is_verbatim=True),
            Column(title="received", is_verbatim=True),
        ),
        rows=tuple(rows[:_ARGUMENTS_SHOWN]),
    )


def _compared(canary: Mapping[str, Any], reply: Mapping[str, Any]) -> tuple[str, str, str, str]:
    expected = canary.get("value")
    planted = f"planted in turn {canary.get('planted_turn')}"
    if canary.get("tool") is None:
        return _compared_text(str(expected), _text(reply.get("content")), planted)
    index, argument = canary.get("call_index"), canary.get("argument")
    where = f"call {index} {canary.get('tool')}, {argument}; {planted}"
    is_there, value = _argument(reply, index, argument)
    # JSON tells 1 from true and 1.0 from "1.0"; Python's equality does not tell all of them.
    is_right = is_there and json.dumps(value) == json.dumps(expected)
    received = json.dumps(value, ensure_ascii=False) if is_there else str(value)
    return "yes" if is_right else "NO", where, json.dumps(expected, ensure_ascii=False), received


def _compared_text(expected: str, content: str, planted: str) -> tuple[str, str, str, str]:
    where = f"content; {planted}"
    if expected in content:
        return "yes", where, _excerpt(expected, 0), "the same"
    at = _first_difference(expected, content)
    where = f"content, from character {at}; {planted}"
    return "NO", where, _excerpt(expected, at), _excerpt(content, at) if content else "(no text)"


def _argument(reply: Mapping[str, Any], index: Any, argument: Any) -> tuple[bool, Any]:
    """Whether the argument is there, and its value, or else what is wrong in words."""
    calls = _calls(reply)
    if not calls or not isinstance(index, int):
        return False, "(no calls)"
    if index >= len(calls):
        return False, f"(only {len(calls)} calls)"
    call = calls[index]
    function = call.get("function") if isinstance(call, Mapping) else None
    text = function.get("arguments") if isinstance(function, Mapping) else None
    try:
        arguments = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return False, "(arguments are no JSON)"
    if not isinstance(arguments, Mapping):
        return False, "(arguments are no JSON object)"
    if argument not in arguments:
        return False, "(no such argument)"
    return True, arguments[argument]


def _received(response: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    for name in ("reasoning_content", "content"):
        text = _text(response.get(name))
        if text.strip():
            blocks.append(Verbatim(caption=f"{name}, as received", text=text))
    for index, call in enumerate(_calls(response)):
        function = call.get("function") if isinstance(call, Mapping) else None
        body = function if isinstance(function, Mapping) else {}
        blocks.append(
            Verbatim(
                caption=f"call {index}, as received",
                text=f"{_text(body.get('name'))}\n{_text(body.get('arguments'))}",
            )
        )
    return blocks


def _calls(response: Mapping[str, Any]) -> Sequence[Any]:
    return sequence(response.get("tool_calls"))


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _first_difference(expected: str, content: str) -> int:
    """Where the two part; 0 if the content does not begin as expected (it may begin elsewhere)."""
    for place, (left, right) in enumerate(zip(expected, content, strict=False)):
        if left != right:
            return place
    return min(len(expected), len(content))


def _excerpt(text: str, at: int) -> str:
    start = max(0, at - _EXCERPT_BEFORE)
    end = at + _EXCERPT_AFTER
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
