"""The HTML page of a run: its report and its records, with the rates' intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dsv4doctor.flows.tally import context_bin
from dsv4doctor.report.book import RecordBook, book_of
from dsv4doctor.report.document import Report
from dsv4doctor.report.formats import html
from dsv4doctor.stats.rates import response_rate

REPORT_HTML = "report.html"


def html_page(report: Report, records: Iterable[Mapping[str, Any]]) -> str:
    """The page of one run; `records` are read once, in order, and not kept."""
    return html.render(report, records=record_book(records))


def record_book(records: Iterable[Mapping[str, Any]]) -> RecordBook:
    """The records as the page shows them, grouped as the run's own summary groups them."""
    return book_of(records, rate_of=response_rate, token_bin=context_bin)
