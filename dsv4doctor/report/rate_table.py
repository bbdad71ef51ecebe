"""A `RateTable` as plain cells, for formats that draw nothing."""

from __future__ import annotations

from dsv4doctor.report.document import Column, RateTable, Table
from dsv4doctor.report.wording import count, interval, percent


def as_table(rates: RateTable) -> Table:
    """Group, corrupted, of how many, the rate and its interval."""
    columns = (
        Column(title=rates.group_title),
        Column(title=rates.of, is_number=True),
        Column(title="corrupted", is_number=True),
        Column(title="rate", is_number=True),
        Column(title="interval", is_number=True),
    )
    rows = tuple(
        (
            row.group,
            count(row.rate.get("n")),
            count(row.rate.get("k")),
            percent(row.rate.get("estimate")),
            interval(row.rate).removeprefix("95 % interval "),
        )
        for row in rates.rows
    )
    return Table(columns=columns, rows=rows)
