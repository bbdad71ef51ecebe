"""Records, whatever they hold, as the short rows that figures, groups and lists are made of."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dsv4doctor.report.members import mapping, number, sequence
from dsv4doctor.safetext import bounded

# Characters of a reply that a list shows: enough to see what it is. What was wrong shows more.
_TEXT_CHARS = 600
_CLEAN_TEXT_CHARS = 120
_WHY_CHARS = 240
# How a failure tells the wait at its end, in which no byte came (`load.runner` words it).
_SILENT = re.compile(r"silent for (\d{1,7}(?:\.\d{1,6})?) s\b")


class Standing(StrEnum):
    """What a request came to: a reply that was judged, a failure, or our own abort."""

    JUDGED = "judged"
    FAILED = "failed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request. `text` is an excerpt of the reply, `why` of the evidence; both untrusted.

    `silent_s` is how long a failed request waited after its last byte, as its failure says.
    """

    id: str
    session: int | None
    turn: int | None
    kind: str
    label: str
    also: tuple[str, ...]
    corrupted: bool
    standing: Standing
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    sent_unix: float | None
    ttft_ms: float | None
    e2e_latency_ms: float | None
    finish_reason: str
    why: str
    text: str
    silent_s: float = 0.0

    @property
    def end_unix(self) -> float | None:
        """When its last byte came, or when it was given up; None where its times are unknown."""
        if self.sent_unix is None or self.e2e_latency_ms is None:
            return None
        return self.sent_unix + self.e2e_latency_ms / 1000 + self.silent_s


def row_of(record: Mapping[str, Any]) -> Row:
    """The row of one record; a member that is missing or of another type reads as absent."""
    failure = mapping(record.get("failure"))
    corrupted = record.get("corrupted") is True
    standing = Standing.JUDGED
    if record.get("aborted") is True:
        standing = Standing.ABORTED
    elif failure:
        standing = Standing.FAILED
    silent = _SILENT.search(_as_text(failure.get("message")))
    wrong = corrupted or standing is not Standing.JUDGED
    return Row(
        id=str(record.get("id")),
        session=_count(record.get("session")),
        turn=_count(record.get("turn")),
        kind=str(record.get("kind") or ""),
        label=_label(record, standing),
        also=tuple(str(label) for label in sequence(record.get("also"))),
        corrupted=corrupted,
        standing=standing,
        prompt_tokens=_count(record.get("prompt_tokens")),
        cached_tokens=_count(record.get("cached_tokens")),
        completion_tokens=_count(record.get("completion_tokens")),
        sent_unix=_finite(record.get("sent_unix")),
        ttft_ms=_finite(record.get("ttft_ms")) if record.get("stream", True) else None,
        e2e_latency_ms=_finite(record.get("e2e_latency_ms")),
        finish_reason=str(mapping(record.get("response")).get("finish_reason") or ""),
        why=_why(record, failure),
        silent_s=float(silent[1]) if silent else 0.0,
        text=bounded(reply_text(record), _TEXT_CHARS if wrong else _CLEAN_TEXT_CHARS),
    )


def reply_text(record: Mapping[str, Any]) -> str:
    """All that came back, as one text: reasoning, content, then each call's name and arguments."""
    response = record.get("response")
    if response is None:
        return ""
    if not isinstance(response, Mapping):
        return _as_text(response)
    parts = [_as_text(response.get(name)) for name in ("reasoning_content", "content")]
    for call in sequence(response.get("tool_calls")):
        function = mapping(mapping(call).get("function"))
        parts.append(f"{_as_text(function.get('name'))}({_as_text(function.get('arguments'))})")
    return "\n".join(part for part in parts if part)


def in_flight_at_sending(rows: Sequence[Row]) -> tuple[int | None, ...]:
    """For each row, how many requests were under way the moment after it was sent, itself included.

    None where its own times are unknown.
    """
    spans = [
        (row.sent_unix, row.end_unix)
        for row in rows
        if row.sent_unix is not None and row.end_unix is not None
    ]
    starts = sorted(start for start, _ in spans)
    ends = sorted(end for _, end in spans)
    return tuple(
        None
        if row.sent_unix is None or row.end_unix is None
        else max(1, bisect_right(starts, row.sent_unix) - bisect_right(ends, row.sent_unix))
        for row in rows
    )


def rows_of(records: Iterable[Mapping[str, Any]]) -> tuple[Row, ...]:
    """The rows of all records, in their order."""
    return tuple(row_of(record) for record in records)


def _label(record: Mapping[str, Any], standing: Standing) -> str:
    if standing is Standing.ABORTED:
        return "aborted"
    return str(record.get("primary") or "not judged")


def _why(record: Mapping[str, Any], failure: Mapping[str, Any]) -> str:
    if failure:
        return bounded(_as_text(failure.get("message")), _WHY_CHARS)
    for item in sequence(record.get("evidence")):
        found = mapping(item)
        return bounded(f"{found.get('where')}: {found.get('what')}", _WHY_CHARS)
    return ""


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _finite(value: Any) -> float | None:
    found = number(value)
    return found if found is not None and math.isfinite(found) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
