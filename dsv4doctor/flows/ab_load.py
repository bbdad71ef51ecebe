"""Runs of `repro` made earlier, as arms: each is one block that was looked at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.errors import UsageError
from dsv4doctor.experiment.arms import Arm
from dsv4doctor.flows.ab_block import session_outcomes
from dsv4doctor.flows.ab_results import BlockResult
from dsv4doctor.flows.countable import is_countable
from dsv4doctor.flows.tally import Tally

_HINT = "give a directory that `dsv4doctor repro` made"


def load_run(arm: Arm, number: int) -> BlockResult:
    """The run behind `arm` as a block.

    Raises:
        UsageError: if it is no run of `repro`, or has nothing that can be judged.
    """
    path = Path(arm.run_dir or "")
    run = RunDirectory.open(path)
    plan = run.manifest.get("plan")
    if run.manifest.get("command") != "repro" or not isinstance(plan, dict):
        raise UsageError(f"{path} is no run of `repro`", _HINT)
    tally = Tally()
    seen: set[tuple[int, int]] = set()
    for record in run.records():
        if not is_countable(record):
            continue
        key = record["session"], record["turn"]
        if key not in seen:
            seen.add(key)
            tally.add(record)
    if not tally.responses:
        raise UsageError(f"{path} holds no judged response", _HINT)
    turns = int(plan.get("turns") or plan["scenario"]["turns"])
    sessions = int(plan["sessions"])
    outcomes = session_outcomes(tally, sessions, turns)
    began = tally.first_sent_unix or 0.0
    return BlockResult(
        number=number,
        round=0,
        arm=arm.name,
        prompt_seed=int(plan["seed"]),
        began_unix=began,
        seconds=(tally.last_end_unix or began) - began,
        outcomes=outcomes,
        responses=tuple((s.corrupted, s.responses) for s in tally.by_session.values()),
        checks=(),
        by_label=dict(tally.by_label),
        by_failure=dict(tally.by_failure),
        aborted_by_us=tally.aborted_by_us,
        wedge=_wedge(run),
        notes=(f"run {path}",),
    )


def _wedge(run: RunDirectory) -> dict[str, Any] | None:
    summary = run.summary() or {}
    wedge = (summary.get("repro") or {}).get("wedge")
    return wedge if isinstance(wedge, dict) else None
