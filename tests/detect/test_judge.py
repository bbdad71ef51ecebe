"""The judgement as a whole: the public cases, the order of labels, and that nothing makes it
fail."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from builders_detect import TOOLS, call, labels, reply
from hypothesis import given, settings
from hypothesis import strategies as st

import dsv4doctor.detect
from dsv4doctor.detect import DETECTORS, judge
from dsv4doctor.detect.primary import ORDER
from dsv4doctor.exchange import exchange_from_record
from dsv4doctor.label import FAILURES, Label

SCORING = ("id", "label", "also", "note", "difficulty", "source", "engine")
PRIMARY_FLOOR = 0.95
CLEAN_OR_NOT_FLOOR = 0.97


def test_public_cases(shared_data: Path) -> None:
    lines = (shared_data / "corpus" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    right = told = 0
    alarms, missed = [], []
    for case in cases:
        record = {key: value for key, value in case.items() if key not in SCORING}
        primary = judge(exchange_from_record(record)).primary.value
        right += primary == case["label"]
        told += (primary == "clean") == (case["label"] == "clean")
        if case["label"] == "clean" != primary:
            alarms.append(case["id"])
        if primary == "clean" != case["label"] and case["difficulty"] != "hard":
            missed.append(case["id"])
    assert alarms == []
    assert missed == []
    assert right >= PRIMARY_FLOOR * len(cases)
    assert told >= CLEAN_OR_NOT_FLOOR * len(cases)


def test_every_label_has_one_detector_in_the_tuple() -> None:
    folder = Path(dsv4doctor.detect.__file__).parent
    modules = {p.stem for p in folder.glob("*.py") if "\nDETECTOR = " in p.read_text("utf-8")}
    assert {detector.label.value for detector in DETECTORS} == modules
    assert modules == {label.value for label in Label if label not in FAILURES} - {"clean"}


def test_every_label_has_a_place_in_the_order() -> None:
    assert {label for label, leads, _ in ORDER if not leads} == {d.label for d in DETECTORS}


@pytest.mark.parametrize(
    ("exchange", "primary"),
    [
        (reply("<｜DSML｜invoke name=\"get_weather\">", tools=TOOLS, tool_choice="required"), "dsml_leak"),
        (reply(None, call("get_weather", '{"city": "Os'), finish="length"), "truncated"),
        (reply(None, call("get_weather", '{"city": "Os'), finish="stop"), "malformed_arguments"),
        (reply("Go on" + " the" * 200, finish="length"), "repetition_loop"),
        (reply(None, call("nope", "{"), finish="tool_calls"), "unknown_tool"),
        (reply(None, reasoning="It is mild in Minsk today, around ten degrees."), "misplaced_reasoning"),
        (reply(None, tools=TOOLS, finish="tool_calls"), "missing_tool_call"),
    ],
)  # fmt: skip
def test_primary(exchange: Any, primary: str) -> None:
    assert labels(exchange)[0] == primary


_TEXT = st.text(max_size=300) | st.text(
    alphabet="<>|｜/DSML▁ \n`\"'{}[]:,tool_callsinvokeparameter=0an的ж\ud83d\u200b", max_size=300
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)
_CALL = st.fixed_dictionaries(
    {
        "id": _JSON,
        "index": _JSON,
        "function": st.fixed_dictionaries({"name": _JSON, "arguments": _JSON}),
    }
)
_RECORD = st.fixed_dictionaries(
    {
        "response": st.fixed_dictionaries(
            {
                "content": _JSON,
                "reasoning_content": _JSON,
                "tool_calls": st.lists(_CALL, max_size=3) | _JSON,
                "finish_reason": st.sampled_from(["stop", "length", "tool_calls", None]) | _JSON,
            }
        )
        | _JSON
    },
    optional={
        "prompt": _JSON,
        "tools": st.just(TOOLS) | _JSON,
        "tool_choice": _JSON,
        "canaries": _JSON,
        "canary_key": st.integers(0, 2**64 - 1) | _JSON,
        "session": _JSON,
        "session_marker": _TEXT,
        "max_tokens": _JSON,
    },
)


@settings(max_examples=300, deadline=None)
@given(_RECORD | _JSON)
def test_no_record_makes_it_raise(record: Any) -> None:
    judgement = judge(exchange_from_record(record))
    assert judgement.primary is Label.CLEAN or judgement.evidence


@settings(max_examples=60, deadline=None)
@given(_TEXT, st.integers(0, 20))
def test_the_same_text_in_parts_is_the_same_text(text: str, at: int) -> None:
    parts = [{"type": "text", "text": text[:at]}, {"type": "text", "text": text[at:]}]
    assert labels(reply(parts)) == labels(reply(text))


_UNITS = ["a", " ", "\n", "<", "<｜", "｜", "`", "(", ")", '"', "{", "的", "�", "🚀", "\u200b", "the ",
          "</", "ab ", "&lt;", "<think>", "«", "/x", "Ã", "�a", "1,", "\\", "DSML", "| ", "a.b ", "A-1 "]  # fmt: skip


@pytest.mark.parametrize("unit", _UNITS, ids=ascii)
def test_a_megabyte_of_anything_takes_under_a_second(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    started = time.process_time()
    judge(reply(text, prompt="x", tools=TOOLS, session_marker="AMBER-07"))
    judge(reply(None, call("write_file", {"path": "a", "content": text}), prompt="x"))
    judge(reply(None, call("write_file", text)))
    assert time.process_time() - started < 3.0
