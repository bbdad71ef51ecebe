"""Streams that are closed or full: an answer or one clear line, never a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest


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
