"""What a run will do, fixed before it starts and kept in `run.json`, so that it can be resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.catalog import load_scenario
from dsv4doctor.codec import from_builtins, to_builtins
from dsv4doctor.flows.saved_target import (
    START_ANEW,
    lab_fields,
    lab_from_fields,
    same_endpoint,
    saved_plan,
    told_as_damage,
)
from dsv4doctor.lab.deployment import LabOptions
from dsv4doctor.load.schedule import build_session
from dsv4doctor.scenario import Scenario
from dsv4doctor.target import Endpoint

__all__ = ["LabOptions", "ReproPlan", "load_scenario", "resumed_plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReproPlan:
    """One run. `endpoint` None means the lab, started with `lab` (or its defaults)."""

    scenario: Scenario
    sessions: int
    seed: int
    output_dir: Path
    turns: int | None = None
    context_tokens: tuple[int, int] | None = None
    endpoint: Endpoint | None = None
    lab: LabOptions | None = None
    model: str | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    max_concurrency: int | None = None
    stall_timeout_s: float = 30.0
    request_timeout_s: float = 600.0
    argv: tuple[str, ...] = ()
    resume: Path | None = None

    def check(self) -> None:
        """Build the last session that will be asked for, before anything is started for it.

        Raises:
            UsageError: if sessions, turns and lengths do not go together.
        """
        build_session(
            self.scenario,
            seed=self.seed,
            session=self.sessions - 1,
            turns=self.turns,
            context_tokens=self.context_tokens,
        )

    @property
    def turn_count(self) -> int:
        return self.scenario.turns if self.turns is None else self.turns

    def manifest(self) -> dict[str, Any]:
        """What `resumed_plan` needs, as JSON types; holds no secret."""
        return {
            "scenario": to_builtins(self.scenario),
            "sessions": self.sessions,
            "turns": self.turns,
            "seed": self.seed,
            "context_tokens": self.context_tokens and list(self.context_tokens),
            "base_url": self.endpoint.base_url if self.endpoint else None,
            "lab": None if self.endpoint else lab_fields(self.lab or LabOptions()),
            "model": self.model,
            "extra_body": dict(self.extra_body),
            "max_concurrency": self.max_concurrency,
            "stall_timeout_s": self.stall_timeout_s,
            "request_timeout_s": self.request_timeout_s,
        }


def resumed_plan(run_dir: Path, given: ReproPlan) -> ReproPlan:
    """The plan that the run at `run_dir` was started with.

    Of `given`, what is typed again on the command line, only what may change between segments
    counts: credentials, headers and TLS verification of the same server, and the extra body, whose
    secrets the run directory does not hold.

    Raises:
        UsageError: if `run_dir` is no run directory of `repro`, or names another server.
    """
    plan = saved_plan(run_dir, "repro")
    with told_as_damage(run_dir, START_ANEW):
        context = plan["context_tokens"]
        return replace(
            given,
            scenario=from_builtins(Scenario, plan["scenario"]),
            sessions=int(plan["sessions"]),
            turns=plan["turns"],
            seed=int(plan["seed"]),
            context_tokens=(context[0], context[1]) if context else None,
            endpoint=same_endpoint(run_dir, plan["base_url"], given.endpoint),
            lab=lab_from_fields(plan["lab"]),
            model=plan["model"],
            extra_body=given.extra_body or plan["extra_body"],
            max_concurrency=plan["max_concurrency"],
            stall_timeout_s=float(plan["stall_timeout_s"]),
            request_timeout_s=float(plan["request_timeout_s"]),
            resume=run_dir,
        )
