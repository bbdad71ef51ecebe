"""Scenario sessions driven straight into an engine, a round a turn, as the server gathers them."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dsv4doctor.artifacts.catalog import load_scenario
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.engine import Engine
from dsv4doctor.lab.rendering import assistant_text
from dsv4doctor.lab.requests import EngineRequest, Generation
from dsv4doctor.load.schedule import build_session
from dsv4doctor.session import SessionScript

SESSIONS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One reply of a run beside the reply that the scenario expects of a healthy model."""

    script: SessionScript
    turn: int
    request: EngineRequest
    generation: Generation

    @property
    def expected(self) -> str:
        return assistant_text(self.script.turns[self.turn].expected_reply)

    @property
    def is_corrupted(self) -> bool:
        return self.generation.text != self.expected


@lru_cache(maxsize=4)
def scripts(
    name: str, seed: int, sessions: int, context_tokens: tuple[int, int] | None = None
) -> tuple[SessionScript, ...]:
    scenario = load_scenario(name)
    return tuple(
        build_session(scenario, seed=seed, session=number, context_tokens=context_tokens)
        for number in range(sessions)
    )


def request_of(script: SessionScript, turn: int) -> EngineRequest:
    return EngineRequest(
        rid=f"test-s{script.session:04d}-t{turn:02d}",
        messages=script.messages(turn),
        tools=script.tools,
        tool_choice=script.turns[turn].tool_choice,
        max_tokens=script.turns[turn].max_tokens,
    )


def run(engine: Engine, chosen: tuple[SessionScript, ...]) -> list[Answer]:
    """Every turn of every session, one round a turn."""
    answers = []
    for turn in range(len(chosen[0].turns)):
        requests = [request_of(script, turn) for script in chosen]
        for script, request, generation in zip(
            chosen, requests, engine.serve_round(requests), strict=True
        ):
            answers.append(Answer(script=script, turn=turn, request=request, generation=generation))
    return answers


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """A run with its ground-truth log."""

    engine: Engine
    answers: list[Answer]
    log: Path


@lru_cache(maxsize=1)
def sick_run() -> LoggedRun:
    """The default lab under the default scenario at sixty sessions, run once for all tests."""
    folder = tempfile.mkdtemp(prefix="lab-truth-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    log = Path(folder) / "truth.jsonl"
    engine = Engine(EngineConfig(), log)
    answers = run(engine, scripts("tool-calls", 0, SESSIONS))
    engine.close()
    return LoggedRun(engine=engine, answers=answers, log=log)


def corrupted(answers: list[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer.is_corrupted]


def engine_of(**settings: object) -> Engine:
    return Engine(EngineConfig(**settings))  # type: ignore[arg-type]
