"""Flags of `checksum live` that cannot be meant are refused before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dsv4doctor.cli.checksum import app
from dsv4doctor.errors import UsageError


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--index-k", "fp8"), "takes no --index-k"),
        (("--require-gpu",), "takes no --require-gpu"),
        (("--ssh-host", "x", "--during", "repro"), "--during needs the server"),
        (("--ssh-host", "x", "--lab-hicache", "on"), "contradict"),
        (("--max-bytes", "0"), "leaves nothing"),
    ],
)
def test_flags_that_say_nothing_here_are_refused(
    tmp_path: Path, flags: tuple[str, ...], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    words = ["live", "--output-dir", str(tmp_path), *flags]
    refused = CliRunner().invoke(app, words).exception
    assert isinstance(refused, UsageError)
    assert problem in str(refused)
    assert refused.hint
    assert not list(tmp_path.iterdir())
