"""`dsv4doctor scan` as a process: verdicts, codes, streams and what a person sees."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from scan_runs import LEAK, record, scan, scan_json, write_lines

SCORING = ("id", "label", "also", "note", "difficulty", "source", "engine")


def test_public_cases(shared_data: Path, tmp_path: Path) -> None:
    source = shared_data / "corpus" / "cases.jsonl"
    cases = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    stripped = [{k: v for k, v in case.items() if k not in SCORING} for case in cases]
    log = write_lines(tmp_path / "cases.jsonl", *stripped)
    document = scan_json(log, "--per-record", code=1)
    records = document["scan"]["records"]
    assert document["verdict"] == "corrupted"
    assert len(records) == len(cases) == document["scan"]["totals"]["records"]
    right = sum(r["primary"] == c["label"] for r, c in zip(records, cases, strict=True))
    assert right >= 0.95 * len(cases)
    assert scan_json(log, "--per-record", "--jobs", "2", code=1)["scan"]["records"] == records


def test_envelope_and_findings(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "a.jsonl", record("Fine.", id="a"), record(LEAK, id="b"))
    document = scan_json(log, "--per-record", code=1)
    assert document["schema_version"] == 1
    assert document["command"] == "scan"
    (finding,) = document["findings"]
    assert finding["rule"] == "DSML_LEAK"
    assert finding["severity"] == "error"
    assert finding["evidence"][0]["where"].endswith("a.jsonl:2 (b)")
    assert document["scan"]["totals"]["by_label"] == {"clean": 1, "dsml_leak": 1}
    assert [r["id"] for r in document["scan"]["records"]] == ["a", "b"]
    assert document["scan"]["records"][1]["evidence"]


def test_an_empty_log_says_nothing_about_any_response(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    done = scan(tmp_path / "empty.jsonl")
    assert done.returncode == 0
    assert b"no response was read" in done.stderr


def test_clean_is_code_0(tmp_path: Path) -> None:
    document = scan_json(write_lines(tmp_path / "a.jsonl", record("Fine.")), code=0)
    assert document["verdict"] == "clean"
    assert document["findings"] == []


def test_a_label_that_is_no_corruption_is_code_0_unless_asked(tmp_path: Path) -> None:
    cut = record("Okay, so")
    cut["response"]["finish_reason"] = "length"
    log = write_lines(tmp_path / "a.jsonl", cut)
    assert scan_json(log, code=0)["findings"][0]["severity"] == "info"
    assert scan(log, "--fail-on", "info").returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["gone.jsonl"],
        ["."],
        [""],
        ["*.nothing"],
        ["a.jsonl", "--output", "x.xls"],
        ["a.jsonl", "--jobs", "0"],
    ],
)
def test_usage_is_code_2_with_a_next_step(arguments: list[str], tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", record("Fine."))
    done = scan(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr
    assert b"try:" in done.stderr


def test_groups_onset_and_table(tmp_path: Path) -> None:
    values = [
        record(
            LEAK if n > 60 and n % 2 else "Fine.",
            id=f"r{n}",
            host=f"h{n % 2}",
            created=1_790_000_000 + 60 * n,
        )
        for n in range(120)
    ]
    log, table = write_lines(tmp_path / "a.jsonl", *values), tmp_path / "out" / "v.csv"
    body = scan_json(log, "--group-by", "host", "--output", table)["scan"]
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
    log = write_lines(
        tmp_path / "a.jsonl",
        record("\x1b[31m[bold]<script>\ud83d\x07 " + LEAK, id="\x1b]0;x\x07[red]"),
    )
    done = scan(log, "--per-record")
    assert done.returncode == 1
    assert b"\x1b" not in done.stdout
    assert b"\x07" not in done.stdout
    assert scan_json(log)["scan"]["totals"]["corrupted"] == 1


def test_a_closed_pipe_hides_no_finding(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "a.jsonl", *[record(LEAK)] * 3000)
    done = subprocess.run(
        f"{sys.executable} -m dsv4doctor scan {log} --per-record | head -1; "
        "echo ${PIPESTATUS[0]}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == b"1"
    assert b"Traceback" not in done.stderr


def test_lines_fit_a_terminal_and_stay_whole_in_a_file(tmp_path: Path) -> None:
    words = " ".join(f"word{n}" for n in range(60))
    log = write_lines(tmp_path / "a.jsonl", record(f"{words} {LEAK}"), record("宽" * 90 + LEAK))
    whole = scan(log, "--per-record").stdout.decode()
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
    line = json.dumps(record("Fine.")).encode()
    unnamed = scan(stdin=line)
    assert (unnamed.returncode, b"no log named: reading standard input" in unnamed.stderr) == (
        0,
        True,
    )
    assert b"standard input" not in scan("-", stdin=line).stderr


def test_standard_input_named_twice_is_read_once() -> None:
    line = json.dumps(record("Fine.")).encode()
    assert scan_json("-", "-", stdin=line, code=0)["scan"]["totals"]["records"] == 1


def test_an_output_that_cannot_be_written_is_code_3(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "a.jsonl", record("Fine."))
    (tmp_path / "file").write_text("")
    done = scan(log, "--output", tmp_path / "file" / "x.csv")
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
    lines = "".join(json.dumps(record(text)) + "\n" for text in (LEAK, "Fine.", LEAK))
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
