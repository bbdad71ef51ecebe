"""When the detector counts as tried: caught once, missed never, unknown pages tried again."""

from __future__ import annotations

from dsv4doctor.probe_protocol import LOAD, READ
from dsv4doctor.tracing.ledger import Outcome
from dsv4doctor.tracing.selftest import MOST_TRIES, SelfTest
from dsv4doctor.tracing.trace import Flip


def flip(hop: str, seq: int, outcome: Outcome) -> Flip:
    return Flip(rank="rank", hop=hop, seq=seq, layer=0, page=1, host_page=None, outcome=outcome)


def test_a_caught_flip_passes_and_is_not_asked_for_again() -> None:
    tests = SelfTest({"rank": [READ, LOAD]}, seed=1)
    assert [hop for hop, _ in tests.due("rank")] == [READ, LOAD]
    assert tests.due("rank") == []
    tests.settle([flip(READ, 5, Outcome.WRONG)])
    assert tests.passed
    assert tests.hops == (READ,)
    assert tests.due("rank") == []
    assert tests.is_waiting("rank"), "the flip at the load has not come yet"


def test_a_flip_that_goes_by_unnoticed_fails_whatever_else_is_caught() -> None:
    tests = SelfTest({"rank": [READ, LOAD]}, seed=1)
    tests.due("rank")
    tests.settle([flip(LOAD, 4, Outcome.WRONG), flip(READ, 5, Outcome.RIGHT)])
    assert tests.failed
    assert not tests.passed


def test_a_flip_of_an_unknown_page_is_tried_again_but_not_for_ever() -> None:
    tests = SelfTest({"rank": [READ]}, seed=1)
    seeds = set()
    for number in range(MOST_TRIES + 5):
        seeds.update(seed for _, seed in tests.due("rank"))
        tests.settle([flip(READ, number, Outcome.UNKNOWN)])
    assert len(seeds) == MOST_TRIES
    assert not tests.passed
    assert not tests.failed
    assert tests.tests[0].outcome == "not compared"


def test_without_any_flip_nothing_is_passed() -> None:
    tests = SelfTest({"rank": [READ]}, seed=1)
    assert not tests.passed
    assert tests.hop is None
    assert tests.tests[0].outcome == "not reached"
