"""Merging frames: any cut of a reply into deltas gives the reply; odd frames do not break it."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.client.accumulate import Accumulator, usage_of, whole_reply
from dsv4doctor.client.chunk import Chunk, NotJson, decode_chunk
from dsv4doctor.exchange import Response, ToolCall
from dsv4doctor.reply import Usage

TEXT = st.text(st.characters(exclude_categories=()), max_size=30)  # lone surrogates as well


def frame(delta: dict, finish: str | None = None, index: int = 0) -> bytes:
    return json.dumps(
        {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}
    ).encode()


def pieces(data: st.DataObject, text: str) -> list[str]:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
    bounds = [0, *cuts, len(text)]
    return [text[a:b] for a, b in itertools.pairwise(bounds)]


@given(TEXT, TEXT, st.lists(TEXT, max_size=3), st.data())
def test_any_cut_into_deltas_gives_the_reply(content, reasoning, arguments, data) -> None:
    nothing = data.draw(st.sampled_from([None, ""]))
    key = data.draw(st.sampled_from(["reasoning", "reasoning_content"]))
    events = Accumulator()
    for piece in pieces(data, reasoning):
        events.add(frame({key: piece, "content": nothing}))
    for piece in pieces(data, content):
        events.add(frame({"content": piece, "reasoning_content": nothing}))
    for index, text in enumerate(arguments):
        for number, piece in enumerate(pieces(data, text)):
            named = {"name": "f"} if number == 0 else {"name": nothing}
            call = {"index": index, "id": f"c{index}" if number == 0 else nothing}
            call["function"] = {**named, "arguments": piece}
            events.add(frame({"tool_calls": [call]}))
    events.add(frame({}, "stop"))
    calls = tuple(
        ToolCall(id=f"c{index}", name="f", arguments=text, index=index)
        for index, text in enumerate(arguments)
    )
    assert events.response() == Response(
        content=content or None,
        reasoning_content=reasoning or None,
        tool_calls=calls or None,
        finish_reason="stop",
    )


def test_tokens_are_deltas_with_output() -> None:
    events = Accumulator()
    carried = [
        events.add(data)
        for data in (
            frame({"role": "assistant", "content": ""}),
            frame({"content": "a"}),
            frame({"reasoning_content": "b", "content": "c"}),
            frame({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "f"}}]}),
            frame({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}),
            frame({}, "stop"),
            b"[DONE]",
        )
    ]
    assert carried == [False, True, True, True, False, False, False]
    assert events.tokens == 3
    assert events.saw_done


ODD = {
    "another choice": frame({"content": "no"}, index=1),
    "no choices": b'{"choices": []}',
    "null choices": b'{"choices": null, "usage": null}',
    "choices of another type": b'{"choices": [1, "x", null]}',
    "delta of another type": b'{"choices": [{"index": 0, "delta": 7}]}',
    "unhashable index": b'{"choices": [{"index": [], "delta": {"content": "no"}}]}',
    "calls of another type": b'{"choices": [{"index": 0, "delta": {"tool_calls": 7}}]}',
    "call without function": b'{"choices": [{"index": 1, "delta": {"tool_calls": [{}]}}]}',
    "deep nesting of what nobody reads": b'{"x": ' + b"[" * 500 + b"]" * 500 + b"}",
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD.keys())
def test_odd_frames_carry_nothing_and_break_nothing(data: bytes) -> None:
    events = Accumulator()
    assert not events.add(data)
    assert events.bad_frame is None
    assert events.response() == Response()


@pytest.mark.parametrize("data", [b"", b"7", b"[]", b'"x"', b"{", b'{"a":1}x', b"[" * 99999])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(NotJson):
        decode_chunk(data)


def test_content_that_is_no_text_is_kept() -> None:
    events = Accumulator()
    events.add(frame({"content": {"type": "text"}}))
    assert events.response().content == {"type": "text"}
    events.add(frame({"content": "x"}))
    assert events.response().content == '{"type": "text"}x'


@pytest.mark.parametrize(
    ("frame_", "name", "error", "code"),
    [
        (b'{"error": {"message": "m", "code": 500}}', b"", {"message": "m", "code": 500}, 500),
        (b'{"object": "error", "message": "m", "code": 400}', b"", "m", 400),
        (b'{"error": "m"}', b"", "m", None),
        (b'{"message": "m"}', b"error", "m", None),
    ],
    ids=["OpenAI", "older SGLang", "text", "by the event's name"],
)
def test_error_frames_are_remembered_whatever_follows(frame_, name, error, code) -> None:
    events = Accumulator()
    events.add(frame_, name)
    events.add(frame({}, "stop"))
    events.add(b"[DONE]")
    assert (events.error, events.error_code) == (error, code)


def test_named_side_channels_are_ignored() -> None:
    events = Accumulator()
    assert not events.add(b"not json", b"sglext_ids")
    assert events.bad_frame is None


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 0}, (3, 0, None)),
        ({"prompt_tokens_details": {"cached_tokens": 5}}, (None, None, 5)),
        ({"prompt_tokens": True, "completion_tokens": -1}, (None, None, None)),
        ({"prompt_tokens_details": None}, (None, None, None)),
        ("x", (None, None, None)),
    ],
)
def test_usage_that_is_absent_is_none(usage, counts) -> None:
    prompt, completion, cached = counts
    expected = Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached)
    assert usage_of(usage) == expected


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"choices": 7}', b'{"choices": [7]}', b'{"choices": [{"message": []}]}'],
)
def test_whole_replies_without_a_message_are_empty(body: bytes) -> None:
    assert whole_reply(body) == (Response(), Usage(), None)


def test_whole_calls_of_odd_shapes_are_kept() -> None:
    body = {"choices": [{"message": {"tool_calls": [7, {"function": "x"}]}}]}
    response, _, _ = whole_reply(json.dumps(body).encode())
    assert response.tool_calls == (ToolCall(arguments=7), ToolCall(arguments="x"))


def test_the_typed_door_reads_what_servers_send() -> None:
    assert isinstance(decode_chunk(frame({"content": "x"})), Chunk)
