"""A run's records, read once and kept short: what the HTML page draws and lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dsv4doctor.report.document import RateTable
from dsv4doctor.report.groups import RateOf, TokenBin, group_tables
from dsv4doctor.report.histogram import Histogram
from dsv4doctor.report.members import sequence
from dsv4doctor.report.rows import Row, Standing, in_flight_at_sending, row_of

LATENCIES = (
    ("ttft_ms", "Time to first token"),
    ("itl_ms", "Between chunks"),
    ("e2e_latency_ms", "Whole response"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBook:
    """`in_flight` stands beside `rows`; `latency` holds a histogram for each of `LATENCIES`."""

    rows: tuple[Row, ...]
    in_flight: tuple[int | None, ...]
    groups: tuple[RateTable, ...]
    latency: Mapping[str, Histogram]


def book_of(
    records: Iterable[Mapping[str, Any]], *, rate_of: RateOf, token_bin: TokenBin
) -> RecordBook:
    """The book of `records`, which are read once, in order, and not kept."""
    rows = []
    latency = {key: Histogram() for key, _ in LATENCIES}
    for record in records:
        row = row_of(record)
        rows.append(row)
        if row.standing is Standing.JUDGED:
            _count_latency(latency, record, row)
    in_flight = in_flight_at_sending(rows)
    return RecordBook(
        rows=tuple(rows),
        in_flight=in_flight,
        groups=group_tables(rows, in_flight, rate_of=rate_of, token_bin=token_bin),
        latency=latency,
    )


def _count_latency(latency: Mapping[str, Histogram], record: Mapping[str, Any], row: Row) -> None:
    samples: dict[str, list[float]] = {"ttft_ms": [], "itl_ms": [], "e2e_latency_ms": []}
    if row.e2e_latency_ms is not None:
        samples["e2e_latency_ms"].append(row.e2e_latency_ms)
    if row.ttft_ms is not None:
        samples["ttft_ms"].append(row.ttft_ms)
        gaps = sequence(record.get("itl_ms"))
        samples["itl_ms"].extend(gap for gap in gaps if type(gap) is float or type(gap) is int)
    for key, found in samples.items():
        latency[key].add(found, corrupted=row.corrupted)
