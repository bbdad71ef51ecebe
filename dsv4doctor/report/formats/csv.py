"""A run's records as a table for other tools: CSV and parquet, by pandas, a row a request.

CSV is opened by spreadsheets, which run what begins with `=`; and by people with `cat`. Text from a
server is therefore spelt out on one line, and a leading `'` keeps it from being a formula. Parquet
holds text as it was received.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from dsv4doctor.errors import DoctorError
from dsv4doctor.report.members import mapping, sequence
from dsv4doctor.report.rows import Row, in_flight_at_sending, reply_text, row_of
from dsv4doctor.safetext import one_line

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_TEXTS = (
    "id", "kind", "label", "also", "standing", "failure", "finish_reason", "evidence", "reply",
    "request_id", "raw",
)  # fmt: skip
_COUNTS = (
    "session", "turn", "prompt_tokens", "cached_tokens", "completion_tokens", "in_flight",
    "http_status", "segment", "resends",
)  # fmt: skip
_TIMES = ("sent_unix", "ttft_ms", "e2e_latency_ms")


def render_csv(records: Iterable[Mapping[str, Any]]) -> str:
    """The records as CSV with a header line; absent is an empty field."""
    frame = _frame(records)
    for name in _TEXTS:
        frame[name] = [harmless(text) for text in frame[name]]
    return str(frame.to_csv(index=False, lineterminator="\n"))


def render_parquet(records: Iterable[Mapping[str, Any]]) -> bytes:
    """The records as one parquet file.

    Raises:
        DoctorError: as `require_parquet`.
    """
    require_parquet("--format csv")
    import pandas as pd

    file = BytesIO()
    frame = _frame(records)
    for name in _TEXTS:
        # Arrow's text is UTF-8, which a lone surrogate is not.
        texts = [text.encode("utf-8", "backslashreplace").decode() for text in frame[name]]
        frame[name] = pd.array(texts, dtype="string")
    frame.to_parquet(file, engine="pyarrow", index=False)
    return file.getvalue()


def require_parquet(instead: str) -> None:
    """Nothing, where parquet can be written; `instead` is what else the user can ask for.

    Raises:
        DoctorError: if pyarrow, which only this needs, is not installed.
    """
    if find_spec("pyarrow") is None:
        raise DoctorError(
            "parquet needs pyarrow, which is not installed",
            f"pip install 'dsv4doctor[parquet]', or {instead}",
        )


def harmless(text: str) -> str:
    """`text` on one line, hidden characters spelt out, and nothing that a spreadsheet would run."""
    shown = one_line(text, len(text))
    is_formula = shown.startswith(_FORMULA) and shown != "-" and not _NUMBER.fullmatch(shown)
    return f"'{shown}" if is_formula else shown


def _frame(records: Iterable[Mapping[str, Any]]) -> Any:
    import pandas as pd

    rows, made = [], []
    for record in records:
        row = row_of(record)
        rows.append(row)
        made.append(_cells(record, row))
    # Named here, so that a table without records has its columns too.
    frame = pd.DataFrame(made, columns=list(_cells({}, row_of({}))), dtype=object)
    frame["in_flight"] = list(in_flight_at_sending(rows))
    for name in _COUNTS:
        # Integers that may be absent: not floats with NaN.
        whole = [number if _is_whole(number) else None for number in frame[name].tolist()]
        frame[name] = pd.array(whole, dtype="Int64")
    return frame.astype({"corrupted": bool} | dict.fromkeys(_TIMES, "float64"))


def _cells(record: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """A record's line, by column."""
    return {
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


def _is_whole(number: Any) -> bool:
    """True of an integer that 64 bits hold; anything else in its place was written by nobody."""
    return isinstance(number, int) and not isinstance(number, bool) and abs(number) < 2**63


def _evidence(item: Any) -> str:
    found = mapping(item)
    return f"{found.get('where')}: {found.get('what')}"
