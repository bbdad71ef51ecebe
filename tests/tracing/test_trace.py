"""All ranks joined: across PD, whatever order their drains come in, and what a loss does."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from page_ways import DECODE_WAY, PREFILL_WAY, RIGHT, ROOM, WRONG, observation, way

from dsv4doctor.probe_protocol import (
    ARRIVE,
    HELD,
    LOAD,
    READ,
    SEND,
    STORE,
    Forgotten,
    Observation,
    Perturbation,
)
from dsv4doctor.tracing.trace import Trace


def joined(prefill: list[Observation], decode: list[Observation]) -> Trace:
    trace = Trace(awaits_sends=True)
    trace.add("decode", decode)
    trace.add("prefill", prefill)
    trace.finish()
    return trace


def test_right_bytes_on_both_sides_show_nothing() -> None:
    trace = joined(list(way(*PREFILL_WAY)), list(way(*DECODE_WAY)))
    assert not trace.changes
    assert trace.compared[ARRIVE] == 1
    assert trace.pages_seen == 2


def test_an_early_send_is_named_at_the_send_and_the_decode_side_reads_its_consequence() -> None:
    decode = list(way(*DECODE_WAY, wrong=dict.fromkeys(DECODE_WAY, WRONG)))
    trace = joined(list(way(*PREFILL_WAY, wrong={SEND: WRONG})), decode)
    assert trace.by_hop == {SEND: 1}
    assert trace.consequences == 3
    assert trace.stale_reads == 1
    assert trace.first_change is not None
    assert trace.first_change.seen.hop == SEND


def test_bytes_that_differ_after_the_transfer_are_named_at_the_arrival() -> None:
    decode = list(way(*DECODE_WAY, wrong={ARRIVE: WRONG, READ: WRONG}))
    trace = joined(list(way(*PREFILL_WAY)), decode)
    assert trace.by_hop == {ARRIVE: 1}
    assert [change.hop for change in trace.changes] == [ARRIVE, ARRIVE]


def test_every_tensor_parallel_rank_has_the_page_from_the_same_send() -> None:
    trace = Trace(awaits_sends=True)
    trace.add("prefill", list(way(*PREFILL_WAY)))
    for rank in ("decode tp0", "decode tp1"):
        trace.add(rank, list(way(*DECODE_WAY)))
    trace.finish()
    assert trace.compared[ARRIVE] == 2


def test_an_arrival_without_a_send_is_told_in_the_end_and_is_not_compared() -> None:
    trace = joined([], list(way(*DECODE_WAY)))
    assert trace.unknown == {ARRIVE: 1}
    assert trace.compared == {READ: 1, HELD: 1}


def _many(hops: tuple[str, ...], wrong_at: set[tuple[int, str]]) -> list[Observation]:
    """Twenty requests' ways one after the other, on pages and rooms of their own."""
    found: list[Observation] = []
    for number in range(20):
        for each in way(*hops):
            digest = WRONG if (number, each.hop) in wrong_at else RIGHT
            room = ROOM + number if each.hop in (SEND, ARRIVE) else None
            one = replace(each, page=number, request=f"r{number}", room=room, digest=digest)
            found.append(
                replace(one, seq=len(found) + 1, host_page=each.host_page and 100 + number)
            )
    return found


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=30))
def test_how_drains_are_interleaved_changes_nothing(drains: list[tuple[bool, int]]) -> None:
    wrong = {(3, READ), (5, SEND), (5, ARRIVE), (9, LOAD), (11, ARRIVE)}
    rest = {"prefill": _many(PREFILL_WAY, wrong), "decode": _many(DECODE_WAY, wrong)}
    whole = joined(rest["prefill"], rest["decode"])
    trace = Trace(awaits_sends=True)
    for is_prefill, size in [*drains, (True, 10_000), (False, 10_000)]:
        rank = "prefill" if is_prefill else "decode"
        taken, rest[rank] = rest[rank][:size], rest[rank][size:]
        trace.add(rank, taken)
    trace.finish()
    assert trace.by_hop == whole.by_hop == {READ: 2, SEND: 1, LOAD: 1, ARRIVE: 1}
    assert trace.stale_requests == whole.stale_requests
    assert trace.consequences == whole.consequences


def test_lost_records_void_what_was_known() -> None:
    trace = Trace()
    trace.add("rank", list(way(STORE)))
    trace.lose("rank", 12)
    trace.add("rank", [observation(READ, 20, digest=WRONG)])
    assert not trace.changes
    assert trace.forgotten == {"lost": 12}


def test_unseen_pages_are_counted_by_reason() -> None:
    trace = Trace()
    limit = Forgotten(seq=2, time_ms=0, pool="index_k", page=3, reason="limit")
    trace.add("rank", [*way(STORE), limit, observation(READ, 3, digest=WRONG)])
    assert trace.forgotten == {"limit": 1}
    assert not trace.changes


def test_a_flip_is_told_apart_from_what_really_changed() -> None:
    flip = Perturbation(hop=READ, seq=2, pool="index_k", layer=2, page=3, host_page=None, offset=17)
    trace = Trace()
    trace.add("rank", [*way(STORE), observation(READ, 2, digest=WRONG)], [flip])
    assert [(each.hop, each.caught) for each in trace.flips] == [(READ, True)]
    assert not trace.changes
    assert trace.stale_reads == 0


def test_reads_are_told_by_the_size_of_their_load_and_near_misses_by_their_margin() -> None:
    seen = [
        observation(LOAD, 1),
        observation(LOAD, 2, page=4),
        observation(READ, 3, ordered=False, distance_ms=0.5),
        observation(READ, 4, ordered=False, distance_ms=0.25, page=4),
        observation(READ, 5, ordered=False, distance_ms=-0.25, page=4, digest=WRONG),
    ]
    trace = Trace()
    trace.add("rank", seen)
    assert trace.unordered_right == 2
    assert trace.least_margin_ms == 0.25
    assert {size: (one.reads, one.stale) for size, one in trace.by_load_pages.items()} == {
        2: (3, 1)
    }
