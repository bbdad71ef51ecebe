"""`dsv4doctor scan` as a process: every form of log, every bad input, codes, streams and files."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import csv
import fcntl
import gzip
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest
import zstandard

SCORING = ("id", "label", "also", "note", "difficulty", "source", "engine")
LEAK = '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n</｜DSML｜invoke>'
GOOD_BLOCK = (
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n'
    '<｜DSML｜parameter name="x" string="true">1</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
)


def _scan(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "scan", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=120,
        check=False,
    )


def _json(*arguments: str | Path, stdin: bytes = b"", code: int | None = None) -> dict[str, Any]:
    done = _scan(*arguments, "--json", stdin=stdin)
    assert done.returncode in ((0, 1) if code is None else (code,)), done.stderr.decode()
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode
    return document


def _record(content: Any, **more: Any) -> dict[str, Any]:
    reply = {"content": content, "reasoning_content": None, "tool_calls": None}
    return {"response": {**reply, "finish_reason": "stop"}, **more}


def _lines(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(v) + "\n" for v in values), encoding="utf-8")
    return path


def _chat(content: str, finish: str | None = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "choices": [choice], **more}


def _sse(*deltas: dict[str, Any], finish: str = "stop", done: bool = True) -> str:
    frames = [
        {"id": "s1", "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas
    ]
    frames.append({"id": "s1", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    text = "".join(f"data: {json.dumps(f)}\n\n" for f in frames)
    return text + ("data: [DONE]\n\n" if done else "")


def test_public_cases(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "corpus" / "cases.jsonl"
    cases = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    stripped = [{k: v for k, v in case.items() if k not in SCORING} for case in cases]
    log = _lines(tmp_path / "cases.jsonl", *stripped)
    document = _json(log, "--per-record", code=1)
    records = document["scan"]["records"]
    assert document["verdict"] == "corrupted"
    assert len(records) == len(cases) == document["scan"]["totals"]["records"]
    right = sum(r["primary"] == c["label"] for r, c in zip(records, cases, strict=True))
    assert right >= 0.95 * len(cases)
    assert _json(log, "--per-record", "--jobs", "2", code=1)["scan"]["records"] == records


def test_envelope_and_findings(tmp_path: Path) -> None:
    log = _lines(tmp_path / "a.jsonl", _record("Fine.", id="a"), _record(LEAK, id="b"))
    document = _json(log, "--per-record", code=1)
    assert document["schema_version"] == 1
    assert document["command"] == "scan"
    (finding,) = document["findings"]
    assert finding["rule"] == "DSML_LEAK"
    assert finding["severity"] == "error"
    assert finding["evidence"][0]["where"].endswith("a.jsonl:2 (b)")
    assert document["scan"]["totals"]["by_label"] == {"clean": 1, "dsml_leak": 1}
    assert [r["id"] for r in document["scan"]["records"]] == ["a", "b"]
    assert document["scan"]["records"][1]["evidence"]


def test_clean_is_code_0(tmp_path: Path) -> None:
    document = _json(_lines(tmp_path / "a.jsonl", _record("Fine.")), code=0)
    assert document["verdict"] == "clean"
    assert document["findings"] == []


def test_a_label_that_is_no_corruption_is_code_0_unless_asked(tmp_path: Path) -> None:
    cut = _record("Okay, so")
    cut["response"]["finish_reason"] = "length"
    log = _lines(tmp_path / "a.jsonl", cut)
    assert _json(log, code=0)["findings"][0]["severity"] == "info"
    assert _scan(log, "--fail-on", "info").returncode == 1


FORMS: dict[str, tuple[str, list[str]]] = {
    "chat completion": (json.dumps(_chat(LEAK)), ["dsml_leak"]),
    "several choices": (
        json.dumps({"choices": [_chat("Fine.")["choices"][0], _chat("")["choices"][0]]}),
        ["clean", "empty"],
    ),
    "batch output": (
        json.dumps({"id": "b1", "custom_id": "x", "response": {"status_code": 200, "body": _chat(LEAK)}}),
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
                "response": _chat("It is sunny."),
            }
        ),
        ["missing_tool_call"],
    ),
    "gateway entry, bodies as strings": (
        json.dumps({"request_body": json.dumps({"messages": []}), "response_body": json.dumps(_chat(LEAK))}),
        ["dsml_leak"],
    ),
    "gateway entry, streamed body": (
        json.dumps({"request": {"messages": []}, "response": {"body": _sse({"content": "Fine."})}})
        .replace('{"body": "', '"').replace('"}}', '"}'),
        ["clean"],
    ),
    "litellm entry": (
        json.dumps({"messages": [{"role": "user", "content": "hi"}], "model": "m", "response": _chat(LEAK)}),
        ["dsml_leak"],
    ),
    "anthropic message": (
        json.dumps({"type": "message", "content": [{"type": "text", "text": LEAK}], "stop_reason": "end_turn"}),
        ["dsml_leak"],
    ),
    "event stream": (_sse({"role": "assistant"}, {"content": "<｜DS"}, {"content": "ML｜tool_calls>"}), ["dsml_leak"]),
    "event stream with headers": (
        "HTTP/1.1 200 OK\ncontent-type: text/event-stream\n\n" + _sse({"content": "Fine."}), ["clean"],
    ),
    "event stream cut off": (
        _sse({"content": "It copies the"}, done=False).rsplit("data:", 1)[0], ["truncated"],
    ),
    "two event streams": (_sse({"content": "Fine."}) + _sse({"content": ""}), ["clean", "empty"]),
    "chunks as lines": (
        "\n".join(
            json.dumps({"id": "k", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": f}]})
            for d, f in (({"content": "Fine"}, None), ({"content": "."}, None), ({}, "stop"))
        ),
        ["clean"],
    ),
    "streamed call": (
        _sse(
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
            {**_record("x"), "id": "s0-t0", "aborted": True}
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
    raw = (json.dumps(_record(LEAK)) + "\n").encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.compress(raw) + zstandard.compress(raw))
    (tmp_path / "c.jsonl").write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"))
    assert _json(tmp_path / "*.jsonl*")["scan"]["totals"]["records"] == 4
    assert _json("-", stdin=gzip.compress(raw * 3))["scan"]["totals"]["records"] == 3


def test_bad_lines_are_counted_and_named_and_the_rest_is_judged(tmp_path: Path) -> None:
    log = tmp_path / "a.jsonl"
    good = json.dumps(_record("Fine.")).encode()
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
    body = _json(log)["scan"]
    assert body["totals"]["records"] == 2
    assert body["totals"]["unreadable_lines"] == 6
    assert [item["where"].rsplit(":", 1)[1] for item in body["unreadable"]] == list("234567")
    assert "longer than 16 MiB" in body["unreadable"][-1]["problem"]


def test_bad_sources_are_named_and_the_rest_is_judged(tmp_path: Path) -> None:
    good = _lines(tmp_path / "good.jsonl", _record("Fine."))
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(256)) * 10)
    torn = tmp_path / "torn.gz"
    torn.write_bytes(gzip.compress(json.dumps(_record("x")).encode() * 5000)[:200])
    (tmp_path / "empty").touch()
    done = _scan(good, tmp_path, tmp_path / "gone", binary, torn, tmp_path / "empty", "--json")
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


@pytest.mark.parametrize(
    "arguments",
    [
        ["gone.jsonl"],
        ["."],
        ["*.nothing"],
        ["a.jsonl", "--output", "x.xls"],
        ["a.jsonl", "--jobs", "0"],
    ],
)
def test_usage_is_code_2_with_a_next_step(arguments: list[str], tmp_path: Path) -> None:
    _lines(tmp_path / "a.jsonl", _record("Fine."))
    done = _scan(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr
    assert b"try:" in done.stderr


def test_groups_onset_and_table(tmp_path: Path) -> None:
    values = [
        _record(
            LEAK if n > 60 and n % 2 else "Fine.",
            id=f"r{n}",
            host=f"h{n % 2}",
            created=1_790_000_000 + 60 * n,
        )
        for n in range(120)
    ]
    log, table = _lines(tmp_path / "a.jsonl", *values), tmp_path / "out" / "v.csv"
    body = _json(log, "--group-by", "host", "--output", table)["scan"]
    assert [(g["host"], g["records"], g["corrupted"]) for g in body["groups"]] == [
        ("h1", 60, 30),
        ("h0", 60, 0),
    ]
    assert body["onset"]["first_corrupted"] == "2026-09-21T15:14:20Z"
    assert body["onset"]["change"]["corrupted_before"] == 0
    assert body["onset"]["change"]["corrupted_after"] == 30
    with table.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == [f"r{n}" for n in range(120)]
    assert sum(row["corrupted"] == "True" for row in rows) == 30
    assert rows[61]["group_host"] == "h1"


def test_hostile_text_is_shown_harmlessly(tmp_path: Path) -> None:
    log = _lines(
        tmp_path / "a.jsonl",
        _record("\x1b[31m[bold]<script>\ud83d\x07 " + LEAK, id="\x1b]0;x\x07[red]"),
    )
    done = _scan(log, "--per-record")
    assert done.returncode == 1
    assert b"\x1b" not in done.stdout
    assert b"\x07" not in done.stdout
    assert _json(log)["scan"]["totals"]["corrupted"] == 1


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    log = _lines(tmp_path / "a.jsonl", *[_record(LEAK)] * 3000)
    done = subprocess.run(
        f"{sys.executable} -m dsv4doctor scan {log} --per-record | head -1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines()[-1] in (b"0", b"1")
    assert b"Traceback" not in done.stderr


def test_lines_fit_a_terminal_and_stay_whole_in_a_file(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(60))
    log = _lines(tmp_path / "a.jsonl", _record(f"{words} {LEAK}"), _record("宽" * 90 + LEAK))
    whole = _scan(log, "--per-record").stdout.decode()
    assert max(map(len, whole.splitlines())) > 80
    for columns in (50, 80):
        told = subprocess.run(
            [sys.executable, "-m", "dsv4doctor", "scan", str(log), "--per-record"],
            capture_output=True,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": str(columns)},
            timeout=120,
            check=False,
        ).stdout.decode()
        widths = [sum(1 + (ord(c) >= 0x1100) for c in line) for line in told.splitlines()]
        assert max(widths) <= columns
        assert "".join(told.split()) == "".join(whole.split())


def test_standard_input_is_announced_where_nobody_named_it(tmp_path: Path) -> None:
    line = json.dumps(_record("Fine.")).encode()
    unnamed = _scan(stdin=line)
    assert (unnamed.returncode, b"no log named: reading standard input" in unnamed.stderr) == (
        0,
        True,
    )
    assert b"standard input" not in _scan("-", stdin=line).stderr


def test_an_output_that_cannot_be_written_is_code_3(tmp_path: Path) -> None:
    log = _lines(tmp_path / "a.jsonl", _record("Fine."))
    (tmp_path / "file").write_text("")
    done = _scan(log, "--output", tmp_path / "file" / "x.csv")
    assert done.returncode == 3
    assert b"cannot write" in done.stderr
    assert b"try: " in done.stderr


def _wait_until_read(process: subprocess.Popen[bytes]) -> None:
    """Until the process has taken all that its pipe holds, and sleeps."""
    assert process.stdin is not None
    deadline = time.monotonic() + 120
    asleep = 0
    while time.monotonic() < deadline and asleep < 3:
        left = fcntl.ioctl(process.stdin, termios.FIONREAD, b"\0\0\0\0")
        state = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        asleep = asleep + 1 if left == b"\0\0\0\0" and state == "S" else 0
        time.sleep(0.1)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupted_scan_tells_what_it_had_read(jobs: str, tmp_path: Path) -> None:
    lines = "".join(json.dumps(_record(text)) + "\n" for text in (LEAK, "Fine.", LEAK))
    with subprocess.Popen(
        [sys.executable, "-m", "dsv4doctor", "scan", "-", "--json", "--jobs", jobs],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches a whole process group, workers too
    ) as process:
        assert process.stdin is not None
        # With workers, lines wait for a batch: the first 2,000 are one.
        process.stdin.write(lines.encode() * (1 if jobs == "1" else 1000))
        process.stdin.flush()
        _wait_until_read(process)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout is not None
        assert process.stderr is not None
        document, said = json.loads(process.stdout.read()), process.stderr.read()
    assert process.returncode == 130
    assert b"Traceback" not in said
    assert b"what had been read is counted" in said
    totals = document["scan"]["totals"]
    if jobs == "1":
        assert (document["verdict"], document["exit_code"]) == ("corrupted", 130)
        assert (totals["records"], totals["corrupted"]) == (3, 2)
