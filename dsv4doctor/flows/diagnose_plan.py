"""What a diagnosis will do, fixed before it starts and kept in `run.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.catalog import load_scenario
from dsv4doctor.codec import to_builtins
from dsv4doctor.flows.live_target import LabOptions
from dsv4doctor.scenario import Scenario
from dsv4doctor.target import Endpoint

COMMAND = "diagnose"
DEFAULT_SESSIONS = 60
DEFAULT_MINUTES = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosePlan:
    """One diagnosis. `endpoint` None means the lab, started with `lab` (or its defaults).

    `scenario` is the load; the other screens have scenarios of their own. No arm begins after
    `max_minutes`.
    """

    seed: int
    output_dir: Path
    scenario: Scenario = field(default_factory=lambda: load_scenario("tool-calls"))
    sessions: int = DEFAULT_SESSIONS
    turns: int | None = None
    endpoint: Endpoint | None = None
    lab: LabOptions | None = None
    model: str | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    stall_timeout_s: float = 30.0
    request_timeout_s: float = 600.0
    max_minutes: float = DEFAULT_MINUTES
    argv: tuple[str, ...] = ()

    def manifest(self) -> dict[str, Any]:
        """The plan as JSON types, for `run.json`; holds no secret."""
        return {
            "scenario": self.scenario.name,
            "sessions": self.sessions,
            "turns": self.turns,
            "seed": self.seed,
            "base_url": self.endpoint.base_url if self.endpoint else None,
            "lab": None if self.endpoint else to_builtins(self.lab or LabOptions()),
            "model": self.model,
            "extra_body": dict(self.extra_body),
            "stall_timeout_s": self.stall_timeout_s,
            "request_timeout_s": self.request_timeout_s,
            "max_minutes": self.max_minutes,
        }
