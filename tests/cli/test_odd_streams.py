"""Streams that are closed or full: an answer or one clear line, never a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.runs import small_run, write_run


def shell(words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"{sys.executable} -m dsv4doctor {words}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        pytest.param("scan - <&-", 0, "no response was read", id="no-standard-input"),
        pytest.param("size --spec - <&-", 2, "is no JSON", id="no-spec"),
        pytest.param("size 2>/dev/full", 0, "", id="nobody-listens"),
        pytest.param("size >/dev/full", 3, "No space left", id="full-output"),
        pytest.param("size <&- >&- 2>&-", 0, "", id="nothing-is-open"),
    ],
)
def test_streams_that_are_closed_or_full(words: str, code: int, said: str) -> None:
    done = shell(words)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A log with leaks at its end, and a run, in a folder of their own."""
    clean, leak = "Paris is the capital of France.", "<｜DSML｜tool_calls>"
    replies = [clean] * 500 + [clean + leak] * 500
    lines = [
        json.dumps({"response": {"content": reply, "finish_reason": "stop"}}) for reply in replies
    ]
    (tmp_path / "replies.jsonl").write_text("\n".join(lines), encoding="utf-8")
    write_run(tmp_path / "made", small_run()).rename(tmp_path / "RUN")
    return tmp_path


# Gone before the first byte (whichever of the two starts sooner), and gone after a line.
GONE, ONE_LINE = "(exec 0<&-)", "head -1"
CODES = [
    ("scan replies.jsonl", 1),
    ("scan replies.jsonl --per-record", 1),
    ("scan replies.jsonl --json --per-record", 1),
    ("scan replies.jsonl --fail-on error --no-progress 2>&1", 1),
    ("scan NOWHERE 2>&1", 2),
    ("lab search --as-version 0.5.18", 1),
    ("lab search --as-version 0.5.18 --json", 1),
    ("report RUN", 0),
    ("report RUN --format csv", 0),
    ("report NOWHERE --json 2>&1", 2),
    ("size --version 0.5.13 --index-k bf16", 1),
    ("size --help", 0),
]


@pytest.mark.parametrize("reader", [GONE, ONE_LINE])
@pytest.mark.parametrize(("words", "code"), CODES, ids=str)
def test_a_reader_that_goes_changes_no_exit_code(
    words: str, code: int, reader: str, files: Path
) -> None:
    command = f"{sys.executable} -m dsv4doctor {words}"
    wait = "sleep 0.1; " if reader == GONE else ""
    done = subprocess.run(
        ["bash", "-c", f"({wait}{command}) | {reader} >/dev/null; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=files,
        timeout=120,
    )
    assert done.stdout == f"{code}\n", done.stderr
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_an_unbuffered_stream_outlives_its_reader_too(files: Path) -> None:
    command = f"PYTHONUNBUFFERED=1 {sys.executable} -m dsv4doctor scan replies.jsonl"
    done = subprocess.run(
        ["bash", "-c", f"(sleep 0.1; {command}) | {GONE}; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=files,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
