"""Runs of `dsv4doctor ab` in processes of their own, and what they leave behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli_runs import COMMAND, UNPACED, Done, doctor

# A pool so small and a slack so short that a dozen sessions lose the race; no pacing.
SMALL_RACE = (
    "--sessions", "12", "--warmup", "0",
    "--lab-option", "device-pages=120", "--lab-option", "slack-ms=0.1",
    *UNPACED,
)  # fmt: skip
ON_OFF = ("--arm", "on:hicache=on", "--arm", "off:hicache=off")


def ab(output_dir: Path, *arguments: str | Path) -> Done:
    """`dsv4doctor ab --json` into `output_dir`."""
    return doctor("ab", "--json", "--no-progress", "--output-dir", output_dir, *arguments)


def start_ab(output_dir: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    """The same, left running."""
    return subprocess.Popen(
        [*COMMAND, "ab", "--json", "--no-progress", "--output-dir", output_dir, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def only_run(output_dir: Path) -> Path:
    """The one run directory there, once it has a manifest."""
    found: list[Path] = []

    def is_there() -> bool:
        found[:] = [path.parent for path in output_dir.glob("*/run.json")]
        return bool(found)

    wait_for(is_there)
    return found[0]


def wait_for_records(run_dir: Path, block: int, process: subprocess.Popen[str]) -> None:
    """Until a response of `block` (0-based) is on disk."""

    def is_there() -> bool:
        assert process.poll() is None, process.communicate()
        path = run_dir / "records.jsonl"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return any(b'"block":%d,' % block in line for line in lines)

    wait_for(is_there, 120)


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Until `condition` holds, looked at often."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.1)


def blocks(run_dir: Path) -> list[dict[str, Any]]:
    """The finished blocks."""
    lines = (run_dir / "blocks.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def end_left_over(run_dir: Path) -> None:
    """Ends the lab and the deadman that a killed run left under its folder."""
    for name in ("server/pid", "deadman.pid"):
        note = run_dir / "host" / name
        words = note.read_text().split() if note.exists() else []
        # A number may belong to another process by now: the start time tells.
        if len(words) == 2 and _start_of(words[0]) == words[1]:
            os.kill(int(words[0]), signal.SIGKILL)


def _start_of(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
