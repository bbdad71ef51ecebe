"""SGLang's and vLLM's request logs, line by line, in the forms of their releases."""

# Long lines: log lines that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import json
from typing import Any

import pytest

from dsv4doctor.artifacts.serverlogs import is_event, record_of_event, record_of_line

STAMP = "[2031-05-04 10:00:01] "
META = "'meta_info': {'id': 'r1', 'finish_reason': {'type': 'stop', 'matched': 1}, 'completion_tokens': 7}"


def _finish(text: str, asked: str = "rid='r1', text='hi'") -> str:
    return f"{STAMP}Finish: obj=GenerateReqInput({asked}), out={{'text': {text}, {META}}}"


def _event(out: dict[str, Any], event: str = "request.finished", **obj: Any) -> dict[str, Any]:
    return {"timestamp": "2031-05-04T10:00:01", "event": event, "rid": "r1", "obj": obj, "out": out}


def _out(text: str, finish: Any = None) -> dict[str, Any]:
    reason = {"type": "stop"} if finish is None else finish
    return {"text": text, "meta_info": {"finish_reason": reason, "completion_tokens": 7}}


def test_sglang_line_with_its_prompt_and_headers() -> None:
    asked = "rid='r1', text='<｜User｜>one<｜Assistant｜></think>two<｜User｜>three<｜Assistant｜></think>'"
    line = _finish(repr("It is 4."), asked).replace("), out", "), headers={'x-a': 'b'}, out")
    assert record_of_line(line) == {
        "time": "2031-05-04 10:00:01",
        "id": "r1",
        "raw_text": "It is 4.",
        "finish_reason": "stop",
        "completion_tokens": 7,
        "prompt": "three",
    }


def test_sglang_text_may_hold_three_dots_and_a_prompt_may_quote_the_log() -> None:
    record = record_of_line(
        _finish(repr("and so on ... then"), "rid='r1', text='see out={1} there'")
    )
    assert record is not None
    assert record["raw_text"] == "and so on ... then"


def test_sglang_thinking_that_its_prompt_opened() -> None:
    asked = "rid='r1', text='<｜User｜>q<｜Assistant｜><think>'"
    record = record_of_line(_finish(repr("Still thinking"), asked))
    assert record is not None
    assert record["raw_text"] == "<think>Still thinking"


@pytest.mark.parametrize("text", ["'aaa' ... 'bbb'", "None"])
def test_sglang_cut_or_absent_text_is_no_record(text: str) -> None:
    assert record_of_line(_finish(text)) is None


def test_sglang_levels_without_text_are_no_record() -> None:
    line = f"{STAMP}Finish: obj=GenerateReqInput(rid='r1'), out={{{META}}}"
    assert record_of_line(line) is None


def test_sglang_json_line_and_bare_event_say_the_same() -> None:
    event = _event(_out("It is 4."), text="<｜User｜>2+2<｜Assistant｜></think>")
    bare = record_of_event(event)
    assert record_of_line(STAMP + json.dumps(event, ensure_ascii=False)) == bare
    assert bare is not None
    assert (bare["id"], bare["raw_text"], bare["prompt"]) == ("r1", "It is 4.", "2+2")
    assert (bare["time"], bare["finish_reason"]) == ("2031-05-04T10:00:01", "stop")


def test_sglang_json_text_that_was_halved_is_no_record() -> None:
    halved = "a" * 1024 + "..." + "b" * 1024
    assert record_of_event(_event(_out(halved))) is None
    assert record_of_event(_event(_out(halved + "c"))) is not None


def test_sglang_other_events_are_known_and_hold_nothing() -> None:
    received = {"event": "request.received.openai", "obj": {"messages": []}}
    assert is_event(received)
    assert record_of_event(received) is None
    assert not is_event({"event": "login", "obj": {}})


def _generated(
    text: str, how: str = "", finish: str = "stop", ids: str = ", output_token_ids: [1, 2]"
) -> str:
    return f"INFO 05-04 10:00:02 [logger.py:80] Generated response chatcmpl-1{how}: output: {text!r}{ids}, finish_reason: {finish}"


@pytest.mark.parametrize("ids", [", output_token_ids: [1, 2]", ", output_token_ids: None", ""])
def test_vllm_whole_reply(ids: str) -> None:
    record = record_of_line("(APIServer pid=7) " + _generated('It\'s "4".', ids=ids))
    assert record is not None
    assert record["response"]["content"] == 'It\'s "4".'
    assert record["response"]["finish_reason"] == "stop"


def test_vllm_calls_are_calls() -> None:
    text = '[tool_calls: f({"a": "x), g("}), get_time({}), h({"b": 1)]'
    record = record_of_line(_generated(text, finish="tool_calls"))
    assert record is not None
    calls = [call["function"] for call in record["response"]["tool_calls"]]
    assert [call["name"] for call in calls] == ["f", "get_time", "h"]
    assert [call["arguments"] for call in calls] == ['{"a": "x), g("}', "{}", '{"b": 1']
    assert record["response"]["content"] is None


def test_vllm_stream_is_read_once_and_raw() -> None:
    assert record_of_line(_generated("It", " (streaming delta)", "None")) is None
    record = record_of_line(
        _generated("a</think>It", " (streaming complete)", "streaming_complete")
    )
    assert record is not None
    assert (record["raw_text"], record["finish_reason"]) == ("a</think>It", "stop")
    empty = "<streaming_complete: 12 tokens>"
    assert record_of_line(_generated(empty, " (streaming complete)", "streaming_complete")) is None
