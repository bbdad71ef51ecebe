"""What a watch does: how often, with which canaries, and what it counts as slow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.catalog import load_scenario
from dsv4doctor.load.schedule import build_session
from dsv4doctor.scenario import Scenario, TurnKind
from dsv4doctor.session import SessionScript
from dsv4doctor.target import Endpoint

COMMAND = "watch"
DEFAULT_INTERVAL_S = 30.0
# The rate of corrupted replies that the number of canaries is planned for: a third of the record's.
DEFAULT_RATE = 0.05

# One canary conversation: its first prompt is long enough for the indexer to choose, and it goes on
# for so many turns, each asking for values of earlier ones.
CANARY_TURNS = 8
CANARY_CONTEXT = (3600, 5600)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPlan:
    """One watch. Every `interval_s` a pulse: a small generation, and a turn of each of `canaries`
    conversations. No part of it may take longer than `timeout_s`.

    `pulses` ends it after so many (None: only a fault ends it, and with `port` nothing does).
    `slow_ttft_ms` counts as slow; without it, `SLOW_FACTOR` times what is usual.
    """

    endpoint: Endpoint
    seed: int
    output_dir: Path
    interval_s: float = DEFAULT_INTERVAL_S
    timeout_s: float = DEFAULT_INTERVAL_S
    canaries: int = 1
    pulses: int | None = None
    port: int | None = None
    slow_ttft_ms: float | None = None
    rate: float = DEFAULT_RATE
    model: str | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    argv: tuple[str, ...] = ()


def canary_scenario() -> Scenario:
    """Conversations whose turns all need old pages: what is restored under load is read at once."""
    return replace(
        load_scenario("tool-calls"),
        name="watch",
        turns=CANARY_TURNS,
        context_tokens=CANARY_CONTEXT,
        turn_kinds=(TurnKind.TOOL_CALL,),
    )


class Conversations:
    """The canary conversations, each a turn further at every pulse, then a new one."""

    def __init__(self, plan: WatchPlan) -> None:
        self._plan = plan
        self._scenario = canary_scenario()
        self._scripts: dict[int, SessionScript] = {}
        self._pulse = 0

    def next(self) -> list[tuple[SessionScript, int]]:
        """Script and turn of each canary of the next pulse."""
        generation, turn = divmod(self._pulse, CANARY_TURNS)
        self._pulse += 1
        sessions = range(generation * self._plan.canaries, (generation + 1) * self._plan.canaries)
        self._scripts = {s: self._scripts.get(s) or self._build(s) for s in sessions}
        return [(self._scripts[session], turn) for session in sessions]

    def _build(self, session: int) -> SessionScript:
        return build_session(self._scenario, seed=self._plan.seed, session=session)
