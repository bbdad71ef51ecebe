"""A scan's table never overwrites what is scanned."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper
from pathlib import Path

import pytest

from dsv4doctor.errors import UsageError
from dsv4doctor.flows.scan import ScanPlan, run_scan

LINE = json.dumps({"response": {"content": "Fine.", "finish_reason": "stop"}}) + "\n"


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.csv"
    path.write_text(LINE)
    (tmp_path / "other.log").write_text(LINE)
    (tmp_path / "symbolic.csv").symlink_to(path)
    (tmp_path / "hard.csv").hardlink_to(path)
    return path


@pytest.mark.parametrize("output", ["a.csv", "./a.csv", "symbolic.csv", "hard.csv"])
@pytest.mark.parametrize("files", [("a.csv",), ("other.log", "a.csv"), ("a*",)])
def test_a_log_is_not_overwritten(files: tuple[str, ...], output: str, log: Path) -> None:
    with pytest.raises(UsageError, match="is a log to scan") as refused:
        run_scan(ScanPlan(files=files, output=Path(output)))
    assert refused.value.exit_code == 2
    assert log.read_text() == LINE


def test_nor_is_the_file_behind_standard_input(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with log.open("rb") as stream:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(stream))
        with pytest.raises(UsageError, match="is a log to scan"):
            run_scan(ScanPlan(files=("-",), output=log))
    assert log.read_text() == LINE


def test_another_file_is_written_and_written_again(log: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    for _ in range(2):
        run_scan(ScanPlan(files=(str(log),), output=table))
    assert len(table.read_text().splitlines()) == 2
