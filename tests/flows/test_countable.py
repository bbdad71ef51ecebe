"""Records that a run wrote are counted; what looks like one and is none is left out."""

from __future__ import annotations

from typing import Any

import pytest

from dsv4doctor.flows.countable import is_countable
from tests.report.runs import failed_record, full_record, hostile_run, large_run, small_run


def test_whatever_a_run_writes_counts() -> None:
    for record in [*small_run(), *hostile_run(), failed_record(1, 2), *large_run(5, 2)]:
        assert is_countable(record), record


@pytest.mark.parametrize(
    "change",
    [
        {"session": 10**30}, {"session": None}, {"session": "1"}, {"session": True}, {"turn": 1.5},
        {"also": 7}, {"also": [7]}, {"itl_ms": ["x"]}, {"itl_ms": None}, {"sent_unix": "now"},
        {"ttft_ms": 1e300}, {"e2e_latency_ms": None}, {"prompt_tokens": -(10**30)},
        {"primary": None}, {"primary": 3}, {"failure": {"kind": None}}, {"failure": "timeout"},
        {"kind": None}, {"evidence": "text"}, {"corrupted": "yes"}, {"aborted": None},
    ],
    ids=str,
)  # fmt: skip
def test_what_no_run_wrote_does_not(change: dict[str, Any]) -> None:
    assert not is_countable({**full_record(0, 0), **change})


@pytest.mark.parametrize("name", ["session", "also", "itl_ms", "aborted", "failure", "evidence"])
def test_a_member_that_is_not_there_is_missed(name: str) -> None:
    record = full_record(0, 0)
    del record[name]
    assert not is_countable(record)
