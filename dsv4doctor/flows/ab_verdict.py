"""What an experiment's blocks mean: comparisons, interaction, findings, and the `ab` object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import EXIT_COULD_NOT, EXIT_DONE, EXIT_FINDINGS, EXIT_UNDECIDED
from dsv4doctor.experiment.arms import Arm, ArmKind, crossing
from dsv4doctor.finding import Certainty, Evidence, Finding, Severity
from dsv4doctor.flows.ab_results import BlockResult, arm_body, block_body, outcomes_of
from dsv4doctor.flows.ab_setup import AbPlan
from dsv4doctor.flows.conclusion import mild_is_done
from dsv4doctor.stats.decide import (
    Looking,
    Rules,
    effective_cell,
    judge,
    launch_inflation,
    may_stop,
    overall,
)
from dsv4doctor.stats.factorial import Factorial, factorial
from dsv4doctor.stats.outcomes import ArmOutcomes
from dsv4doctor.verdict import Comparison, Verdict

EXIT_OF_VERDICT = {
    Verdict.DIFFER: EXIT_FINDINGS,
    Verdict.UNDECIDED: EXIT_UNDECIDED,
    Verdict.EQUIVALENT: EXIT_DONE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AbFacts:
    """What is known of an experiment beside its blocks."""

    run_dir: str
    target: Mapping[str, Any]
    restored: bool | None = None
    restored_evidence: tuple[str, ...] = ()
    interrupted: bool = False
    segments: int = 1
    notes: tuple[str, ...] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The statistics of an experiment."""

    outcomes: tuple[ArmOutcomes, ...]
    comparisons: tuple[Comparison, ...]
    verdict: Verdict
    factorial: Factorial | None


def looking_of(plan: AbPlan) -> Looking:
    """How the sessions were come by."""
    if plan.kind is ArmKind.RUN:
        return Looking.ONCE
    return Looking.LAUNCHES if plan.is_relaunched else Looking.PAIRS


def judge_blocks(plan: AbPlan, blocks: Sequence[BlockResult]) -> Judged:
    """The verdict on a finished experiment."""
    outcomes = tuple(outcomes_of(arm, blocks) for arm in plan.arms)
    rules = Rules(alpha=plan.alpha, margin=plan.margin, looking=looking_of(plan))
    comparisons = judge(outcomes, rules)
    return Judged(
        outcomes=outcomes,
        comparisons=comparisons,
        verdict=overall(comparisons),
        factorial=_factorial(plan.arms, outcomes, rules),
    )


def look(
    plan: AbPlan, blocks: Sequence[BlockResult], finished_rounds: int
) -> tuple[Comparison, ...]:
    """The comparisons so far, for the live table and the decision to stop."""
    rules = Rules(alpha=plan.alpha, margin=plan.margin, looking=looking_of(plan), plan_needs=False)
    outcomes = [outcomes_of(arm, blocks) for arm in plan.arms]
    return judge(outcomes, rules, finished_rounds=finished_rounds)


def is_decided(comparisons: Sequence[Comparison]) -> bool:
    """True when no further block can change anything."""
    return may_stop(comparisons)


def _factorial(
    arms: Sequence[Arm], outcomes: Sequence[ArmOutcomes], rules: Rules
) -> Factorial | None:
    crossed = crossing(arms)
    if crossed is None or any(arm.not_proved or not arm.sessions for arm in outcomes):
        return None
    inflation = launch_inflation(outcomes, rules)
    by_name = {arm.name: effective_cell(arm, inflation) for arm in outcomes}
    cells = {levels: by_name[name] for levels, name in crossed.cells.items()}
    return factorial(crossed.factors, crossed.levels, cells, 1.0 - rules.alpha)


def exit_code_of(
    verdict: Verdict, findings: Sequence[Finding], facts: AbFacts, fail_on: Severity
) -> int:
    """The contract's code; 3 where the deployment could not be put back, whatever was found."""
    if facts.restored is False:
        return EXIT_COULD_NOT
    return mild_is_done(EXIT_OF_VERDICT[verdict], findings, fail_on)


def body_of(
    plan: AbPlan, blocks: Sequence[BlockResult], judged: Judged, facts: AbFacts
) -> dict[str, Any]:
    """The contract's `ab` object."""
    return {
        "run_dir": facts.run_dir,
        "target": facts.target,
        "scenario": plan.scenario.name,
        "seed": plan.seed,
        "alpha": plan.alpha,
        "margin": plan.margin,
        "looking": looking_of(plan).value,
        "sessions_per_block": plan.sessions,
        "rounds": plan.rounds,
        "arms": [arm_body(arm, blocks) for arm in plan.arms],
        "comparisons": [to_builtins(comparison) for comparison in judged.comparisons],
        "interaction": _interaction_body(judged.factorial),
        "blocks": [block_body(block) for block in blocks],
        "restored": facts.restored,
        "restored_evidence": list(facts.restored_evidence),
        "interrupted": facts.interrupted,
        "segments": facts.segments,
        "notes": list(facts.notes),
    }


def _interaction_body(found: Factorial | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "factors": list(found.factors),
        "levels": [list(levels) for levels in found.levels],
        **to_builtins(found.interaction),
        "found": found.found,
        "effects": [to_builtins(effect) for effect in found.effects],
    }


def findings_of(judged: Judged, facts: AbFacts) -> tuple[Finding, ...]:
    """One finding a differing pair, one an unproved arm, one where putting back failed."""
    found = [
        Finding(
            rule="ARMS_DIFFER",
            severity=Severity.ERROR,
            title=f"{comparison.a} and {comparison.b} differ",
            evidence=(
                Evidence(
                    where=f"comparisons {comparison.a} against {comparison.b}",
                    what=comparison.reason,
                ),
            ),
            remedy="keep the better arm; what differs between them is the cause or covers it",
        )
        for comparison in judged.comparisons
        if comparison.verdict is Verdict.DIFFER
    ]
    found += [
        Finding(
            rule="ARM_NOT_PROVED",
            severity=Severity.WARNING,
            title=f"{arm.name} was not proved to be what its name says",
            evidence=(Evidence(where=f"arms.{arm.name}.verification", what=arm.not_proved),),
            certainty=Certainty.NOT_DETERMINED,
            remedy="make the feature run (load, flags, --enable-metrics), then run again",
        )
        for arm in judged.outcomes
        if arm.not_proved
    ]
    if facts.restored is False:
        evidence = facts.restored_evidence or ("nothing could be read back",)
        found.append(
            Finding(
                rule="NOT_RESTORED",
                severity=Severity.ERROR,
                title="the deployment is not known to be at its baseline",
                evidence=tuple(Evidence(where="restored_evidence", what=e) for e in evidence),
                remedy=f"dsv4doctor ab restore {facts.run_dir}, or the commands in the evidence",
            )
        )
    return tuple(found)
