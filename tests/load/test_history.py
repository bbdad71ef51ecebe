"""Live history: the model's own replies go back, and results find the calls really made."""

from __future__ import annotations

from dataclasses import replace

from builders_load import script

from dsv4doctor.exchange import Response, ToolCall
from dsv4doctor.load.history import Conversation, answered, request_body
from dsv4doctor.load.options import RunOptions
from dsv4doctor.scenario import History


def call(id_: str | None) -> ToolCall:
    return ToolCall(id=id_, name="look", arguments='{"a": "\ud800"}', index=0, type="function")


RESULT = {"role": "tool", "tool_call_id": "scripted_0", "content": "r0"}
ASK = {"role": "user", "content": "next"}
EXPECTED = {"role": "assistant", "content": "", "tool_calls": [{"id": "scripted_0"}]}


def test_scripted_history_ignores_what_was_said() -> None:
    one = script(0, turns=2, new=(RESULT, ASK))
    conversation = Conversation(one, {})
    conversation.messages_for(0)
    conversation.add_reply(0, Response(content="something else"))
    assert conversation.messages_for(1) == one.messages(1)


def test_live_history_sends_the_reply_and_matches_ids() -> None:
    one = script(0, turns=2, new=(RESULT, ASK), expected=EXPECTED, history=History.LIVE)
    conversation = Conversation(one, {})
    first = list(conversation.messages_for(0))
    conversation.add_reply(0, Response(content=None, tool_calls=(call("call_real"),)))
    reply, *rest = conversation.messages_for(1)[len(first) :]
    assert reply["tool_calls"][0]["id"] == "call_real"
    assert reply["tool_calls"][0]["function"]["arguments"] == '{"a": "\ud800"}'
    assert rest == [{**RESULT, "tool_call_id": "call_real"}, ASK]


def test_results_without_a_call_become_user_messages() -> None:
    said = {"role": "assistant", "content": "no call"}
    assert answered((RESULT, ASK), EXPECTED, said) == [{"role": "user", "content": "r0"}, ASK]


def test_calls_without_a_result_are_closed() -> None:
    said = {"role": "assistant", "content": "", "tool_calls": [{"id": "x"}, {"id": "y"}]}
    assert answered((RESULT, ASK), EXPECTED, said) == [
        {**RESULT, "tool_call_id": "x"},
        {"role": "tool", "tool_call_id": "y", "content": "no result"},
        ASK,
    ]


def test_a_resumed_live_session_takes_the_saved_reply() -> None:
    one = script(0, turns=2, history=History.LIVE)
    saved = {"role": "assistant", "content": "as saved"}
    conversation = Conversation(one, {0: saved})
    conversation.messages_for(0)
    conversation.add_reply(0, None)
    assert saved in conversation.messages_for(1)


def test_the_body_holds_what_the_script_says() -> None:
    one = script(0, turns=1, tools=({"type": "function"},))
    body = request_body(one, 0, [ASK], RunOptions(model="m", extra_body={"seed": 1}))
    assert body == {
        "model": "m", "messages": [ASK], "tools": [{"type": "function"}], "tool_choice": "auto",
        "max_tokens": 9, "temperature": 0.0, "stream": True,
        "stream_options": {"include_usage": True}, "seed": 1,
    }  # fmt: skip


def test_a_salted_prompt_begins_like_no_other() -> None:
    one = replace(script(0, turns=2), salts_prompts=True)
    messages = one.messages(1)
    starts = set()
    for options in (RunOptions(model="m"), RunOptions(model="m")):
        for turn in (0, 1):
            body = request_body(one, turn, messages, options)
            starts.add(body["messages"][0]["content"][:16])
            assert body["messages"][0]["content"].endswith(messages[0]["content"])
            assert body["messages"][1:] == messages[1:]
    assert len(starts) == 2, "a salt is its run's"
    of_session = replace(one, salts_prompts=False, salts_sessions=True)
    options = RunOptions(model="m")
    first, second = (request_body(of_session, turn, messages, options) for turn in (0, 1))
    assert first["messages"][0] == second["messages"][0] != messages[0]
    assert messages == one.messages(1), "the history itself is not touched"
