"""Lines with values of every type and size where a text or a number belongs: counted, never the
end of a scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsv4doctor.flows import scan_records
from dsv4doctor.flows.scan import ScanPlan, run_scan

REPLY = {"response": {"content": "The worker waits.", "finish_reason": "stop"}}
DEEP = "[" * 1000 + "]" * 1000
ODD = [None, True, -1, 2.5, 10**400, "", "9" * 400, [], ["a"], {}, {"a": [1]}, {"kind": "x"}]


def piece(call: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    calls = [{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}, **(call or {})}]
    delta = {"content": "Fine.", "tool_calls": calls if call is not None else None}
    choice = {"index": 0, "delta": delta, "finish_reason": "stop"}
    return {"id": "s", "object": "chat.completion.chunk", "choices": [choice], **more}


def body(tmp_path: Path, *lines: str, jobs: int = 1) -> dict[str, Any]:
    log = tmp_path / "log"
    log.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    plan = ScanPlan(
        files=(str(log),),
        per_record=True,
        group_by=("time", "host"),
        output=tmp_path / "v.csv",
        jobs=jobs,
    )
    return run_scan(plan).body


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: json.dumps(odd)[:12])
def test_a_value_of_any_type_costs_no_other_line(odd: Any, tmp_path: Path) -> None:
    entry = {"request": {"messages": []}, "id": "g"}
    lines = [
        {**REPLY, "id": odd, "created": odd, "host": odd},
        piece(id=odd),
        piece(created=odd, model=odd),
        piece({"index": odd}),
        piece({}, id="two"),
        piece({"id": odd}, id="two"),
        {**entry, "response": [piece({"id": odd}, id=odd), piece({"id": odd}, id=odd)]},
        {**entry, "response": f"data: {json.dumps(piece(id=odd))}\n\ndata: [DONE]\n"},
        {**entry, "response": {"choices": odd}},
        {**entry, "response": {"choices": [{"message": odd, "index": odd}]}},
        {"type": "message", "content": [{"type": "text", "text": odd}, odd], "stop_reason": odd},
        {"response": None, "failure": {"kind": odd}, "id": "f"},
        {"text": odd, "meta_info": {"finish_reason": {"type": odd}, "id": odd}},
    ]
    streamed = "data: " + json.dumps(piece(id=odd))
    told = body(tmp_path, *map(json.dumps, lines), streamed, json.dumps({**REPLY, "id": "last"}))
    assert "last" in [record["id"] for record in told["records"]]
    assert told["totals"]["failures"] == 1
    assert not any("bug" in item["problem"] for item in told["unreadable"])


@pytest.mark.parametrize("seconds", [10**309, 10**310, -(10**400), 10**400])
def test_a_time_of_any_size_is_judged_and_tells_no_moment(seconds: int, tmp_path: Path) -> None:
    told = body(tmp_path, json.dumps({**REPLY, "created": seconds}))
    assert told["totals"]["records"] == 1
    assert not told["over_time"]["buckets"]


def test_a_time_that_is_none_leaves_the_next_one_to_tell(tmp_path: Path) -> None:
    told = body(tmp_path, json.dumps({**REPLY, "time": {"at": 1}, "created": 1_790_000_000}))
    assert [bucket.start for bucket in told["over_time"]["buckets"]] == ["2026-09-21T14:13:00Z"]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    "line",
    [
        '{"response": {"content": "x"}, "time": %s, "id": "deep"}',
        '{"response": {"content": "x"}, "id": %s}',
        '{"type": "message", "content": [{"type": "tool_use", "name": "f", "input": %s}]}',
        '{"response": {"error": {"message": %s}}}',
        '{"response": {"content": "x", "tool_calls": [{"function": {"arguments": %s}}]}}',
    ],
)
def test_deep_nesting_costs_no_other_line(line: str, jobs: int, tmp_path: Path) -> None:
    good = json.dumps({**REPLY, "id": "last"})
    told = body(tmp_path, line % DEEP, good, jobs=jobs)
    assert told["records"][-1]["id"] == "last"
    assert len(told["records"]) + told["totals"]["failures"] + len(told["unreadable"]) == 2


def test_a_server_line_with_a_list_for_a_key_costs_no_other_line(tmp_path: Path) -> None:
    bad = "[2031-05-04 10:00:01] Finish: obj=GenerateReqInput(rid='r'), out={[]: 1, 'meta_info': 2}"
    assert body(tmp_path, bad, json.dumps(REPLY))["totals"]["records"] == 1


def test_a_record_that_a_detector_fails_on_is_named_and_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = scan_records.judge_all

    def failing(exchanges: list[Any]) -> Any:
        if any(exchange.response.content == "poison" for exchange in exchanges):
            raise ValueError("no such thing")
        return whole(exchanges)

    monkeypatch.setattr(scan_records, "judge_all", failing)
    poison = {"response": {"content": "poison", "finish_reason": "stop"}}
    told = body(tmp_path, *(json.dumps(value) for value in (REPLY, poison, REPLY)))
    assert told["totals"]["records"] == 2
    (named,) = told["unreadable"]
    assert named["where"].endswith(":2")
    assert "ValueError: no such thing" in named["problem"]


def finished(text: str, asked: str = "rid='r'") -> str:
    return (
        f"[2031-05-04 10:00:01] Finish: obj=GenerateReqInput({asked}), "
        f"out={{'text': {text!r}, 'meta_info': {{'finish_reason': {{'type': 'stop'}}}}}}"
    )


def test_a_server_line_with_a_reply_too_long_is_counted(tmp_path: Path) -> None:
    told = body(tmp_path, finished("word " * 900_000), finished("Fine."), "loose text")
    assert told["totals"]["records"] == 1
    (named,) = told["unreadable"]
    assert named["where"].endswith(":1")
    assert "too long" in named["problem"]


def test_a_long_prompt_that_quotes_a_reply_hides_none(tmp_path: Path) -> None:
    asked = f"rid='r', text='out={{1}} {'word ' * 900_000}'"
    told = body(tmp_path, finished("Fine.", asked), finished("Cut.")[:-40])
    assert told["totals"]["records"] == 1
    assert not told["unreadable"]


@pytest.mark.parametrize(
    "events",
    [
        ["message_start", "content_block_delta", "content_block_delta", "message_stop"],
        ["response.created", "response.output_text.delta", "response.completed"],
    ],
)
def test_a_stream_of_another_form_is_counted_once(events: list[str], tmp_path: Path) -> None:
    lines = [
        line
        for event in events
        for line in (f"event: {event}", "data: " + json.dumps({"type": event}), "")
    ]
    told = body(tmp_path, json.dumps(REPLY), *lines, *lines)
    assert told["totals"]["records"] == 1
    assert [item["where"].rsplit(":", 1)[1] for item in told["unreadable"]] == [
        "2",
        str(2 + len(lines)),
    ]


def test_a_stream_of_this_form_with_events_is_read(tmp_path: Path) -> None:
    told = body(tmp_path, "event: message", "data: " + json.dumps(piece()), "", "data: [DONE]")
    assert told["totals"]["records"] == 1
    assert not told["unreadable"]
