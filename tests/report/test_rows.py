"""Rows of records that may hold anything, who was in flight with whom, and the rates by group."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4doctor.flows.report_page import record_book
from dsv4doctor.report.groups import NOT_REPORTED, concurrency_bin
from dsv4doctor.report.histogram import Histogram, edge_ms
from dsv4doctor.report.listing import MOST_LISTED, listing_of
from dsv4doctor.report.marks import LETTERS, Family, family_of
from dsv4doctor.report.rows import Standing, in_flight_at_sending, row_of
from dsv4doctor.report.wording import LABEL_MEANINGS
from tests.report.runs import corrupted_record, failed_record, full_record, small_run

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)
MEMBERS = st.sampled_from(sorted(full_record(0, 0)))


# The first example pays for the import of scipy.
@settings(deadline=None)
@given(changes=st.dictionaries(MEMBERS, ANYTHING, max_size=4))
def test_any_json_makes_a_row_and_a_book(changes: dict[str, Any]) -> None:
    record = {**full_record(0, 0), **changes}
    row = row_of(record)
    assert isinstance(row.text, str)
    book = record_book([record, full_record(1, 0)])
    assert len(book.rows) == 2
    json.loads(listing_of(book).data)


def spans(*times: tuple[float, float]) -> list[Any]:
    return [
        row_of(full_record(n, 0, sent_unix=sent, e2e_latency_ms=1000 * (end - sent)))
        for n, (sent, end) in enumerate(times)
    ]


@pytest.mark.parametrize(
    ("times", "flying"),
    [
        (((0, 10), (1, 10), (2, 10)), (1, 2, 3)),
        (((0, 1), (1, 2), (2, 3)), (1, 1, 1)),
        (((0, 5), (2, 3), (4, 6)), (1, 2, 2)),
        (((0, 0), (0, 0)), (1, 1)),
    ],
    ids=["all at once", "one after the other", "one ended between", "of no length"],
)
def test_in_flight_counts_what_was_sent_and_has_not_ended(times: Any, flying: Any) -> None:
    assert in_flight_at_sending(spans(*times)) == flying


def test_unknown_times_give_no_concurrency() -> None:
    rows = [row_of(full_record(0, 0, sent_unix=None)), row_of(full_record(1, 0))]
    assert in_flight_at_sending(rows) == (None, 1)


@given(st.integers(min_value=1, max_value=10_000))
def test_a_concurrency_bin_holds_its_number(requests: int) -> None:
    low = concurrency_bin(requests)
    assert low <= requests < 2 * low


def test_groups_count_each_judged_response_once() -> None:
    book = record_book(small_run())
    by_caption = {table.caption: table for table in book.groups}
    assert set(by_caption) == {
        "By context length", "By turn", "By cached tokens", "By concurrency",
    }  # fmt: skip
    for table in book.groups:
        assert sum(row.rate["n"] for row in table.rows) == 46
        assert sum(row.rate["k"] for row in table.rows) == 4
        for row in table.rows:
            assert row.rate["low"] <= row.rate["estimate"] <= row.rate["high"]
    cached = [row.group for row in by_caption["By cached tokens"].rows]
    assert cached[-1] == NOT_REPORTED


def test_a_sessions_responses_are_a_cluster() -> None:
    # 4 of 12, each of a session of its own, against 4 of 12 in one session of four.
    apart = record_book(
        [corrupted_record(n, 0) if n < 4 else full_record(n, 0) for n in range(12)]
        + [full_record(n, 1) for n in range(12)]
    )
    together = record_book(
        [
            (corrupted_record if n < 4 else full_record)(n // 4, n % 4, kind="x")
            for n in range(12)
        ]
        + [full_record(9, 0, kind="y")]
    )  # fmt: skip
    wide = next(t for t in together.groups if t.group_title == "asked for").rows[0].rate
    narrow = next(t for t in apart.groups if t.caption == "By turn").rows[0].rate
    assert (wide["k"], wide["n"]) == (narrow["k"], narrow["n"]) == (4, 12)
    assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]


def test_every_label_has_a_family_and_a_letter_of_its_own() -> None:
    assert set(LETTERS) - {"aborted"} == set(LABEL_MEANINGS)
    assert len(set(LETTERS.values())) == len(LETTERS)
    assert family_of(row_of(corrupted_record(0, 0, "empty"))) is Family.ENDS
    assert family_of(row_of(corrupted_record(0, 0, "not known yet"))) is Family.ENDS
    assert family_of(row_of(full_record(0, 0, primary="missing_tool_call"))) is Family.NAMED
    assert family_of(row_of(failed_record(0, 0))) is Family.FAILURE
    assert row_of(failed_record(0, 0)).standing is Standing.FAILED


@given(st.floats(min_value=0.01, max_value=1e7))
def test_a_sample_lies_in_its_bin(sample: float) -> None:
    histogram = Histogram()
    histogram.add([sample, float("nan")], corrupted=True)
    ((index, pair),) = histogram.bins.items()
    assert pair == [0, 1]
    assert edge_ms(index) <= sample * (1 + 1e-9)
    assert sample <= edge_ms(index + 1) * (1 + 1e-9)


def test_a_list_that_is_too_long_keeps_what_is_wrong() -> None:
    few = [corrupted_record(n, 1) for n in range(30)]
    many = [full_record(n, 0) for n in range(MOST_LISTED)]
    listing = listing_of(record_book([*many, *few]))
    rows = json.loads(listing.data)["rows"]
    assert (listing.listed, listing.left_out) == (MOST_LISTED, 30)
    assert sum(row[6] for row in rows) == 30
