"""Replies of the lab under each of its faults, beside the healthy lab's to the same requests.

The same seed and sessions give the same requests, whose histories are the scenario's own and never
what was answered before. So a reply is damaged exactly when the healthy lab says something else;
no detector has a say in that.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4doctor.detect import judge
from dsv4doctor.exchange import exchange_from_record

SEED = 1
# Scenario and sessions of each fault: what it needs to show itself several times.
_USUAL = ("tool-calls", 24)
_RUNS = {
    "index-race": ("tool-calls", 60),
    "load-fence": ("tool-calls", 60),
    "early-send": ("best-of-n", 60),
    "parser-negative-number": ("parser-probe", 12),
}
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
    labels: list[tuple[str, int]]

    @property
    def recall(self) -> float:
        return self.told / self.damaged if self.damaged else 1.0


def lab_share(fault: str, folder: Path) -> LabShare:
    """One run of `repro` against the lab with the fault and one without, kept in `folder` and made
    only where they are not there yet; the replies are judged here and now."""
    scenario, sessions = _RUNS.get(fault, _USUAL)
    sound = {key: _said(row) for key, row in _rows("none", scenario, sessions, folder)}
    judged = damaged = told = alarms = 0
    missed: list[str] = []
    labels: Counter[str] = Counter()
    for key, row in _rows(fault, scenario, sessions, folder):
        if row["aborted"] or row["failure"] or key not in sound:
            continue
        judged += 1
        judgement = judge(exchange_from_record(row))
        if _said(row) == sound[key]:
            alarms += judgement.corrupted
            continue
        damaged += 1
        told += judgement.corrupted
        labels[judgement.primary.value] += 1
        if not judgement.corrupted:
            missed.append(f"{row['id']}: {json.dumps(_said(row))[:160]}")
    return LabShare(fault, judged, damaged, told, alarms, tuple(missed), labels.most_common())


def _said(row: dict[str, Any]) -> list[Any]:
    """What a client sees of a reply; ids of calls are drawn anew each time."""
    reply = row["response"]
    calls = [
        [call["function"]["name"], call["function"]["arguments"]]
        for call in reply["tool_calls"] or ()
    ]
    return [reply["content"], reply["reasoning_content"], calls, reply["finish_reason"]]


def _rows(
    fault: str, scenario: str, sessions: int, folder: Path
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Every record of a run with where it stands in the scenario."""
    runs = folder / f"{fault}-{scenario}-{sessions}"
    if not list(runs.glob("*/records.jsonl")):
        words = ["--lab-fault", fault, "--scenario", scenario, "--seed", str(SEED)]
        words += ["--sessions", str(sessions), "--no-progress", "--output-dir", str(runs)]
        command = [sys.executable, "-m", "dsv4doctor", "repro", *words]
        subprocess.run(command, check=False, capture_output=True, timeout=1800)
    (records,) = runs.glob("*/records.jsonl")
    for line in records.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield (row["session"], row["turn"], _sample(row["id"])), row


def _sample(identity: str) -> str:
    """The part of a record's id that tells the samples of one turn apart."""
    return identity.partition("-t")[2]
