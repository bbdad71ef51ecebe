"""What a diagnosis concludes: the contract's `diagnose` object, findings and exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.differential.arms import ARMS, ArmName
from dsv4doctor.differential.readings import Case, Reading
from dsv4doctor.differential.standing import CauseStanding, Conclusion, Standing, conclude, judge
from dsv4doctor.errors import EXIT_COULD_NOT, EXIT_DONE, EXIT_FINDINGS, EXIT_UNDECIDED
from dsv4doctor.finding import Certainty, Evidence, Finding, Severity
from dsv4doctor.flows.conclusion import mild_is_done
from dsv4doctor.flows.diagnose_arms import ArmRun
from dsv4doctor.flows.diagnose_next import next_command
from dsv4doctor.flows.diagnose_plan import DiagnosePlan
from dsv4doctor.flows.tally import commonest

UNREACHABLE = "unreachable"
EXIT_OF_VERDICT = {
    Conclusion.HEALTHY.value: EXIT_DONE,
    Conclusion.DIAGNOSED.value: EXIT_FINDINGS,
    Conclusion.UNDECIDED.value: EXIT_UNDECIDED,
    UNREACHABLE: EXIT_COULD_NOT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseFacts:
    """What is known of a diagnosis beside its case; `problem` is why it could not be done at all,
    and empty where it could."""

    run_dir: str
    target: Mapping[str, Any]
    plan: DiagnosePlan
    runs: Mapping[ArmName, ArmRun]
    notes: tuple[str, ...]
    interrupted: bool
    seconds: float
    problem: str = ""


def exit_code_of(verdict: str, findings: Sequence[Finding], fail_on: Severity) -> int:
    """The contract's code; 1 only if a finding reaches `fail_on`."""
    return mild_is_done(EXIT_OF_VERDICT[verdict], findings, fail_on)


def body_of(case: Case, facts: DiagnoseFacts) -> dict[str, Any]:
    """The contract's `diagnose` object. A healthy server has no causes; all that were looked for
    stand in `considered`."""
    verdict = verdict_of(case, facts)
    was_seen = verdict != UNREACHABLE
    considered = [_cause(each, facts.plan) for each in judge(case)] if was_seen else []
    return {
        "verdict": verdict,
        "run_dir": facts.run_dir,
        "target": dict(facts.target),
        "seed": facts.plan.seed,
        "sessions": facts.plan.sessions,
        "symptoms": sorted(symptom.value for symptom in case.symptoms),
        "causes": [] if verdict == Conclusion.HEALTHY else considered,
        "considered": considered,
        "arms": [_arm(reading, facts.runs.get(reading.arm)) for reading in case.readings],
        "not_run": [arm.name.value for arm in ARMS if case.reading(arm.name) is None],
        "notes": [*facts.notes, *([facts.problem] if facts.problem else [])],
        "interrupted": facts.interrupted,
        "seconds": round(facts.seconds, 1),
    }


def verdict_of(case: Case, facts: DiagnoseFacts) -> str:
    """What is supported stays so when further arms are cut short; healthy takes all of them."""
    if facts.problem:
        return UNREACHABLE
    concluded = conclude(case)
    if facts.interrupted and concluded is Conclusion.HEALTHY:
        return Conclusion.UNDECIDED.value
    return concluded.value


def _cause(each: CauseStanding, plan: DiagnosePlan) -> dict[str, Any]:
    return {
        "name": each.cause.name.value,
        "standing": each.standing.value,
        "claim": each.cause.claim,
        "for": list(each.for_),
        "against": list(each.against),
        "e_against": round(each.e_against, 3),
        "next": next_command(each.cause, plan),
    }


def _arm(reading: Reading, run: ArmRun | None) -> dict[str, Any]:
    spec = next(arm for arm in ARMS if arm.name is reading.arm)
    shown: dict[str, Any] = {
        "name": reading.arm.value,
        "changes": spec.changes,
        "said": reading.said,
        "e_stays": round(reading.stays, 3),
        "e_goes": round(reading.goes, 3),
        "not_proved": reading.not_proved,
        "seconds": None,
    }
    if run is not None:
        tally = run.tally
        shown |= {
            "responses": tally.responses,
            "corrupted_responses": tally.corrupted_responses,
            "rounds": run.rounds,
            "sessions": run.begun,
            "corrupted_sessions": tally.corrupted_sessions,
            "failures": tally.failures,
            "aborted_by_us": tally.aborted_by_us,
            "by_label": dict(commonest(tally.by_label)),
            "foreign_responses": len(run.foreign),
            "restored_tokens": run.restored_tokens,
            "proofs": [f"{c.setting}: {c.read}" for c in run.verification.checks],
            "seconds": round(run.seconds, 1),
        }
    return shown


def findings_of(case: Case, facts: DiagnoseFacts) -> tuple[Finding, ...]:
    """One finding a supported cause; where none is, one for all symptoms."""
    if facts.problem:
        return (_unreachable(facts.problem),)
    judged = judge(case)
    found = [
        Finding(
            rule=each.cause.name.value.upper(),
            severity=Severity.ERROR,
            certainty=Certainty.INFERRED,
            title=each.cause.claim,
            evidence=tuple(_evidence(said) for said in each.for_) or (_evidence("arms: see"),),
            remedy=next_command(each.cause, facts.plan),
        )
        for each in judged
        if each.standing is Standing.SUPPORTED
    ]
    if found or not case.symptoms:
        return tuple(found)
    still = [each.cause.name.value for each in judged if each.standing is Standing.OPEN]
    said = [reading for reading in case.readings if reading.seen]
    return (
        Finding(
            rule="CAUSE_NOT_FOUND",
            severity=Severity.WARNING,
            certainty=Certainty.NOT_DETERMINED,
            title=f"{' and '.join(sorted(case.symptoms))}; open: {', '.join(still) or 'none'}",
            evidence=tuple(Evidence(where=f"arms.{r.arm}", what=r.said) for r in said)
            or tuple(Evidence(where="arms", what=text) for text in case.late),
            remedy="run it again with more --sessions, or at a time of more load",
        ),
    )


def _unreachable(problem: str) -> Finding:
    return Finding(
        rule="UNREACHABLE",
        severity=Severity.WARNING,
        title="there was no server that could be diagnosed",
        evidence=(Evidence(where="target", what=problem),),
        remedy="check --base-url, the port, --api-key and --model",
    )


def _evidence(said: str) -> Evidence:
    arm, _, what = said.partition(": ")
    return Evidence(where=f"arms.{arm}" if what else "server", what=what or said)
