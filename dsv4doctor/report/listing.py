"""The records that the page lists and searches, as JSON that cannot end its script element."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsv4doctor.report.book import RecordBook
from dsv4doctor.report.marks import family_of
from dsv4doctor.report.rows import Row, Standing
from dsv4doctor.safetext import one_line

if TYPE_CHECKING:
    from markupsafe import Markup

# A list of more is for scripts, not for eyes; records.jsonl holds it all.
MOST_LISTED = 20_000
# The texts of the list together: a page of 10,000 responses stays well under 15 MB.
_TEXT_BUDGET = 6_000_000
_LEAST_CHARS = 80
_MOST_CHARS = 700
_NAME_CHARS = 80

COLUMNS = (
    "id", "session", "turn", "label", "also", "kind", "corrupted", "family", "prompt", "cached",
    "in_flight", "sent_s", "ttft_ms", "e2e_ms", "tokens", "finish", "why", "text",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """`data` for the script; `left_out` clean replies are not in it."""

    data: Markup
    listed: int
    left_out: int


def listing_of(book: RecordBook) -> Listing:
    """The list of a run's requests: all that are not clean first kept, then clean ones."""
    from markupsafe import Markup

    chosen = _chosen(book.rows)
    chars = max(_LEAST_CHARS, min(_MOST_CHARS, _TEXT_BUDGET // max(1, len(chosen))))
    sent = [row.sent_unix for row in book.rows if row.sent_unix is not None]
    start = min(sent, default=0.0)
    rows = [_cells(book.rows[n], book.in_flight[n], start, chars) for n in chosen]
    text = json.dumps({"columns": COLUMNS, "rows": rows}, ensure_ascii=False, separators=(",", ":"))
    # `</script` and `<!--` would end or change the element; JSON may spell them otherwise.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Listing(data=Markup(text), listed=len(chosen), left_out=len(book.rows) - len(chosen))


def _chosen(rows: Sequence[Row]) -> list[int]:
    if len(rows) <= MOST_LISTED:
        return list(range(len(rows)))
    wrong = [
        n for n, row in enumerate(rows) if row.corrupted or row.standing is not Standing.JUDGED
    ]
    room = MOST_LISTED - len(wrong)
    if room <= 0:
        return wrong[:MOST_LISTED]
    bad = set(wrong)
    clean = [n for n in range(len(rows)) if n not in bad]
    return sorted([*wrong, *clean[:room]])


def _cells(row: Row, flying: int | None, start: float, chars: int) -> list[Any]:
    return [
        one_line(row.id, _NAME_CHARS),
        row.session,
        row.turn,
        one_line(row.label, _NAME_CHARS),
        one_line(", ".join(row.also), _NAME_CHARS),
        one_line(row.kind, _NAME_CHARS),
        int(row.corrupted),
        family_of(row).value,
        row.prompt_tokens,
        row.cached_tokens,
        flying,
        None if row.sent_unix is None else round(row.sent_unix - start, 3),
        _tenths(row.ttft_ms),
        _tenths(row.e2e_latency_ms),
        row.completion_tokens,
        one_line(row.finish_reason, _NAME_CHARS),
        one_line(row.why, chars),
        one_line(row.text, chars),
    ]


def _tenths(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
