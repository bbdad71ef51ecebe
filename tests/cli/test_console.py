"""A result's width: COLUMNS, the terminal, a pipe; and that nothing is wider than it may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len

from dsv4doctor.cli.app import main
from dsv4doctor.cli.console import PIPE_WIDTH, asked_width, result_width
from tests.report.runs import hostile_run, small_run, write_run


@pytest.mark.parametrize(
    ("told", "width"),
    [
        ("80", 80), (" 80 ", 80), ("0", None), ("", None), ("wide", None), ("-80", None),
        ("8.5", None), ("3", 20), ("9" * 40, 1000), ("８０", None),
    ],
)  # fmt: skip
def test_columns_are_taken_where_they_are_a_width(
    told: str, width: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", told)
    assert asked_width() == width
    assert result_width() == (width or PIPE_WIDTH)


def printed(capfd: pytest.CaptureFixture[str], *paths: Path) -> list[str]:
    with pytest.raises(SystemExit) as ended:
        main(["report", *map(str, paths)])
    assert not ended.value.code
    return capfd.readouterr().out.splitlines()


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_a_piped_report_is_as_wide_as_columns_says(
    columns: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    runs = [
        write_run(tmp_path, records, label=label)
        for label, records in (("hostile", hostile_run()), ("small", small_run()))
    ]
    for paths in ([runs[0]], [runs[1]], runs):
        lines = printed(capfd, *paths)
        # A command line is never broken, so that it can be copied.
        wide = [line for line in lines if cell_len(line) > columns and "$ dsv4doctor" not in line]
        assert not wide
        assert max(map(cell_len, lines)) > columns * 0.8
