"""Finished blocks: what each brought, kept in `blocks.jsonl`, and the arms that they add up to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import from_builtins, to_builtins
from dsv4doctor.experiment.arms import Arm
from dsv4doctor.experiment.verification import Check, Verification, combine
from dsv4doctor.flows.tally import commonest
from dsv4doctor.stats.outcomes import ArmOutcomes, Outcome
from dsv4doctor.stats.rates import response_rate, session_rate

BLOCKS = "blocks.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockResult:
    """One finished block. `outcomes` by session: corrupted, clean, or None where it failed;
    `responses` are (corrupted, judged) of each session. Times are unix seconds."""

    number: int
    round: int
    arm: str
    prompt_seed: int
    began_unix: float
    seconds: float
    outcomes: tuple[Outcome, ...]
    responses: tuple[tuple[int, int], ...]
    checks: tuple[Check, ...]
    by_label: Mapping[str, int] = field(default_factory=dict)
    by_failure: Mapping[str, int] = field(default_factory=dict)
    aborted_by_us: int = 0
    wedge: Mapping[str, Any] | None = None
    attempt: int = 1
    notes: tuple[str, ...] = ()
    logs: tuple[str, ...] = ()

    @property
    def sessions(self) -> int:
        """Judged sessions."""
        return sum(outcome is not None for outcome in self.outcomes)

    @property
    def corrupted_sessions(self) -> int:
        return sum(map(bool, self.outcomes))

    @property
    def failures(self) -> int:
        return sum(self.by_failure.values())


class BlockBook:
    """The finished blocks of a run, in order; each addition is on disk when it returns."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run
        self.blocks: list[BlockResult] = read_blocks(run)

    def add(self, block: BlockResult) -> None:
        self.blocks.append(block)
        lines = (json.dumps(to_builtins(each)) for each in self.blocks)
        self._run.write_text(BLOCKS, "".join(f"{line}\n" for line in lines))

    @property
    def numbers(self) -> frozenset[int]:
        return frozenset(block.number for block in self.blocks)


def read_blocks(run: RunDirectory) -> list[BlockResult]:
    """The blocks that `run` has finished so far."""
    path = run.path / BLOCKS
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [from_builtins(BlockResult, json.loads(line)) for line in lines]


def verification_of(blocks: Sequence[BlockResult]) -> Verification:
    """Whether an arm was what its name says, in all of its blocks."""
    return combine([Verification(checks=block.checks) for block in blocks])


def outcomes_of(arm: Arm, blocks: Sequence[BlockResult]) -> ArmOutcomes:
    """The arm's sessions by launch, for the statistics."""
    own = [block for block in blocks if block.arm == arm.name]
    return ArmOutcomes(
        name=arm.name,
        launches=tuple(block.outcomes for block in own),
        not_proved=verification_of(own).reason,
    )


def arm_body(arm: Arm, blocks: Sequence[BlockResult]) -> dict[str, Any]:
    """The contract's `ab.arms[]` object."""
    own = [block for block in blocks if block.arm == arm.name]
    outcomes = outcomes_of(arm, own)
    per_session = [counts for block in own for counts in block.responses]
    verification = verification_of(own)
    labels: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for block in own:
        labels.update(block.by_label)
        failed.update(block.by_failure)
    return {
        "name": arm.name,
        "factors": arm.factors,
        "sessions": outcomes.sessions,
        "failed_sessions": sum(len(block.outcomes) - block.sessions for block in own),
        "corrupted_sessions": outcomes.corrupted,
        "responses": sum(judged for _, judged in per_session),
        "corrupted_responses": sum(corrupted for corrupted, _ in per_session),
        "session_rate": session_rate(outcomes.corrupted, outcomes.sessions),
        "response_rate": response_rate(per_session),
        "by_label": dict(commonest(labels)),
        "by_failure": dict(commonest(failed)),
        "failures": sum(failed.values()),
        "aborted_by_us": sum(block.aborted_by_us for block in own),
        "wedges": sum(block.wedge is not None for block in own),
        "blocks": len(own),
        "verified": verification.verified,
        "verification": {
            "reason": verification.reason or None,
            "checks": [
                {"block": block.number, **to_builtins(check)}
                for block in own
                for check in block.checks
            ],
        },
    }


def block_body(block: BlockResult) -> dict[str, Any]:
    """One block in `ab.blocks[]`: what its report line needs."""
    return {
        "number": block.number,
        "round": block.round,
        "arm": block.arm,
        "prompt_seed": block.prompt_seed,
        "began_unix": block.began_unix,
        "seconds": round(block.seconds, 1),
        "sessions": block.sessions,
        "corrupted_sessions": block.corrupted_sessions,
        "failed_sessions": len(block.outcomes) - block.sessions,
        "failures": block.failures,
        "session_rate": session_rate(block.corrupted_sessions, block.sessions),
        "wedge": block.wedge,
        "logs": list(block.logs),
        "notes": list(block.notes),
    }
