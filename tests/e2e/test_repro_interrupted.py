"""A run that is killed or interrupted loses nothing, repeats nothing, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
from cli_runs import COMMAND, LIMIT_S, doctor, repro

SESSIONS, TURNS = 24, 6
FLAGS = ("--sessions", str(SESSIONS), "--seed", "5", "--no-progress")
EVERY = {(session, turn) for session in range(SESSIONS) for turn in range(TURNS)}


def _start(output_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "repro", "--json", *FLAGS, "--output-dir", str(output_dir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _records(output_dir: Path) -> list[bytes]:
    files = list(output_dir.glob("*/records.jsonl"))
    return files[0].read_bytes().splitlines() if files else []


def _wait_for_records(process: subprocess.Popen[str], output_dir: Path, count: int) -> Path:
    deadline = time.monotonic() + LIMIT_S
    while len(_records(output_dir)) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return next(output_dir.glob("*"))


def _labs_of(pid: int) -> list[psutil.Process]:
    return [
        child for child in psutil.Process(pid).children(recursive=True) if "lab" in child.cmdline()
    ]


def _gone(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=10)
    return not alive


def _pairs(run_dir: Path) -> Counter[tuple[int, int]]:
    lines = (run_dir / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return Counter((record["session"], record["turn"]) for record in map(json.loads, lines))


def test_kill_and_resume_give_the_same_pairs_as_an_unbroken_run(tmp_path: Path) -> None:
    process = _start(tmp_path)
    run_dir = _wait_for_records(process, tmp_path, 40)
    labs = _labs_of(process.pid)
    assert labs
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.communicate()
    assert _gone(labs), "the lab outlived its parent"
    with (run_dir / "records.jsonl").open("ab") as file:
        file.write(b'{"id": "s0023-t05", "ses')  # the torn line of a kill in mid-write

    partial = _pairs_of_whole_lines(run_dir)
    assert 40 <= len(partial) < len(EVERY)
    done = doctor("repro", "--json", "--no-progress", "--resume", run_dir)
    assert done.code in {0, 1}, done.stderr
    pairs = _pairs(run_dir)
    assert pairs == Counter(EVERY)
    assert done.body["segments"] == 2
    assert done.body["torn_lines"] == 1
    assert done.body["responses"] + done.body["aborted_by_us"] == len(EVERY)


def _pairs_of_whole_lines(run_dir: Path) -> set[tuple[int, int]]:
    lines = (run_dir / "records.jsonl").read_bytes().split(b"\n")[:-1]
    return {(record["session"], record["turn"]) for record in map(json.loads, lines)}


def test_ctrl_c_ends_in_a_partial_report_and_the_line_to_resume(tmp_path: Path) -> None:
    process = _start(tmp_path)
    run_dir = _wait_for_records(process, tmp_path, 30)
    labs = _labs_of(process.pid)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, stderr
    assert f"dsv4doctor repro --resume {run_dir}" in stderr
    assert _gone(labs)
    document = json.loads(stdout)
    assert document["exit_code"] == 130
    assert document["repro"]["interrupted"]
    assert document["verdict"] in {"undecided", "corrupted"}
    assert (run_dir / "report.md").read_text(encoding="utf-8").startswith("## dsv4doctor repro")
    finished = doctor("repro", "--json", "--no-progress", "--resume", run_dir)
    assert finished.code in {0, 1}, finished.stderr
    assert _pairs(run_dir) == Counter(EVERY)


def test_a_second_process_may_not_resume_the_same_run(tmp_path: Path) -> None:
    process = _start(tmp_path)
    try:
        run_dir = _wait_for_records(process, tmp_path, 5)
        second = doctor("repro", "--json", "--resume", run_dir)
        assert second.code == 2
        assert "being written by another process" in second.stderr
    finally:
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=LIMIT_S)


def test_a_finished_run_resumes_to_the_same_summary(tmp_path: Path) -> None:
    first = repro(tmp_path, "--sessions", "3", "--seed", "5")
    again = doctor("repro", "--json", "--no-progress", "--resume", first.run_dir)
    assert again.code == first.code
    for key in ("responses", "corrupted_responses", "by_label", "by_turn", "response_rate"):
        assert again.body[key] == first.body[key]
