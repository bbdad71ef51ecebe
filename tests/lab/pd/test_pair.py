"""Prefill and decode apart: what each fault between them does, when, and that it does no more."""

from __future__ import annotations

import random
from typing import Any

import pytest
from lab_sessions import Answer, corrupted, engine_of, request_of, run, scripts
from pairs import Pair

# Two batches, and a pool that holds one: the smallest load that every fault here shows under.
SESSIONS = 26
DECODE_STORE: dict[str, Any] = {"faults": ("decode-store",), "hicache": False}
EARLY_SEND: dict[str, Any] = {"faults": ("early-send",), "device_pages": 150}
LAYOUT: dict[str, Any] = {"faults": ("layout-mismatch",), "index_k": "fp8"}


def answers_of(scenario: str, sessions: int, **settings: Any) -> tuple[Pair, list[Answer]]:
    pair = Pair(**settings)
    return pair, run(pair, scripts(scenario, 0, sessions))


def by_turn(answers: list[Answer]) -> list[int]:
    bad = corrupted(answers)
    return [sum(answer.turn == turn for answer in bad) for turn in range(6)]


@pytest.mark.parametrize(
    "settings",
    [{"device_pages": 250}, {"device_pages": 250, "fixes": ("index-gate",)}],
    ids=["index race", "gated"],
)
def test_a_pair_answers_as_one_engine_does(settings: dict[str, Any]) -> None:
    chosen = scripts("tool-calls", 0, SESSIONS)
    apart = run(Pair(**settings), chosen)
    together = run(engine_of(**settings), chosen)
    assert [a.generation.text for a in apart] == [a.generation.text for a in together]
    assert bool(corrupted(apart)) is ("fixes" not in settings)


def test_the_order_of_arrival_changes_nothing() -> None:
    settings: dict[str, Any] = {**DECODE_STORE, "hicache": True}
    chosen = scripts("tool-calls", 0, SESSIONS)
    texts = []
    for shuffled in (False, True):
        pair, order = Pair(**settings), list(range(SESSIONS))
        said: dict[str, str] = {}
        for turn in range(6):
            if shuffled:
                random.Random(turn).shuffle(order)
            for generation in pair.serve_round([request_of(chosen[n], turn) for n in order]):
                said[generation.rid] = generation.text
        texts.append((said, pair.stale_reads))
    assert texts[0] == texts[1]
    assert texts[0][1][1] > 0, "stale reads are part of what is compared"


def test_the_decode_store_is_late_under_load_and_later_with_longer_contexts() -> None:
    pair, answers = answers_of("tool-calls", SESSIONS, **DECODE_STORE)
    assert pair.stale_reads[0] == 0
    assert pair.stale_reads[1] > 0
    turns = by_turn(answers)
    assert turns[:2] == [0, 0]
    assert sum(turns[4:]) > sum(turns[2:4]) > 0


@pytest.mark.parametrize(
    ("scenario", "sessions", "settings"),
    [
        pytest.param("tool-calls", SESSIONS, {"fixes": ("store-fence",)}, id="fixed"),
        pytest.param("tool-calls", 1, {}, id="one session"),
        pytest.param("tool-calls", SESSIONS, {"index_k": "fp8"}, id="fp8 is stored in time"),
        pytest.param("short-context", SESSIONS, {}, id="512 entries leave no choice"),
    ],
)
def test_the_decode_store_does_no_harm_elsewhere(
    scenario: str, sessions: int, settings: dict[str, Any]
) -> None:
    _, answers = answers_of(scenario, sessions, **{**DECODE_STORE, **settings})
    assert corrupted(answers) == []


def test_an_early_send_is_wrong_on_the_decode_side_alone() -> None:
    pair, answers = answers_of("best-of-n", SESSIONS, **EARLY_SEND)
    assert len(corrupted(answers)) > 5
    assert pair.stale_reads[0] == 0, "the prefill engine waits for the load and reads right"
    assert pair.stale_reads[1] > 0


@pytest.mark.parametrize(
    ("scenario", "sessions", "settings"),
    [
        pytest.param("best-of-n", SESSIONS, {"fixes": ("early-send-block",)}, id="fixed"),
        pytest.param("best-of-n", SESSIONS, {"early_send": False}, id="switched off"),
        pytest.param("best-of-n", SESSIONS, {"hicache": False}, id="nothing is restored"),
        pytest.param("best-of-n", 2, {}, id="nothing is evicted"),
        pytest.param("tool-calls", SESSIONS, {}, id="no two share what is restored"),
    ],
)
def test_an_early_send_does_no_harm_elsewhere(
    scenario: str, sessions: int, settings: dict[str, Any]
) -> None:
    pair, answers = answers_of(scenario, sessions, **{**EARLY_SEND, **settings})
    assert corrupted(answers) == []
    assert pair.stale_reads == (0, 0)


@pytest.mark.parametrize(
    ("version", "is_sick"), [("0.5.14", False), ("0.5.17", True), ("0.5.23", False)]
)
def test_releases_send_early_as_they_do(version: str, is_sick: bool) -> None:
    pair, answers = answers_of(
        "best-of-n", SESSIONS, faults=("none",), as_version=version, device_pages=150
    )
    assert bool(corrupted(answers)) is is_sick
    assert pair.stale_reads[0] == 0


@pytest.mark.parametrize("index_k", ["fp8", "fp4"])
def test_a_layout_mismatch_needs_no_load(index_k: str) -> None:
    first = answers_of("tool-calls", 1, **{**LAYOUT, "index_k": index_k})[1]
    again = answers_of("tool-calls", 1, **{**LAYOUT, "index_k": index_k})[1]
    assert len(corrupted(first)) >= 5
    assert [a.generation.text for a in first] == [a.generation.text for a in again]


@pytest.mark.parametrize(
    ("scenario", "settings"),
    [
        pytest.param("tool-calls", {"fixes": ("agreed-layout",)}, id="fixed"),
        pytest.param("tool-calls", {"index_k": "bf16"}, id="bf16 has no scales to mistake"),
        pytest.param("short-context", {}, id="512 entries leave no choice"),
    ],
)
def test_a_layout_mismatch_does_no_harm_elsewhere(scenario: str, settings: dict[str, Any]) -> None:
    assert corrupted(answers_of(scenario, 2, **{**LAYOUT, **settings})[1]) == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_the_record_holds_apart_for_every_seed(seed: int) -> None:
    chosen = scripts("tool-calls", seed, 60)
    bad = corrupted(run(Pair(), chosen))
    assert 0.08 <= len(bad) / 360 <= 0.30
    for settings in ({"index_k": "fp8"}, {"hicache": False}, {"fixes": ("index-gate",)}):
        assert corrupted(run(Pair(**settings), chosen)) == []
    assert corrupted(run(Pair(), scripts("tool-calls", seed, 1))) == []
