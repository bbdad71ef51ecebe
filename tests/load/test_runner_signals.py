"""Ctrl-C and kill: the run ends in order, and no worker outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest


def start(url: str, processes: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("driven_run.py")), url, str(processes)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a process group of its own, as a terminal gives it
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_ends_in_order(canned: str, processes: int) -> None:
    with start(f"{canned}/slow", processes) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "turn\n"
        os.killpg(run.pid, signal.SIGINT)
        output, errors = run.communicate(timeout=20)
    assert run.returncode == 0
    assert output.splitlines()[-2:] == ["interrupted", "stopped"]
    assert errors == ""


def test_workers_end_with_a_killed_parent(canned: str) -> None:
    with start(f"{canned}/slow", 2) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "turn\n"
        workers = psutil.Process(run.pid).children(recursive=True)
        assert len(workers) >= 2
        run.kill()
        run.communicate(timeout=20)
    deadline = time.monotonic() + 10
    while any(worker.is_running() for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.02)
