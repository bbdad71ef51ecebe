"""The experiment table of the original case, in the engine alone: who is sick, and who never is."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Any

import pytest
from lab_sessions import SESSIONS, Answer, corrupted, engine_of, run, scripts, sick_run

from dsv4doctor.lab.tokens import encode, piece_of

_VALUE = re.compile(r'string="(?:true|false)">(.*?)</｜DSML｜parameter>', re.DOTALL)
# The smallest pool that holds one batch of short prompts: every session is evicted between turns.
TINY_POOL: dict[str, Any] = {"device_pages": 90, "slack_ms": 0.02}

HEALTHY_ARMS = [
    pytest.param("tool-calls", SESSIONS, {"index_k": "fp8"}, id="fp8 loads in time"),
    pytest.param(
        "tool-calls", SESSIONS, {"hicache": False}, id="without HiCache nothing is loaded"
    ),
    pytest.param("tool-calls", SESSIONS, {"fixes": ("index-gate",)}, id="the gate waits"),
    pytest.param("tool-calls", 1, {}, id="one session is never evicted"),
    pytest.param("short-context", SESSIONS, {}, id="512 entries leave no choice"),
]


def rate(answers: list[Answer]) -> float:
    return len(corrupted(answers)) / len(answers)


def is_subtle(answer: Answer) -> bool:
    """One argument's value, or at most five tokens, differ from the healthy reply."""
    given, wanted = answer.generation.text, answer.expected
    if _VALUE.sub("", given) == _VALUE.sub("", wanted):
        values = zip(_VALUE.findall(given), _VALUE.findall(wanted), strict=True)
        if _VALUE.findall(wanted) and sum(a != b for a, b in values) == 1:
            return True
    pieces = [piece_of(int(token)) for token in encode(wanted)]
    blocks = SequenceMatcher(None, pieces, list(answer.generation.pieces), autojunk=False)
    edits = [
        max(i2 - i1, j2 - j1) for kind, i1, i2, j1, j2 in blocks.get_opcodes() if kind != "equal"
    ]
    return sum(edits) <= 5


def test_bf16_with_hicache_at_sixty_sessions_is_as_sick_as_the_record() -> None:
    answers = sick_run().answers
    assert 0.12 <= rate(answers) <= 0.18
    bad = corrupted(answers)
    assert min(answer.turn for answer in bad) >= 1, "nothing is loaded in the first turn"
    by_turn = [sum(answer.turn == turn for answer in bad) for turn in range(6)]
    assert by_turn[-1] > by_turn[2], "longer contexts load more pages"
    assert sum(map(is_subtle, bad)) >= len(bad) / 5


@pytest.mark.parametrize(("scenario", "sessions", "settings"), HEALTHY_ARMS)
def test_arm_has_no_corruption_at_all(
    scenario: str, sessions: int, settings: dict[str, Any]
) -> None:
    answers = run(engine_of(**settings), scripts(scenario, 0, sessions))
    assert corrupted(answers) == []


def test_short_contexts_survive_stale_reads() -> None:
    engine = engine_of(**TINY_POOL)
    answers = run(engine, scripts("short-context", 0, SESSIONS))
    assert engine.ground_truth.stale_reads > 0
    assert corrupted(answers) == []


@pytest.mark.parametrize(
    ("scenario", "settings"),
    [
        pytest.param("tool-calls", {"prefill_batch_requests": 20}, id="larger batches"),
        pytest.param("long-context", {"device_pages": 620}, id="longer contexts"),
    ],
)
def test_fp8_narrows_the_window_and_does_not_close_it(
    scenario: str, settings: dict[str, Any]
) -> None:
    answers = run(engine_of(index_k="fp8", **settings), scripts(scenario, 0, SESSIONS))
    assert 0.02 <= rate(answers) <= 0.15


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_record_holds_for_every_seed(seed: int) -> None:
    chosen = scripts("tool-calls", seed, SESSIONS)
    answers = run(engine_of(), chosen)
    assert 0.08 <= rate(answers) <= 0.30
    assert sum(map(is_subtle, corrupted(answers))) >= len(corrupted(answers)) / 5
    for settings in ({"index_k": "fp8"}, {"hicache": False}, {"fixes": ("index-gate",)}):
        assert corrupted(run(engine_of(**settings), chosen)) == []
