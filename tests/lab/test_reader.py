"""What the healthy lab answers: the scenarios' expected replies, and something sane to anybody."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from lab_sessions import corrupted, engine_of, run, scripts

from dsv4doctor.artifacts.catalog import scenario_names
from dsv4doctor.lab.requests import EngineRequest

TOOL = {
    "type": "function",
    "function": {
        "name": "book_table",
        "parameters": {
            "type": "object",
            "properties": {
                "guests": {"type": "integer", "minimum": 1, "maximum": 12},
                "place": {"type": "string", "enum": ["inside", "garden"]},
                "name": {"type": "string", "minLength": 3},
                "wishes": {"type": "array", "items": {"type": "string"}},
                "late": {"type": "boolean"},
            },
            "required": ["guests", "place", "name", "wishes", "late"],
        },
    },
}


def text_of(text: str, **fields: Any) -> str:
    messages = [{"role": "user", "content": text}]
    request = EngineRequest(rid="r", messages=messages, **fields)
    return engine_of(faults=("none",)).serve_round([request])[0].text


def calls_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a DSML block, read by the format's plain rules."""
    calls = []
    for name, body in re.findall(r'invoke name="(.*?)">\n(.*?)</｜DSML｜invoke>', text, re.DOTALL):
        pattern = r'name="(.*?)" string="(true|false)">(.*?)</｜DSML｜parameter>'
        arguments = {
            key: value if is_text == "true" else json.loads(value)
            for key, is_text, value in re.findall(pattern, body, re.DOTALL)
        }
        calls.append((name, arguments))
    return calls


@pytest.mark.parametrize("name", scenario_names())
def test_healthy_replies_are_the_expected_ones(name: str) -> None:
    engine = engine_of(faults=("none",), device_pages=1500)
    answers = run(engine, scripts(name, 5, 3))
    assert corrupted(answers) == []
    assert all(answer.generation.finish_reason == "stop" for answer in answers)


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "book_table"}}]
)
def test_a_forced_call_without_plants_fits_the_schema(choice: object) -> None:
    text = text_of("A table for 4 under the name Ferreira, please.", tools=[TOOL],
                   tool_choice=choice)  # fmt: skip
    [(name, arguments)] = calls_of(text)
    assert name == "book_table"
    jsonschema.validate(arguments, TOOL["function"]["parameters"])
    assert arguments["guests"] == 4
    assert arguments["name"] == "Ferreira"


def test_an_ask_whose_label_was_never_planted_still_gets_a_call() -> None:
    ask = "Call the tool `book_table` now: set `guests` to the number for `amber-heron-3`."
    [(_, arguments)] = calls_of(text_of(ask, tools=[TOOL], tool_choice="auto"))
    assert isinstance(arguments["guests"], int)


@pytest.mark.parametrize("choice", ["auto", "none"])
def test_a_free_prompt_is_answered_with_prose(choice: str) -> None:
    text = text_of("How is <｜DSML｜tool_calls> written?", tools=[TOOL], tool_choice=choice)
    assert text == "You wrote: How is <tool_calls> written?"


@pytest.mark.parametrize("text", ["", "北の港 🌊", "\ud800 lone", "<｜end▁of▁sentence｜>"])
def test_odd_prompts_are_answered(text: str) -> None:
    assert text_of(text).startswith("You wrote: ")


def test_max_tokens_cuts_a_reply() -> None:
    messages = [{"role": "user", "content": "one two three four five six seven eight"}]
    request = EngineRequest(rid="r", messages=messages, max_tokens=5)
    [reply] = engine_of().serve_round([request])
    assert len(reply.pieces) == 5
    assert reply.finish_reason == "length"


def test_cached_tokens_count_whole_pages_of_earlier_turns() -> None:
    engine = engine_of(faults=("none",))
    first, second = (answer.generation for answer in run(engine, scripts("tool-calls", 0, 1))[:2])
    assert first.cached_tokens == 0
    assert second.cached_tokens == second.cached_device_tokens == first.prompt_tokens // 256 * 256
    assert engine.flush_cache()
    assert engine.gauges()["kv_evictable_tokens"] == 0
