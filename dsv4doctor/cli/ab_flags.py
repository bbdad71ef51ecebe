"""The flags of `ab` that name the arms and their target, and those that bound the experiment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.bounds import MAX_BLOCKS, MAX_MINUTES, MAX_SECONDS, MAX_SESSIONS
from dsv4doctor.errors import UsageError

if TYPE_CHECKING:
    from dsv4doctor.flows.ab_setup import AbPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFlags:
    """What is compared, and where it runs."""

    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm",
            metavar="NAME[:factor=value,...]|NAME=URL",
            help="An arm; repeatable. Without any: index-K bf16/fp8 x HiCache on/off.",
        ),
    ] = None
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="NAME=RUN_DIR",
            help="A run of repro made earlier, as an arm; repeatable.",
        ),
    ] = None
    deployment: Annotated[
        Path | None,
        typer.Option(
            "--deployment",
            metavar="FILE.toml",
            help="What is relaunched (docs/ab.md). Without it the lab.",
        ),
    ] = None
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url",
            help="A running server for arms of client-side factors; it is not relaunched.",
        ),
    ] = None
    ssh_config: options.SshConfig = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFlags:
    """How much is sent, and what the comparison promises."""

    sessions: Annotated[
        int, typer.Option("--sessions", min=1, max=MAX_SESSIONS, help="Sessions a block.")
    ] = 60
    turns: options.Turns = None
    blocks: Annotated[
        int | None,
        typer.Option("--blocks", min=1, max=MAX_BLOCKS, help="Blocks an arm [default: 2]."),
    ] = None
    max_sessions: Annotated[
        int | None,
        typer.Option(
            "--max-sessions",
            min=1,
            max=MAX_SESSIONS,
            help="Sessions an arm at most; sets --blocks where that is not given.",
        ),
    ] = None
    max_minutes: Annotated[
        float | None,
        typer.Option(
            "--max-minutes", min=0.1, max=MAX_MINUTES, help="No block begins after so long."
        ),
    ] = None
    warmup: Annotated[
        int,
        typer.Option(
            "--warmup", min=0, max=MAX_SESSIONS, help="Sessions before each block, not counted."
        ),
    ] = 4
    alpha: Annotated[
        float,
        typer.Option(
            "--alpha", min=1e-9, max=0.5, help="Chance of any false alarm over all pairs."
        ),
    ] = 0.05
    margin: Annotated[
        float,
        typer.Option("--margin", min=1e-6, max=0.5, help="Rates closer than this count as equal."),
    ] = 0.01
    seed: options.Seed = 42
    deadman: Annotated[
        int,
        typer.Option(
            "--deadman",
            min=5,
            max=int(MAX_SECONDS),
            metavar="S",
            help="The hosts put themselves back when we were not heard of for so many seconds.",
        ),
    ] = 600

    def on(self, plan: AbPlan) -> AbPlan:
        """The plan within these bounds.

        Raises:
            UsageError: if they allow not one block.
        """
        return replace(
            plan,
            sessions=self.sessions,
            rounds=self._rounds(),
            max_minutes=self.max_minutes,
            turns=self.turns,
            warmup=self.warmup,
            alpha=self.alpha,
            margin=self.margin,
            deadman_s=self.deadman,
        )

    def _rounds(self) -> int:
        """Blocks an arm: as given, but no more than the sessions allow."""
        from dsv4doctor.flows.ab_setup import DEFAULT_ROUNDS

        if self.max_sessions is None:
            return self.blocks or DEFAULT_ROUNDS
        most = self.max_sessions // self.sessions
        if most < 1:
            raise UsageError(
                f"--max-sessions {self.max_sessions} is less than one block of {self.sessions}",
                "give a smaller --sessions, or more",
            )
        return min(self.blocks or most, most, MAX_BLOCKS)
