"""Which flags a resumed run does not heed."""

from __future__ import annotations

import pytest

from dsv4doctor.cli.resuming import say_unheeded, unheeded


@pytest.mark.parametrize(
    ("line", "ignored"),
    [
        pytest.param("repro --resume reports/x", [], id="none"),
        pytest.param(
            "repro --resume r --sessions 5 --turns=2", ["--sessions", "--turns"], id="two"
        ),
        pytest.param("repro --resume r --json --api-key k -H a=b --base-url u", [], id="heeded"),
        pytest.param("repro --resume r --lab-fault a --lab-fault b", ["--lab-fault"], id="once"),
        pytest.param("repro --resume r --seed -3", ["--seed"], id="a-number-is-no-flag"),
        pytest.param("repro --resume - --output-dir d", ["--output-dir"], id="dash"),
    ],
)
def test_flags_that_the_plan_outranks(line: str, ignored: list[str]) -> None:
    assert unheeded(line.split()) == ignored


def test_they_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    say_unheeded(["--resume", "r", "--margin", "0.1"], also_heeded=("--margin",))
    assert capsys.readouterr().err == ""
    say_unheeded(["--resume", "r", "--seed", "1"])
    assert "--seed is ignored" in capsys.readouterr().err
