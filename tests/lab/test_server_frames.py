"""The bytes on the wire, frame by frame, as SGLang writes them."""

from __future__ import annotations

import json
import re
from typing import Any

from dsv4doctor.lab.http_frames import StreamEncoder, complete_body
from dsv4doctor.lab.http_launch import LaunchOptions
from dsv4doctor.lab.http_request import ChatRequest, read_chat_request
from dsv4doctor.lab.output.behaviour import behaviour_of
from dsv4doctor.lab.requests import Generation

TOOLS = [
    {"type": "function", "function": {"name": "store", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}},
]
CALL_PIECES = (
    "Well",
    ".\n\n",
    "<",
    "｜DSML｜",
    "tool_calls",
    ">\n<",
    "｜DSML｜",
    'invoke name="lookup">\n<',
    "｜DSML｜",
    'parameter name="code" string="true">',
    "K7F3",
    "-QM2X",
    "</",
    "｜DSML｜",
    "parameter>\n</",
    "｜DSML｜",
    "invoke>",
    "\n</",
    "｜DSML｜",
    "tool_calls>",
)


def request(**fields: Any) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    return read_chat_request({**body, **fields}, LaunchOptions())


def generation(*pieces: str, reason: str = "stop", cached: int = 0) -> Generation:
    return Generation(
        rid="r1", prompt_tokens=10, cached_tokens=cached, pieces=pieces, finish_reason=reason
    )


def frames(steps: list[bytes]) -> list[Any]:
    events = b"".join(steps).decode().split("\n\n")
    assert events.pop() == ""
    assert all(event.startswith("data: ") for event in events)
    assert events[-1] == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events[:-1]]


def encoded(chat: ChatRequest, made: Generation, group: str = "B") -> list[Any]:
    return frames(StreamEncoder(chat, made.rid).encode(made, behaviour_of(group)))


def deltas(chunks: list[Any]) -> list[Any]:
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]


def test_plain_content_is_role_then_content_then_finish_then_usage() -> None:
    chat = request(stream_options={"include_usage": True})
    made = generation("Hel", "lo", cached=4)
    steps = StreamEncoder(chat, "r1").encode(made, behaviour_of("B"))
    assert len(steps) == 2, "one step a token; the role rides on the first, the end on the last"
    role, first, second, finish, usage = frames(steps)
    assert role["choices"][0] == {
        "index": 0,
        "delta": {"reasoning_content": None, "role": "assistant", "content": ""},
        "logprobs": None,
        "finish_reason": None,
        "matched_stop": None,
    }
    assert (role["id"], role["object"], role["model"]) == ("r1", "chat.completion.chunk", "m")
    assert "usage" not in role
    assert deltas([first, second]) == [
        {"reasoning_content": None, "content": "Hel"},
        {"reasoning_content": None, "content": "lo"},
    ]
    assert finish["choices"][0]["delta"] == {"reasoning_content": None}
    assert (finish["choices"][0]["finish_reason"], finish["choices"][0]["matched_stop"]) == (
        "stop",
        1,
    )
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 10,
        "total_tokens": 13,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4},
        "reasoning_tokens": 0,
    }


def test_without_include_usage_no_frame_has_usage() -> None:
    assert not any(chunk.get("usage") for chunk in encoded(request(), generation("a", "b")))


def test_continuous_usage_counts_up_in_every_content_frame() -> None:
    chat = request(stream_options={"continuous_usage_stats": True})
    counted = [c["usage"]["completion_tokens"] for c in encoded(chat, generation("a", "b"))[1:3]]
    assert counted == [1, 2]


def test_a_call_in_group_b_is_id_and_name_then_arguments() -> None:
    chunks = encoded(request(tools=TOOLS), generation(*CALL_PIECES))
    calls = [delta["tool_calls"][0] for delta in deltas(chunks) if delta.get("tool_calls")]
    assert re.fullmatch(r"call_[0-9a-f]{24}", calls[0]["id"])
    assert calls[0]["function"] == {"name": "lookup", "arguments": ""}
    assert all(c["id"] is None and c["function"]["name"] is None for c in calls[1:])
    assert all((c["index"], c["type"]) == (0, "function") for c in calls)
    assert "".join(c["function"]["arguments"] for c in calls) == '{"code": "K7F3-QM2X"}'
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    content = next(delta for delta in deltas(chunks) if delta.get("content"))
    assert content == {
        "role": None,
        "content": "Well",
        "reasoning_content": None,
        "tool_calls": None,
    }


def test_a_call_in_group_c_is_one_frame() -> None:
    chunks = encoded(request(tools=TOOLS), generation(*CALL_PIECES), "C")
    calls = [delta["tool_calls"][0] for delta in deltas(chunks) if delta.get("tool_calls")]
    assert [call["function"]["arguments"] for call in calls] == ['{"code": "K7F3-QM2X"}']


def test_a_length_stop_stays_length_with_half_a_call_and_flushes_its_arguments() -> None:
    chunks = encoded(request(tools=TOOLS), generation(*CALL_PIECES[:-9], reason="length"))
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["choices"][0]["matched_stop"] is None
    calls = [delta["tool_calls"][0] for delta in deltas(chunks) if delta.get("tool_calls")]
    assert "".join(c["function"]["arguments"] for c in calls) == '{"code": "K7F3"}'


def test_tool_choice_none_leaves_the_text_alone() -> None:
    chunks = encoded(request(tools=TOOLS, tool_choice="none"), generation(*CALL_PIECES))
    assert "".join(d.get("content") or "" for d in deltas(chunks)) == "".join(CALL_PIECES)


def test_an_empty_reply_is_role_and_finish() -> None:
    assert len(encoded(request(), generation())) == 2


def test_an_abort_ends_with_its_reason_and_what_was_sent() -> None:
    encoder = StreamEncoder(request(stream_options={"include_usage": True}), "r1")
    finish, usage = frames([encoder.abort_tail(generation("a", "b", "c"), 2)])
    assert finish["choices"][0]["finish_reason"] == "abort"
    assert usage["usage"]["completion_tokens"] == 2
    role, *_ = frames([encoder.abort_tail(generation(), 0)])
    assert role["choices"][0]["delta"]["role"] == "assistant"


def test_without_streaming_content_is_empty_and_not_null_beside_calls() -> None:
    body = complete_body(
        generation(*CALL_PIECES[2:]), request(tools=TOOLS), "r1", behaviour_of("B")
    )
    choice = body["choices"][0]
    message = choice["message"]
    assert (message["content"], message["reasoning_content"]) == ("", None)
    # The index is the position in the tools list: SGLang's quirk without streaming.
    assert (message["tool_calls"][0]["index"], choice["finish_reason"]) == (1, "tool_calls")
    assert choice["matched_stop"] is None
    assert body["usage"]["completion_tokens"] == len(CALL_PIECES) - 2 + 1


def test_without_streaming_no_calls_is_null() -> None:
    body = complete_body(generation("hi"), request(tools=TOOLS), "r1", behaviour_of("B"))
    assert body["choices"][0]["message"]["tool_calls"] is None
    assert body["choices"][0]["finish_reason"] == "stop"
