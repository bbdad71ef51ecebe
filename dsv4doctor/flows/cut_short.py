"""Runs that never got to their summary: what is said of them, and of those that cannot go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.errors import EXIT_UNDECIDED, DoctorError
from dsv4doctor.report.members import mapping

CHECKSUM = "checksum"  # whose runs are labelled with the action
# What `checksum live` keeps of the ranks' records.
OBSERVATIONS = "observations"


@dataclass(frozen=True, slots=True, kw_only=True)
class SoFar:
    """An unfinished run, as its command would have told it."""

    verdict: str
    exit_code: int
    findings: list[dict[str, Any]]
    body: dict[str, Any]


def words_of(directory: RunDirectory) -> str:
    """The command that made the run, as it is typed."""
    command, label = directory.manifest["command"], directory.manifest.get("label")
    return f"{command} {label}" if command == CHECKSUM else str(command)


def sum_up_cut_short(directory: RunDirectory) -> SoFar:
    """Counts of records, by arm where they name one; nothing is concluded from them.

    Raises:
        DoctorError: if nothing had been seen.
    """
    by_arm: dict[str, dict[str, Any]] = {}
    for record in directory.records():
        name = str(record.get("arm") or "all")
        counts = {"name": name, "responses": 0, "corrupted_responses": 0, "failures": 0}
        _count(by_arm.setdefault(name, counts), record)
    observed = sum(1 for path in directory.path.glob(f"{OBSERVATIONS}/*") for _ in path.open("rb"))
    command = words_of(directory)
    if not by_arm and not observed:
        failed = directory.manifest.get("failed")
        because = f": {failed}" if failed else " before anything was seen"
        raise DoctorError(
            f"{directory.path} has no summary: that run of `{command}` was cut short{because}",
            f"run `dsv4doctor {command}` again",
        )
    body = {
        "run_dir": str(directory.path),
        "target": mapping(directory.manifest.get("target")),
        "arms": list(by_arm.values()),
        "observations": observed,
        "interrupted": True,
    }
    return SoFar(verdict="undecided", exit_code=EXIT_UNDECIDED, findings=[], body=body)


def _count(counts: dict[str, Any], record: Mapping[str, Any]) -> None:
    if record.get("failure"):
        counts["failures"] += 1
    elif not record.get("aborted"):
        counts["responses"] += 1
        counts["corrupted_responses"] += bool(record.get("corrupted"))
