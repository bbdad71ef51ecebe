"""Replies of the lab under each of its faults, beside the healthy lab's to the same requests.

The same seed and sessions give the same requests, whose histories are the scenario's own and never
what was answered before. So a reply is damaged exactly when the healthy lab says something else;
no detector has a say in that.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEED = 1
SESSIONS = 60
# Scenario and sessions where they are not `tool-calls` with sixty: what the fault needs to show.
_OTHERS = {"early-send": ("best-of-n", 24), "parser-negative-number": ("parser-probe", 12)}
# Faults that damage replies; the others bring the server to a standstill.
FAULTS = (
    "index-race", "foreign-page", "load-fence", "write-fence", "decode-store", "early-send",
    "layout-mismatch", "parser-negative-number",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LabShare:
    """What one fault did: replies judged, damaged ones, those of them told, sound ones alarmed."""

    fault: str
    judged: int
    damaged: int
    told: int
    alarms: int
    missed: tuple[str, ...]
    labels: tuple[tuple[str, int], ...]

    @property
    def recall(self) -> float:
        return self.told / self.damaged if self.damaged else 1.0


def lab_share(fault: str, *, sessions: int | None = None) -> LabShare:
    """One run of `repro` against the lab with the fault, and one without."""
    scenario, usual = _OTHERS.get(fault, ("tool-calls", SESSIONS))
    size = sessions or usual
    sound = {key: _said(row) for key, row in _rows("none", scenario, size)}
    judged = damaged = told = alarms = 0
    missed: list[str] = []
    labels: dict[str, int] = {}
    for key, row in _rows(fault, scenario, size):
        if row["aborted"] or row["failure"] or key not in sound:
            continue
        judged += 1
        if _said(row) == sound[key]:
            alarms += row["corrupted"]
            continue
        damaged += 1
        told += row["corrupted"]
        labels[row["primary"]] = labels.get(row["primary"], 0) + 1
        if not row["corrupted"]:
            missed.append(f"{row['id']}: {json.dumps(_said(row))[:160]}")
    return LabShare(
        fault, judged, damaged, told, alarms, tuple(missed), tuple(sorted(labels.items()))
    )


def _said(row: dict[str, Any]) -> list[Any]:
    """What a client sees of a reply; ids of calls are drawn anew each time."""
    reply = row["response"]
    calls = [
        [call["function"]["name"], call["function"]["arguments"]]
        for call in reply["tool_calls"] or ()
    ]
    return [reply["content"], reply["reasoning_content"], calls, reply["finish_reason"]]


def _rows(fault: str, scenario: str, sessions: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Every record of a run with where it stands in the scenario."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["--lab-fault", fault, "--scenario", scenario, "--seed", str(SEED)]
        words += ["--sessions", str(sessions), "--no-progress", "--output-dir", folder]
        command = [sys.executable, "-m", "dsv4doctor", "repro", *words]
        subprocess.run(command, check=False, capture_output=True, timeout=1800)
        (records,) = Path(folder).glob("*/records.jsonl")
        for line in records.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            yield (row["session"], row["turn"], row["id"]), row
