"""What an experiment that never came to its end says so far: its finished blocks, judged."""

from __future__ import annotations

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import ShapeError, to_builtins
from dsv4doctor.errors import DoctorError
from dsv4doctor.finding import Severity
from dsv4doctor.flows.ab_results import read_blocks
from dsv4doctor.flows.ab_setup import plan_on_disk
from dsv4doctor.flows.ab_verdict import AbFacts, body_of, exit_code_of, findings_of, judge_blocks
from dsv4doctor.flows.cut_short import SoFar
from dsv4doctor.report.members import mapping, sequence


def sum_up(directory: RunDirectory) -> SoFar:
    """The verdict on the blocks that were finished. Without any, all is undecided.

    Raises:
        UsageError: if its `run.json` is damaged.
        DoctorError: if its blocks are.
    """
    plan, manifest = plan_on_disk(directory.path), directory.manifest
    try:
        blocks = read_blocks(directory)
    except (ShapeError, ValueError) as error:
        raise DoctorError(
            f"{directory.path}: its finished blocks are damaged: {error}", "start a new experiment"
        ) from error
    judged = judge_blocks(plan, blocks)
    restored = manifest.get("restored")
    facts = AbFacts(
        run_dir=str(directory.path),
        target=mapping(manifest.get("target")),
        restored=restored if isinstance(restored, bool) else None,
        restored_evidence=tuple(map(str, sequence(manifest.get("restored_evidence")))),
        interrupted=True,
        segments=len(manifest["segments"]),
    )
    findings = findings_of(judged, facts)
    return SoFar(
        verdict=judged.verdict.value,
        exit_code=exit_code_of(judged.verdict, findings, facts, Severity.WARNING),
        findings=to_builtins(findings),
        body=to_builtins(body_of(plan, blocks, judged, facts)),
    )
