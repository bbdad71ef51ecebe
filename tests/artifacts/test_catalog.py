"""Scenario files are decoded strictly, and errors name the file, the key and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4doctor.artifacts.catalog import load_scenario, scenario_names
from dsv4doctor.errors import UsageError
from dsv4doctor.scenario import TurnKind

GOOD = """
name = "mine"
title = "Mine"
description = "."
turns = 3
context_tokens = [2000, 3000]
"""


def test_the_scenarios_that_come_with_the_program() -> None:
    assert scenario_names() == (
        "abort-storm",
        "best-of-n",
        "long-context",
        "long-text",
        "parallel-calls",
        "parser-probe",
        "short-context",
        "tool-calls",
    )


@pytest.mark.parametrize("name", scenario_names())
def test_a_scenario_is_named_as_its_file(name: str) -> None:
    assert load_scenario(name).name == name


def test_the_default_is_what_the_lab_was_tuned_to() -> None:
    scenario = load_scenario("tool-calls")
    assert scenario.context_tokens == (2700, 5600)
    assert scenario.turns == 6
    assert scenario.turn_kinds.count(TurnKind.TOOL_CALL) > len(scenario.turn_kinds) / 2


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert load_scenario(str(path)).turns == 3


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        (GOOD + "canary_per_call = 2", "unknown key `canary_per_call`", "`canaries_per_call`"),
        (GOOD + "zzz = 2", "unknown key `zzz`", "known are name"),
        (GOOD + "[sampling]\ntemprature = 1", "`sampling.temprature`", "`sampling.temperature`"),
        (GOOD.replace("turns = 3", 'turns = "3"'), "got `str` - at `$.turns`", "tool-calls.toml"),
        (GOOD.replace("3000]", '"x"]'), "`$.context_tokens[1]`", "tool-calls.toml"),
        (GOOD + 'turn_kinds = ["tool"]', "`$.turn_kinds[0]`", "tool-calls.toml"),
        (GOOD + "sampling = 3", "`$.sampling`", "tool-calls.toml"),
        (GOOD.replace("turns = 3", "turns = -3"), "`turns` is -3", "1 to 256"),
        (GOOD.replace("turns = 3", ""), "missing required field `turns`", "tool-calls.toml"),
        (GOOD.replace("[2000", "[300"), "`context_tokens` is (300, 3000)", "rising"),
        (GOOD + "turn_kinds = []", "`turn_kinds` is ()", "at least one"),
        (GOOD + 'values = "code"', "`values` is 'code'", "codes"),
        (GOOD + "context_jitter = 0.9", "`context_jitter` is 0.9", "0.5"),
        (GOOD + 'tool_choice = "none"', "`tool_choice` is 'none'", "required"),
        (GOOD + "[sampling]\ntop_p = 0.0", "`sampling.top_p` is 0.0", "above 0"),
        (GOOD + "turns = ", "is no TOML", "tool-calls.toml"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, problem: str, hint: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_scenario(str(path))
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [("tool-call", "did you mean tool-calls?"), ("zzz", "there are abort-storm")],
)
def test_unknown_names_get_the_list(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=name) as caught:
        load_scenario(name)
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["missing.toml", "./missing", "/"])
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"file at|cannot read"):
        load_scenario(str(tmp_path / name))


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is no TOML"):
        load_scenario(str(path))
