"""Several processes give the verdicts of one, wherever in a log streams and log lines begin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsv4doctor.artifacts.logfiles import Line
from dsv4doctor.flows import scan
from dsv4doctor.flows.scan import ScanPlan, run_scan
from dsv4doctor.flows.scan_records import hangs_together

REPLY = json.dumps({"response": {"content": "The worker waits.", "finish_reason": "stop"}})
FINISH = (
    "[2031-05-04 10:00:01] Finish: obj=GenerateReqInput(rid='r'), "
    "out={'text': 'Fine.', 'meta_info': {'finish_reason': {'type': 'stop'}}}"
)


def pieces(name: str, before: str = "") -> list[str]:
    deltas = (("The worker ", None), ("waits for ", None), ("its turn.", "stop"))
    chunks = [
        {
            "id": name,
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}],
        }
        for text, finish in deltas
    ]
    return [before + json.dumps(chunk) for chunk in chunks]


def stream(name: str) -> list[str]:
    return [*(line for piece in pieces(name, "data: ") for line in (piece, "")), "data: [DONE]", ""]


LOGS: dict[str, list[str]] = {
    "records alone": [REPLY] * 50,
    "streams after a record": [REPLY, *(line for n in range(9) for line in stream(f"s{n}"))],
    "chunks as lines after records": [REPLY] * 4 + [p for n in range(9) for p in pieces(f"s{n}")],
    "records between chunks": [
        line for n in range(9) for piece in pieces(f"s{n}") for line in (piece, REPLY)
    ],
    "a server's log after records": [REPLY] * 7 + [FINISH, "loose text"] * 9,
    "loose text before and after a log line": [REPLY, "loose", "loose", "loose", FINISH, "loose"],
    "an array, then a log line in brackets": [f"[{REPLY}]"] * 8 + ["[2031-05-04 10:00:01] up", "x"],
    "torn lines": ['{"response": ', REPLY, "[1, ", REPLY, "garbage", REPLY] * 4,
    "empty": [],
}


@pytest.mark.parametrize("lines", LOGS.values(), ids=LOGS)
def test_two_processes_say_what_one_says(
    lines: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "_HAND_OVER_LINES", 3)
    log = tmp_path / "log"
    log.write_text("".join(line + "\n" for line in lines), encoding="utf-8")

    def told(jobs: int) -> dict[str, Any]:
        return run_scan(ScanPlan(files=(str(log),), per_record=True, jobs=jobs)).body

    one = told(1)
    assert told(2) == one
    assert set(one["totals"]["by_label"]) <= {"clean"}


@pytest.mark.parametrize(
    ("raw", "hangs"),
    [
        (REPLY, False),
        (f"  {REPLY}", False),
        (f"[{REPLY}]", False),
        ("", False),
        ("garbage", False),
        ("HTTP/1.1 200 OK", False),
        (json.dumps({"response": {"content": 'say "delta"', "finish_reason": "stop"}}), False),
        (json.dumps({"response": [json.loads(piece) for piece in pieces("a")]}), False),
        (pieces("a")[0], True),
        (f" {pieces('a')[0]}", True),
        (pieces("a", "data: ")[0], True),
        ("event: message", True),
        (FINISH, True),
        ("INFO 11-29 10:00:01 up", True),
        ("[2031-05-04 10:00:01] up", True),
    ],
)
def test_which_lines_hang_together(raw: str, hangs: bool) -> None:
    assert hangs_together(Line(number=1, raw=raw.encode())) is hangs
