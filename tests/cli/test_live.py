"""The display on stderr: live on a terminal, rare plain lines elsewhere, never on stdout."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys

import pytest
from rich.console import Console

from dsv4doctor.cli.live import PLAIN_INTERVAL_S, PlainLines, panel_of, state_line
from dsv4doctor.progress import ReproState

STATE = ReproState(
    phase="repro",
    sessions=60,
    sessions_done=12,
    requests=360,
    requests_done=190,
    in_flight=48,
    responses=170,
    corrupted_responses=28,
    failures=2,
    aborted_by_us=18,
    by_label=(("clean", 142), ("dsml_leak", 20), ("canary_mismatch", 8)),
    tokens_per_s=1234.5,
    elapsed_s=20.0,
    left_s=75.0,
    quiet_s=4.2,
)

PROGRAM = """
import sys
from dataclasses import replace
from dsv4doctor.cli.live import progress_display
from dsv4doctor.progress import ReproState
state = ReproState(phase="repro", sessions=2, requests=12, requests_done=3)
with progress_display(enabled=sys.argv[1] == "on") as progress:
    progress.note("starting \\x1b[31mthe lab")
    for done in range(12):
        progress.update(replace(state, requests_done=done))
"""


def test_one_line_says_it_all() -> None:
    assert state_line(STATE) == (
        "repro: 190/360 requests, 12/60 sessions, 48 in flight, 1,234 tok/s, 2 failed, "
        "18 aborted by us, 28 of 170 corrupted (dsml_leak 20, canary_mismatch 8), 1:15 left"
    )


def test_nothing_known_yet_says_little() -> None:
    state = ReproState(phase="repro", sessions=60, requests=360, elapsed_s=3700)
    assert state_line(state) == (
        "repro: 0/360 requests, 0/60 sessions, 0 in flight, 1:01:40 so far"
    )


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_panel_fits_its_terminal(width: int) -> None:
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=True, no_color=True).print(panel_of(STATE))
    lines = file.getvalue().splitlines()
    assert len(lines) <= 9
    assert "190/360" in file.getvalue()
    assert "no token from any session for 4 s" in " ".join(" ".join(lines).split())


def test_plain_lines_are_rare() -> None:
    told: list[str] = []
    now = [0.0]
    lines = PlainLines(clock=lambda: now[0], write=told.append)
    for tick in range(201):
        now[0] = tick * 0.1
        lines.update(STATE)
    assert len(told) == 1 + 20 / PLAIN_INTERVAL_S
    lines.update(object())
    assert len(told) == 1 + 20 / PLAIN_INTERVAL_S


@pytest.mark.parametrize(("switch", "lines"), [("on", 2), ("off", 1)])
def test_without_a_terminal_plain_lines_go_to_stderr(switch: str, lines: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, switch], capture_output=True, timeout=60, check=True
    )
    assert done.stdout == b""
    told = done.stderr.decode().splitlines()
    assert len(told) == lines
    assert told[0] == "dsv4doctor: starting \\x1b[31mthe lab"


def test_a_closed_stderr_is_nobodys_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "on"],
        stderr=write,
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert done.stdout == b""


def test_on_a_terminal_a_panel_comes_and_goes() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "on"],
        stderr=theirs,
        stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    ) as program:
        os.close(theirs)
        seen = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the other end was closed
                break
            if not chunk:
                break
            seen += chunk
        assert program.wait(timeout=60) == 0
        assert program.stdout is not None
        assert program.stdout.read() == b""
    os.close(ours)
    assert b"/12" in seen
    assert b"dsv4doctor: starting \\x1b[31mthe lab" in seen
    # The cursor is shown again, whatever happened.
    assert seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l")
