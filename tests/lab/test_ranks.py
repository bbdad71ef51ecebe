"""Two ranks and the batch that they do, or do not, agree on."""

from __future__ import annotations

from typing import Any

import pytest
from lab_sessions import engine_of, run, scripts

from dsv4doctor.lab.ranks import Demand, TensorRanks

FULL_BATCH = [Demand(taken=10, locked=2)] * 13
SESSIONS = 26
# Two batches of late turns do not fit beside each other.
TIGHT: dict[str, Any] = {"faults": ("overlap-desync",), "device_pages": 300}


def ranks(**settings: bool) -> TensorRanks:
    chosen = {"overlap": True, "await_results": False, **settings}
    return TensorRanks(**chosen, schedule_ms=0.1)


def test_the_slower_rank_counts_the_pages_of_the_batch_before() -> None:
    pair = ranks()
    assert pair.disagree(160, FULL_BATCH) is None, "nothing ran before"
    pair.ran(requests=13, pages=100)
    apart = pair.disagree(160, FULL_BATCH)
    assert apart is not None
    assert apart.requests == (13, 5)


@pytest.mark.parametrize(
    ("settings", "requests", "available"),
    [
        pytest.param({"overlap": False}, 13, 160, id="no overlap schedule"),
        pytest.param({"await_results": True}, 13, 160, id="results are waited for"),
        pytest.param({}, 10, 160, id="few results are copied in time"),
        pytest.param({}, 13, 300, id="pages to spare"),
    ],
)
def test_the_ranks_agree(settings: dict[str, bool], requests: int, available: int) -> None:
    pair = ranks(**settings)
    pair.ran(requests=requests, pages=100)
    assert pair.disagree(available, FULL_BATCH) is None


def test_both_have_seen_everything_at_rest() -> None:
    pair = ranks()
    pair.ran(requests=13, pages=100)
    pair.rest()
    assert pair.disagree(160, FULL_BATCH) is None


def test_a_desync_hangs_every_request_from_then_on() -> None:
    engine = engine_of(**TIGHT)
    answers = run(engine, scripts("tool-calls", 0, SESSIONS))
    assert engine.wedged is not None
    assert engine.wedged.after_rid == "", "no abort came before it"
    hung = [answer for answer in answers if answer.generation.hung]
    assert {answer.turn for answer in hung} >= {4, 5}
    assert all(a.generation.text == a.expected for a in answers if not a.generation.hung)


@pytest.mark.parametrize(
    ("sessions", "settings"),
    [
        pytest.param(SESSIONS, {"overlap_schedule": False}, id="no overlap schedule"),
        pytest.param(SESSIONS, {"fixes": ("awaited-results",)}, id="fixed"),
        pytest.param(12, {}, id="one batch at a time"),
    ],
)
def test_no_desync_elsewhere(sessions: int, settings: dict[str, Any]) -> None:
    engine = engine_of(**{**TIGHT, **settings})
    answers = run(engine, scripts("tool-calls", 0, sessions))
    assert engine.wedged is None
    assert not any(answer.generation.hung for answer in answers)
