"""`dsv4doctor scan` over every form of log, every packing, and everything that is none."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from scan_runs import GOOD_BLOCK, LEAK, chat, record, scan, scan_json, sse, write_lines


def anthropic_entry(text: str, stop: str | None = "end_turn") -> dict[str, Any]:
    asked = {
        "model": "m",
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "What is two and two?"}],
    }
    reply = {
        "id": "a",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": stop,
        "usage": {},
    }
    return {"request": asked, "response": {**reply, "content": [{"type": "text", "text": text}]}}


FORMS: dict[str, tuple[str, list[str]]] = {
    "chat completion": (json.dumps(chat(LEAK)), ["dsml_leak"]),
    "several choices": (
        json.dumps({"choices": [chat("Fine.")["choices"][0], chat("")["choices"][0]]}),
        ["clean", "empty"],
    ),
    "batch output": (
        json.dumps({"id": "b1", "custom_id": "x", "response": {"status_code": 200, "body": chat(LEAK)}}),
        ["dsml_leak"],
    ),
    "batch error": (
        json.dumps({"id": "b1", "custom_id": "x", "response": {"status_code": 500, "body": {"error": {"message": "no"}}}}),
        ["http_error"],
    ),
    "gateway entry": (
        json.dumps(
            {
                "timestamp": "2026-11-29T10:00:00Z",
                "request": {
                    "messages": [{"role": "user", "content": "weather"}],
                    "tools": [{"type": "function", "function": {"name": "f"}}],
                    "tool_choice": "required",
                },
                "response": chat("It is sunny."),
            }
        ),
        ["missing_tool_call"],
    ),
    "gateway entry, bodies as strings": (
        json.dumps({"request_body": json.dumps({"messages": []}), "response_body": json.dumps(chat(LEAK))}),
        ["dsml_leak"],
    ),
    "gateway entry, streamed body": (
        json.dumps({"request": {"messages": []}, "response": {"body": sse({"content": "Fine."})}})
        .replace('{"body": "', '"').replace('"}}', '"}'),
        ["clean"],
    ),
    "litellm entry": (
        json.dumps({"messages": [{"role": "user", "content": "hi"}], "model": "m", "response": chat(LEAK)}),
        ["dsml_leak"],
    ),
    "anthropic message": (
        json.dumps({"type": "message", "content": [{"type": "text", "text": LEAK}], "stop_reason": "end_turn"}),
        ["dsml_leak"],
    ),
    "anthropic message in a gateway entry": (
        json.dumps(anthropic_entry("The answer is four.")) + "\n" + json.dumps(anthropic_entry(LEAK)),
        ["clean", "dsml_leak"],
    ),
    "anthropic message beside its messages": (
        json.dumps({**anthropic_entry("Four.")["request"], "response": anthropic_entry("Four.")["response"]})
        + "\n" + json.dumps({**anthropic_entry("")["request"], "response": anthropic_entry(LEAK)["response"]}),
        ["clean", "dsml_leak"],
    ),
    "anthropic message in a string": (
        json.dumps({**anthropic_entry(""), "response": json.dumps(anthropic_entry("Four.")["response"])}), ["clean"],
    ),
    "anthropic message, cut": (
        json.dumps(anthropic_entry("The answer is", stop=None)), ["truncated"],
    ),
    "own record with parts for its content": (
        json.dumps({"response": {"content": [{"type": "text", "text": "Fine."}], "finish_reason": "stop"}}), ["clean"],
    ),
    "capture with its body in the content": (
        json.dumps({"request": {"messages": []}, "response": {"status": 200, "content": {"text": json.dumps(chat(LEAK))}}}),
        ["dsml_leak"],
    ),
    "event stream": (sse({"role": "assistant"}, {"content": "<｜DS"}, {"content": "ML｜tool_calls>"}), ["dsml_leak"]),
    "event stream with headers": (
        "HTTP/1.1 200 OK\ncontent-type: text/event-stream\n\n" + sse({"content": "Fine."}), ["clean"],
    ),
    "event stream cut off": (
        sse({"content": "It copies the"}, done=False).rsplit("data:", 1)[0], ["truncated"],
    ),
    "two event streams": (sse({"content": "Fine."}) + sse({"content": ""}), ["clean", "empty"]),
    "chunks as lines": (
        "\n".join(
            json.dumps({"id": "k", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": f}]})
            for d, f in (({"content": "Fine"}, None), ({"content": "."}, None), ({}, "stop"))
        ),
        ["clean"],
    ),
    "streamed call": (
        sse(
            {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": '{"x": '}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]},
            finish="tool_calls",
        ),
        ["malformed_arguments"],
    ),
    "native reply": (
        json.dumps({"text": "Hm.</think>Fine.", "meta_info": {"id": "n", "finish_reason": {"type": "stop"}}}),
        ["clean"],
    ),
    "native reply with a sound block": (
        json.dumps({"text": "Let me see.\n\n" + GOOD_BLOCK, "meta_info": {"finish_reason": {"type": "stop"}}}),
        ["clean"],
    ),
    "native reply with a broken block": (
        json.dumps({"text": GOOD_BLOCK[:-20], "meta_info": {"finish_reason": {"type": "stop"}}}),
        ["dsml_leak"],
    ),
    "sglang request log": (
        "[2026-11-29 10:00:00] INFO server up\n"
        f"[2026-11-29 10:00:01] Finish: obj=GenerateReqInput(rid='r1', text='hi'), out={{'text': {'Fine. ' + LEAK!r},"
        " 'meta_info': {'finish_reason': {'type': 'stop', 'matched': 1}}}\n",
        ["dsml_leak"],
    ),
    "vllm request log": (
        "INFO 11-29 10:00:01 [logger.py:40] Received request chatcmpl-1: prompt: 'x'\n"
        f"INFO 11-29 10:00:02 [logger.py:80] Generated response chatcmpl-1: output: {LEAK!r},"
        " output_token_ids: None, finish_reason: stop\n",
        ["dsml_leak"],
    ),
    "gateway, a stream in the body": (
        json.dumps({"request": {"body": "{}"}, "response": {"status": 200, "body":
            'event: message\ndata: {"id": "x", "choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}\n\n'}}),
        ["clean"],
    ),
    "vllm request log, streamed and with calls": (
        "INFO 11-29 10:00:02 [logger.py:80] Generated response chatcmpl-2 (streaming delta): output: 'Fi',"
        " output_token_ids: [1], finish_reason: None\n"
        f"INFO 11-29 10:00:02 [logger.py:80] Generated response chatcmpl-2 (streaming complete): output: {'x</think>Fine.'!r},"
        " output_token_ids: None, finish_reason: streaming_complete\n"
        "INFO 11-29 10:00:03 [logger.py:80] Generated response chatcmpl-3: output: '[tool_calls: f({})]', finish_reason: tool_calls\n",
        ["clean", "clean"],
    ),
    "sglang request log, json": (
        '[2026-11-29 10:00:00] {"timestamp": "2026-11-29T10:00:00", "event": "request.received", "rid": "r1", "obj": {}}\n'
        + "[2026-11-29 10:00:01] "
        + json.dumps({"timestamp": "2026-11-29T10:00:01", "event": "request.finished", "rid": "r1", "obj": {},
                      "out": {"text": LEAK, "meta_info": {"finish_reason": {"type": "stop"}}}}) + "\n"
        + json.dumps({"timestamp": "2026-11-29T10:00:02", "event": "request.finished", "rid": "r2", "obj": {"rid": "r2"},
                      "out": {"meta_info": {"finish_reason": {"type": "stop"}}}}) + "\n",
        ["dsml_leak"],
    ),
    "own run": (
        json.dumps(
            {**record("x"), "id": "s0-t0", "aborted": True}
        ) + "\n" + json.dumps({"id": "s0-t1", "response": None, "failure": {"kind": "stalled", "message": "m"}}),
        ["clean", "stalled"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "labels"), FORMS.values(), ids=FORMS)
def test_forms(text: str, labels: list[str], tmp_path: Path) -> None:
    from dsv4doctor.flows.scan import ScanPlan, run_scan

    log = tmp_path / "log"
    log.write_text(text, encoding="utf-8")
    body = run_scan(ScanPlan(files=(str(log),), per_record=True)).body
    assert [r["primary"] for r in body["records"]] == labels
    assert body["totals"]["unreadable_lines"] == 0


def test_packed_files_globs_and_stdin(tmp_path: Path) -> None:
    raw = (json.dumps(record(LEAK)) + "\n").encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.compress(raw) + zstandard.compress(raw))
    (tmp_path / "c.jsonl").write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"))
    assert scan_json(tmp_path / "*.jsonl*")["scan"]["totals"]["records"] == 4
    assert scan_json("-", stdin=gzip.compress(raw * 3))["scan"]["totals"]["records"] == 3


def test_bad_lines_are_counted_and_named_and_the_rest_is_judged(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    good = json.dumps(record("Fine.")).encode()
    log.write_bytes(
        b"\n".join(
            [
                good,
                good[:-9],
                b'{"response": {"content": "\xff\xfe"}}',
                b"garbage",
                b'{"a": 1}',
                b"[1, 2]",
                b'{"response": {"content": "' + b"x" * 50_000_000 + b'"}}',
                b"",
                good,
            ]
        )
    )
    body = scan_json(log)["scan"]
    assert body["totals"]["records"] == 2
    assert body["totals"]["unreadable_lines"] == 6
    assert [item["where"].rsplit(":", 1)[1] for item in body["unreadable"]] == list("234567")
    assert "longer than 16 MiB" in body["unreadable"][-1]["problem"]


def test_bad_sources_are_named_and_the_rest_is_judged(tmp_path: Path) -> None:
    good = write_lines(tmp_path / "good.jsonl", record("Fine."))
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(256)) * 10)
    torn = tmp_path / "torn.gz"
    torn.write_bytes(gzip.compress(json.dumps(record("x")).encode() * 5000)[:200])
    (tmp_path / "empty").touch()
    done = scan(good, tmp_path, tmp_path / "gone", binary, torn, tmp_path / "empty", "--json")
    assert done.returncode == 0
    body = json.loads(done.stdout)["scan"]
    assert body["totals"]["records"] == 1
    problems = {Path(s["name"]).name: s["problem"] for s in body["sources"]}
    assert problems["gone"] == "is not there"
    assert "directory" in problems[tmp_path.name]
    assert "binary" in problems["binary"]
    assert problems["torn.gz"]
    assert problems["empty"] is None
    assert b"gone: is not there" in done.stderr
