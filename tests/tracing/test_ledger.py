"""What one rank's observations show: the first wrong hop, its consequences, and nothing unknown."""

from __future__ import annotations

import pytest
from page_ways import AGGREGATED_WAY, PREFILL_WAY, RIGHT, WRONG, observation, way

from dsv4doctor.probe_protocol import (
    BACKUP,
    HELD,
    HOST,
    HOST_LOAD,
    LOAD,
    PERTURBABLE,
    READ,
    SEND,
    STORE,
    Forgotten,
    Observation,
)
from dsv4doctor.tracing.change import Change
from dsv4doctor.tracing.ledger import Copies, Ledger, Outcome


def changes(*seen: Observation, ledger: Ledger | None = None) -> list[Change]:
    ledger = ledger or Ledger("rank", Copies())
    return [change for each in seen if (change := ledger.add(each)[1]) is not None]


def test_a_page_that_is_right_everywhere_shows_nothing() -> None:
    assert changes(*way(*AGGREGATED_WAY)) == []
    assert changes(*way(*PREFILL_WAY)) == []


@pytest.mark.parametrize("hop", [hop for hop in AGGREGATED_WAY if hop != STORE])
def test_one_wrong_hop_is_named_and_the_page_heals_behind_it(hop: str) -> None:
    found = changes(*way(*AGGREGATED_WAY, wrong={hop: WRONG}))
    assert [(change.hop, change.seen.hop, change.origin) for change in found] == [(hop, hop, None)]
    assert found[0].expected == RIGHT


@pytest.mark.parametrize(
    ("first", "further"),
    [
        (BACKUP, (HOST, HOST_LOAD, LOAD, READ)),
        (HOST, (HOST_LOAD, LOAD, READ)),
        (HOST_LOAD, (LOAD, READ)),
        (LOAD, (READ, HELD)),
    ],
)
def test_wrong_bytes_that_travel_are_one_change_with_consequences(
    first: str, further: tuple[str, ...]
) -> None:
    found = changes(*way(*AGGREGATED_WAY, wrong=dict.fromkeys((first, *further), WRONG)))
    assert [change.hop for change in found] == [first] * (1 + len(further))
    assert [change.origin is None for change in found] == [True] + [False] * len(further)


def test_a_read_ahead_of_its_load_is_its_own_change_whoever_saw_the_page_before() -> None:
    early = [
        *way(STORE, BACKUP, HOST, HOST_LOAD, LOAD),
        observation(SEND, 6, digest=WRONG, room=1),
        observation(READ, 7, digest=WRONG, ordered=False, distance_ms=-0.8),
        observation(READ, 8, digest=RIGHT, ordered=True, distance_ms=2.0),
    ]
    assert [(change.seen.seq, change.hop) for change in changes(*early)] == [(6, SEND), (7, READ)]


def test_sending_what_was_misread_is_the_reads_consequence() -> None:
    misread = [
        *way(STORE, BACKUP, HOST, HOST_LOAD, LOAD),
        observation(READ, 6, digest=WRONG, ordered=False),
        observation(SEND, 7, digest=WRONG, room=1),
    ]
    assert [change.hop for change in changes(*misread)] == [READ, READ]


def test_another_wrong_byte_is_another_change() -> None:
    other = "fefe" * 4
    found = changes(*way(*AGGREGATED_WAY, wrong={HOST: WRONG, LOAD: other, READ: other}))
    assert [change.hop for change in found] == [HOST, LOAD, LOAD]


def test_nothing_is_compared_with_what_is_not_known() -> None:
    ledger = Ledger("rank", Copies())
    assert ledger.add(observation(READ, 1, digest=WRONG))[0] is Outcome.UNKNOWN
    assert ledger.add(observation(LOAD, 2, digest=WRONG))[0] is Outcome.UNKNOWN
    # The load says what lies there from now on.
    assert ledger.add(observation(READ, 3, digest=WRONG))[0] is Outcome.RIGHT
    assert ledger.unknown == {READ: 1, LOAD: 1}
    assert ledger.compared == {READ: 1}


def test_a_page_rewritten_unseen_is_forgotten_and_others_are_not() -> None:
    ledger = Ledger("rank", Copies())
    ledger.add(observation(STORE, 1))
    ledger.add(observation(STORE, 2, page=4))
    ledger.forget(Forgotten(seq=3, time_ms=0, pool="index_k", page=3, reason="limit"))
    assert ledger.add(observation(READ, 4, digest=WRONG))[0] is Outcome.UNKNOWN
    assert ledger.add(observation(READ, 5, digest=WRONG, page=4))[0] is Outcome.WRONG


def test_after_a_gap_nothing_is_known() -> None:
    ledger = Ledger("rank", Copies())
    for each in way(STORE, BACKUP, HOST):
        ledger.add(each)
    ledger.forget(Forgotten(seq=4, time_ms=0, pool=None, page=None, reason="ring"))
    assert ledger.add(observation(READ, 5, digest=WRONG))[0] is Outcome.UNKNOWN
    assert ledger.add(observation(HOST_LOAD, 6, digest=WRONG))[0] is Outcome.UNKNOWN


def test_a_new_backup_voids_what_the_host_page_held() -> None:
    """Its host side may be missed: then the page is not known, rather than the old owner's."""
    ledger = Ledger("rank", Copies())
    for each in way(STORE, BACKUP, HOST):
        ledger.add(each)
    ledger.add(observation(BACKUP, 4, transfer=3))
    assert ledger.add(observation(HOST_LOAD, 5, digest=WRONG))[0] is Outcome.UNKNOWN


@pytest.mark.parametrize("hop", [hop for hop in PERTURBABLE if hop in AGGREGATED_WAY])
def test_a_flipped_byte_is_caught_where_it_was_flipped_and_nowhere_else(hop: str) -> None:
    ledger = Ledger("rank", Copies())
    outcomes = {
        each.hop: ledger.add(each, is_perturbed=each.hop == hop)[0]
        for each in way(*AGGREGATED_WAY, wrong={hop: WRONG})
    }
    assert [name for name, outcome in outcomes.items() if outcome is Outcome.WRONG] == [hop]


def test_a_flipped_byte_of_an_unknown_page_does_not_become_the_truth() -> None:
    ledger = Ledger("rank", Copies())
    assert ledger.add(observation(LOAD, 1, digest=WRONG), is_perturbed=True)[0] is Outcome.UNKNOWN
    assert ledger.add(observation(READ, 2))[0] is Outcome.UNKNOWN


def test_copies_that_never_end_do_not_pile_up() -> None:
    ledger = Ledger("rank", Copies(), _backups=Copies(10))
    for number in range(100):
        ledger.add(observation(BACKUP, number, transfer=number))
    assert len(ledger._backups._known) == 10


def test_a_host_page_that_is_given_to_another_is_known_no_longer() -> None:
    ledger = Ledger("rank", Copies())
    assert changes(*way(STORE, BACKUP, HOST), ledger=ledger) == []
    given = Forgotten(seq=5, time_ms=0, pool="index_k", page=None, reason="reused", host_page=9)
    ledger.forget(given)
    # Whoever was given it has written it: what is loaded now is no change.
    loaded = observation(HOST_LOAD, seq=6, digest=WRONG)
    assert ledger.add(loaded) == (Outcome.UNKNOWN, None)
    assert ledger.add(observation(READ, seq=7))[0] is Outcome.RIGHT, "device pages stay known"
