"""From names to sources: each file once, and what is wrong with a name said."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4doctor.artifacts.logfiles import open_sources


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text("{}\n")
    (tmp_path / "now.log").symlink_to("b.log")
    return tmp_path


@pytest.mark.parametrize(
    ("names", "read"),
    [
        (["a.log"], ["a.log"]),
        (["a.log", "a.log"], ["a.log"]),
        (["a.log", "./a.log", "*.log"], ["a.log", "b.log"]),
        (["*.log", "now.log"], ["a.log", "b.log"]),
        (["b.log", "a.log"], ["b.log", "a.log"]),
        (["-", "a.log", "-"], ["<stdin>", "a.log"]),
        (["gone", "gone"], ["gone"]),
    ],
)
def test_a_file_is_read_once(names: list[str], read: list[str], logs: Path) -> None:
    assert [source.name for source in open_sources(names)] == read


def test_files_that_are_alike_are_two(logs: Path) -> None:
    assert len(open_sources(["a.log", "b.log"])) == 2


def test_an_empty_name_is_said_to_be_one(logs: Path) -> None:
    empty, good = open_sources(["", "a.log"])
    assert empty.problem is not None
    assert "empty name" in empty.problem
    assert good.problem is None
