"""What an experiment will do, fixed before it starts and kept in `run.json` for `--resume`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dsv4doctor.codec import from_builtins, to_builtins
from dsv4doctor.experiment.arms import Arm, ArmKind, Honoured, parse_arms
from dsv4doctor.experiment.blocks import Block, plan_blocks
from dsv4doctor.experiment.factors import CLIENT_FACTORS, SERVER_FACTORS
from dsv4doctor.flows.saved_target import lab_fields, lab_from_fields, saved_plan, told_as_damage
from dsv4doctor.lab.deployment import LabOptions
from dsv4doctor.scenario import Scenario

__all__ = ["AbPlan", "ArmKind", "LabOptions", "parse_arms", "resumed"]

COMMAND = "ab"
DEFAULT_ROUNDS = 2
DEFAULT_DEADMAN_S = 600

# What a client alone can do: every one of its factors, at every value.
CLIENT_HONOURED: Mapping[str, frozenset[str] | None] = dict.fromkeys(
    factor.name for factor in CLIENT_FACTORS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AbPlan:
    """One experiment. Target: `deployment` (a file), `base_url` (a server that is not relaunched),
    else the arms' own endpoints or runs, else the lab as `lab` says.

    `rounds` blocks an arm of `sessions` sessions each; `warmup` sessions before each block are not
    counted. `alpha` is over all pairs together.
    """

    arms: tuple[Arm, ...]
    scenario: Scenario
    seed: int
    output_dir: Path
    sessions: int = 60
    rounds: int = DEFAULT_ROUNDS
    max_minutes: float | None = None
    turns: int | None = None
    warmup: int = 4
    alpha: float = 0.05
    margin: float = 0.01
    deadman_s: int = DEFAULT_DEADMAN_S
    deployment: Path | None = None
    base_url: str | None = None
    ssh_config: Path | None = None
    lab: LabOptions = field(default_factory=LabOptions)
    model: str | None = None
    api_key: str | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    stall_timeout_s: float = 30.0
    request_timeout_s: float = 600.0
    argv: tuple[str, ...] = ()
    resume: Path | None = None

    @property
    def kind(self) -> ArmKind:
        return self.arms[0].kind

    @property
    def uses_lab(self) -> bool:
        return self.kind is ArmKind.SETTINGS and self.deployment is None and self.base_url is None

    @property
    def is_relaunched(self) -> bool:
        """Whether blocks are launches: on the lab always, elsewhere where an arm needs it."""
        return self.uses_lab or (
            self.deployment is not None and any(arm.is_relaunched for arm in self.arms)
        )

    def blocks(self) -> tuple[Block, ...]:
        """All blocks in their seeded order."""
        return plan_blocks([arm.name for arm in self.arms], self.rounds, self.seed)

    def manifest(self) -> dict[str, Any]:
        """What `resumed` needs, as JSON types; holds no secret."""
        left_out = {"output_dir", "api_key", "argv", "resume", "ssh_config"}
        fields = {name: getattr(self, name) for name in self.__slots__ if name not in left_out}
        fields["deployment"] = self.deployment and str(self.deployment.resolve())
        return {name: to_builtins(value) for name, value in fields.items()} | {
            "lab": lab_fields(self.lab)
        }


def resumed(run_dir: Path, given: AbPlan) -> AbPlan:
    """The plan that the experiment at `run_dir` was started with, credentials and ssh
    configuration as `given`.

    Raises:
        UsageError: if `run_dir` is no experiment of ours, or its `run.json` is damaged.
    """
    return replace(given, **_fields_on_disk(run_dir), resume=run_dir)


def plan_on_disk(run_dir: Path) -> AbPlan:
    """The plan of the experiment at `run_dir`, to read its results by.

    Raises:
        UsageError: as `resumed`.
    """
    return AbPlan(**_fields_on_disk(run_dir), output_dir=run_dir.parent)


def _fields_on_disk(run_dir: Path) -> dict[str, Any]:
    plan = saved_plan(run_dir, COMMAND)
    with told_as_damage(run_dir, "start a new experiment"):
        fields = dict(plan)
        fields["arms"] = from_builtins(tuple[Arm, ...], plan["arms"])
        fields["scenario"] = from_builtins(Scenario, plan["scenario"])
        fields["lab"] = lab_from_fields(plan["lab"])
        if fields["deployment"] is not None:
            fields["deployment"] = Path(fields["deployment"])
        AbPlan(**fields, output_dir=run_dir)
    return fields


def honoured_by_server(name: str) -> Honoured:
    """What a server that is not relaunched can be made: only what the client changes."""
    return Honoured(target=name, factors=dict(CLIENT_HONOURED))


def honoured_by_deployment(
    name: str, factors: tuple[str, ...] | None, *, any_flag: bool, any_variable: bool
) -> Honoured:
    """What a relaunched deployment can be made, and the client beside it."""
    names = [factor.name for factor in SERVER_FACTORS] if factors is None else factors
    return Honoured(
        target=name,
        factors={**CLIENT_HONOURED, **dict.fromkeys(names)},
        any_flag=any_flag,
        any_variable=any_variable,
    )
