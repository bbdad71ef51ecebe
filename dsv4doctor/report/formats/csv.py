"""A run's records as a table for other tools: CSV and parquet, by pandas, a row a request.

CSV is opened by spreadsheets, which run what begins with `=`; and by people with `cat`. Text from a
server is therefore spelt out on one line, and a leading `'` keeps it from being a formula. Parquet
holds text as it was received.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any

from dsv4doctor.errors import DoctorError
from dsv4doctor.report.members import mapping, sequence
from dsv4doctor.report.rows import in_flight_at_sending, reply_text, row_of
from dsv4doctor.safetext import one_line

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_TEXTS = (
    "id", "kind", "label", "also", "standing", "failure", "finish_reason", "evidence", "reply",
    "request_id", "raw",
)  # fmt: skip
_COUNTS = (
    "session", "turn", "prompt_tokens", "cached_tokens", "completion_tokens", "in_flight",
    "http_status", "segment", "resends",
)  # fmt: skip


def render_csv(records: Iterable[Mapping[str, Any]]) -> str:
    """The records as CSV with a header line; absent is an empty field."""
    frame = _frame(records)
    for name in _TEXTS:
        frame[name] = [_harmless(text) for text in frame[name]]
    return str(frame.to_csv(index=False, lineterminator="\n"))


def render_parquet(records: Iterable[Mapping[str, Any]]) -> bytes:
    """The records as one parquet file.

    Raises:
        DoctorError: if pyarrow, which only this needs, is not installed.
    """
    try:
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: F401
    except ImportError as error:
        raise DoctorError(
            "parquet needs pyarrow, which is not installed", "pip install pyarrow, or --format csv"
        ) from error
    file = BytesIO()
    frame = _frame(records)
    for name in _TEXTS:
        # Arrow's text is UTF-8, which a lone surrogate is not.
        frame[name] = [text.encode("utf-8", "backslashreplace").decode() for text in frame[name]]
    frame.to_parquet(file, engine="pyarrow", index=False)
    return file.getvalue()


def _frame(records: Iterable[Mapping[str, Any]]) -> Any:
    import pandas as pd

    rows, made = [], []
    for record in records:
        row = row_of(record)
        rows.append(row)
        made.append(
            {
                "id": row.id,
                "session": row.session,
                "turn": row.turn,
                "kind": row.kind,
                "standing": row.standing.value,
                "label": row.label,
                "also": " ".join(row.also),
                "corrupted": row.corrupted,
                "failure": str(mapping(record.get("failure")).get("kind") or ""),
                "http_status": mapping(record.get("failure")).get("http_status"),
                "prompt_tokens": row.prompt_tokens,
                "cached_tokens": row.cached_tokens,
                "completion_tokens": row.completion_tokens,
                "sent_unix": row.sent_unix,
                "ttft_ms": row.ttft_ms,
                "e2e_latency_ms": row.e2e_latency_ms,
                "finish_reason": row.finish_reason,
                "evidence": "; ".join(map(_evidence, sequence(record.get("evidence")))),
                "reply": reply_text(record),
                "request_id": str(record.get("request_id") or ""),
                "segment": record.get("segment"),
                "resends": record.get("resends"),
                "raw": str(record.get("raw") or ""),
            }
        )
    columns = list(made[0]) if made else [*_TEXTS, *_COUNTS]
    frame = pd.DataFrame(made, columns=columns)
    frame["in_flight"] = list(in_flight_at_sending(rows))
    for name in _COUNTS:
        # Integers that may be absent: not floats with NaN.
        frame[name] = pd.to_numeric(frame[name], errors="coerce").astype("Int64")
    for name in _TEXTS:
        frame[name] = frame[name].astype(object)
    return frame


def _evidence(item: Any) -> str:
    found = mapping(item)
    return f"{found.get('where')}: {found.get('what')}"


def _harmless(text: str) -> str:
    shown = one_line(text, len(text))
    return f"'{shown}" if shown.startswith(_FORMULA) else shown
