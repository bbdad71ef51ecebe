"""What the chat route takes and what it refuses, in SGLang's words."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

from dsv4doctor.cli.lab_serve import serve
from dsv4doctor.errors import UsageError
from dsv4doctor.lab.http_json import BadRequest
from dsv4doctor.lab.http_launch import LaunchOptions, resolve_index_k
from dsv4doctor.lab.http_request import read_chat_request

OPTIONS = LaunchOptions(context_length=1000)
TOOL = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}
USER = {"role": "user", "content": "hello"}


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [USER], **fields}


REFUSED = [
    ([], "not a JSON object"),
    (body(messages=[]), "Messages cannot be empty."),
    (body(messages="hi"), "valid list"),
    (body(messages=[{"role": "wizard", "content": ""}]), "messages.0"),
    (body(messages=[{"role": "user", "content": [{"type": "image_url"}]}]), "'image_url'"),
    (body(messages=[{"role": "user", "content": 5}]), "messages.0.content"),
    (body(messages=[{"role": "assistant", "tool_calls": [{}]}]), "messages.0.tool_calls"),
    (body(model=5), "model"),
    (body(model="base:adapter"), "LoRA adapter 'adapter' was requested, but LoRA is not enabled"),
    (body(n=2), "n must be 1"),
    (body(max_tokens="9"), "max_tokens"),
    (body(max_tokens=-1), "max_tokens"),
    (body(max_tokens=1001), "max_completion_tokens is too large: 1001."),
    (body(tools=[{"function": {}}]), "tools.0.function.name"),
    (
        body(tools=[{"function": {"name": "f", "parameters": {"required": 5}}}]),
        "Tool 0 function has invalid 'parameters' schema: 5 is not of type 'array'",
    ),
    (body(tools=[{"function": {"name": "f", "parameters": [1]}}]), "'parameters' schema"),
    (body(tool_choice="required"), "Tools cannot be empty if tool choice is set to required."),
    (body(tools=[TOOL], tool_choice="sometimes"), "tool_choice"),
    (
        body(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "other"}}),
        "Tool 'other' not found in tools list.",
    ),
    (
        body(tool_choice={"type": "function", "function": {"name": "lookup"}}),
        "Tools cannot be empty if tool choice is set to a specific tool.",
    ),
    (body(stream_options="yes"), "stream_options"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refused(given: object, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_chat_request(given, OPTIONS)
    assert message in str(refused.value)


def test_defaults() -> None:
    chat = read_chat_request({"messages": [USER]}, OPTIONS)
    assert (chat.model, chat.stream, chat.max_tokens, chat.tool_choice) == (
        "default",
        False,
        512,
        "none",
    )
    assert not chat.parses_calls


def test_any_model_name_is_served_as_sglang_serves_it() -> None:
    assert read_chat_request(body(model="no-such-model"), OPTIONS).model == "no-such-model"


def test_a_served_name_may_hold_a_colon() -> None:
    options = LaunchOptions(served_model_name="a:b")
    assert read_chat_request(body(model="a:b"), options).model == "a:b"


def test_max_completion_tokens_goes_before_max_tokens() -> None:
    chat = read_chat_request(body(max_tokens=7, max_completion_tokens=9), OPTIONS)
    assert chat.max_tokens == 9


@pytest.mark.parametrize(
    ("fields", "parses"),
    [
        ({"tools": [TOOL]}, True),
        ({"tools": [TOOL], "tool_choice": "none"}, False),
        ({"tools": [TOOL], "tool_choice": "required"}, True),
        ({"tools": []}, False),
    ],
)
def test_calls_are_parsed_where_there_are_tools(fields: dict[str, Any], parses: bool) -> None:
    assert read_chat_request(body(**fields), OPTIONS).parses_calls is parses


def test_text_parts_and_past_calls_are_taken() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "lookup"}}]},
        {"role": "tool", "content": "found", "tool_call_id": "1"},
    ]
    assert read_chat_request(body(messages=messages), OPTIONS).messages == messages


@pytest.mark.parametrize(
    ("chosen", "fp4", "environment", "dtype"),
    [
        (None, False, {}, "fp8"),
        (None, True, {}, "fp4"),
        (None, False, {"SGLANG_DSV4_BF16_INDEX_K": "1"}, "bf16"),
        (None, False, {"SGLANG_DSV4_BF16_INDEX_K": "0"}, "fp8"),
        ("bf16", False, {"SGLANG_DSV4_BF16_INDEX_K": "true"}, "bf16"),
        ("fp4", False, {}, "fp4"),
    ],
)
def test_index_k(chosen: str | None, fp4: bool, environment: dict[str, str], dtype: str) -> None:
    assert resolve_index_k(chosen, fp4_indexer=fp4, environment=environment) == dtype


def test_the_command_and_the_options_have_the_same_defaults() -> None:
    defaults = LaunchOptions()
    shared = {field.name for field in dataclasses.fields(LaunchOptions)} & set(
        inspect.signature(serve).parameters
    )
    said = {name: inspect.signature(serve).parameters[name].default for name in shared}
    # None stands for a default that is decided later, from other flags or the environment.
    said = {name: value for name, value in said.items() if value is not None}
    assert len(said) > 8
    assert said == {name: getattr(defaults, name) for name in said}


def test_a_launch_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--index-k \(fp8\) and SGLANG_DSV4_BF16_INDEX_K=1"):
        resolve_index_k("fp8", fp4_indexer=False, environment={"SGLANG_DSV4_BF16_INDEX_K": "1"})
