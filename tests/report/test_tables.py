"""Tables of records: the same columns and types whatever the records hold."""

from __future__ import annotations

import csv
import io
import random
import sys
from typing import Any

import pandas as pd
import pytest

from dsv4doctor.errors import DoctorError
from dsv4doctor.report.formats.csv import harmless, render_csv, render_parquet, require_parquet
from tests.report.runs import full_record, hostile_run, small_run

# What a file that was edited, or came from elsewhere, may hold where numbers belong.
ODD: tuple[Any, ...] = (1.5, "x", 10**30, -(10**30), True, None, [], {}, "1", 1e300)


def odd_run() -> list[dict[str, Any]]:
    source = random.Random(5)
    names = ("segment", "resends", "session", "turn", "prompt_tokens", "sent_unix", "ttft_ms",
             "e2e_latency_ms", "failure", "evidence", "also", "kind", "primary", "response", "id",
             "raw", "request_id", "cached_tokens")  # fmt: skip
    return [
        {**full_record(1, 1), source.choice(names): odd, source.choice(names): source.choice(ODD)}
        for odd in ODD
        for _ in range(8)
    ]


def test_a_table_has_its_columns_whatever_is_in_it() -> None:
    heads = [render_csv(run).partition("\n")[0] for run in ([], small_run(), hostile_run())]
    assert heads[0] == heads[1] == heads[2]
    assert heads[0].startswith("id,session,turn,kind,")


def test_what_is_no_number_is_no_cell_and_no_crash() -> None:
    rows = list(csv.DictReader(io.StringIO(render_csv(odd_run()))))
    assert len(rows) == 80
    assert {row["segment"] for row in rows} <= {"", "1"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("=1+1", "'=1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"),
        ("-", "-"),
        ("-12.5", "-12.5"),
        ("+49 30", "'+49 30"),
        ("a\nb\x1b[31m", "a\\nb\\x1b[31m"),
        ("fine", "fine"),
    ],
)
def test_a_spreadsheet_runs_nothing(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_parquet_without_its_library_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    require_parquet("--format csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DoctorError, match="parquet needs pyarrow") as told:
        require_parquet("--format csv")
    assert told.value.hint == "pip install 'dsv4doctor[parquet]', or --format csv"


def test_parquet_has_the_types_and_the_text_as_received() -> None:
    frames = [
        pd.read_parquet(io.BytesIO(render_parquet(run)))
        for run in ([], small_run(), hostile_run(), odd_run())
    ]
    assert all((frame.dtypes == frames[0].dtypes).all() for frame in frames)
    assert any("\x1b" in text for text in frames[2]["reply"])
