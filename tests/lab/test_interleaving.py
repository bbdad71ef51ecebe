"""The search over interleavings: it finds each race from the mechanism, and none once all is
ordered."""

from __future__ import annotations

from dataclasses import fields, replace
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4doctor.errors import DoctorError
from dsv4doctor.lab.interleaving import Memory, Program, Race, Recording, run_order, search
from dsv4doctor.lab.races import RACES, race_named
from dsv4doctor.lab.releases import (
    ORDERED,
    RELEASES,
    Barrier,
    BarrierPosition,
    Orderings,
    release_named,
)

# race -> the releases that it is open in, by their last number
OPEN = {
    "load-fence": {12, 14, 15, 16, 17, 18},
    "write-fence": set(range(12, 23)),
    "early-send-of-loads": set(range(15, 23)),
    "early-send-of-chunk": {15},
    "graph-prefill": set(range(12, 23)),
}
# What one stream for everything closes: transfer workers and replayed graphs are on none.
CLOSED_BY_OVERLAP_OFF = {"load-fence", "write-fence", "early-send-of-chunk"}
SWITCHES = [field.name for field in fields(Orderings) if field.type == "bool"]


def found(orderings: Orderings) -> set[str]:
    return {race.name for race in RACES if search(race, orderings).violation is not None}


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_each_release_has_the_races_that_its_source_leaves_open(release: object) -> None:
    version = str(getattr(release, "version", ""))
    patch = int(version.rsplit(".", 1)[1])
    expected = {race for race, patches in OPEN.items() if patch in patches}
    orderings = release_named(version).orderings
    assert found(orderings) == expected
    assert found(replace(orderings, overlap=False)) == expected - CLOSED_BY_OVERLAP_OFF


def test_the_table_names_every_race() -> None:
    assert set(OPEN) == {race.name for race in RACES}


def test_the_coarse_barrier_closes_both_fences_from_0_5_16_on() -> None:
    for version in ("0.5.16", "0.5.18", "0.5.22"):
        orderings = replace(release_named(version).orderings, barrier=Barrier.WHOLE)
        assert found(orderings).isdisjoint({"load-fence", "write-fence"})
    # At the top of the loop it comes too late for backups.
    early = replace(release_named("0.5.15").orderings, barrier=Barrier.WHOLE)
    assert "write-fence" in found(early)
    assert "load-fence" not in found(early)


_ORDERINGS = st.builds(
    Orderings,
    barrier=st.sampled_from(Barrier),
    barrier_position=st.sampled_from(BarrierPosition),
    **{name: st.booleans() for name in SWITCHES},
)


@settings(max_examples=150, deadline=None)
@given(orderings=_ORDERINGS)
def test_every_fence_and_gate_closes_its_race_whatever_else_is_open(orderings: Orderings) -> None:
    races = found(orderings)
    assert not (orderings.load_fence and "load-fence" in races)
    assert not (orderings.write_fence and "write-fence" in races)
    assert not (orderings.early_send_blocked_by_load and "early-send-of-loads" in races)
    assert not (orderings.early_send_waits and "early-send-of-chunk" in races)
    assert not (orderings.prefill_graph_waits and "graph-prefill" in races)


@settings(max_examples=60, deadline=None)
@given(
    barrier=st.sampled_from(Barrier),
    position=st.sampled_from(BarrierPosition),
    overlap=st.booleans(),
    early_send=st.booleans(),
)
def test_nothing_is_found_once_all_fences_and_gates_are_on(
    barrier: Barrier, position: BarrierPosition, overlap: bool, early_send: bool
) -> None:
    orderings = replace(
        ORDERED,
        barrier=barrier,
        barrier_position=position,
        overlap=overlap,
        early_send=early_send,
    )
    assert found(orderings) == set()


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.name)
def test_an_order_that_failed_fails_again_and_is_impossible_once_closed(race: Race) -> None:
    newest_open = max(OPEN[race.name])
    orderings = release_named(f"0.5.{newest_open}").orderings
    result = search(race, orderings)
    assert result.interleavings > 1
    assert run_order(race, orderings, result.order) == result.violation
    with pytest.raises(DoctorError, match="comes behind"):
        run_order(race, ORDERED, result.order)


def test_an_order_of_unknown_steps_is_refused() -> None:
    with pytest.raises(DoctorError, match="no step"):
        run_order(race_named("load-fence"), ORDERED, ["h2d: nothing"])


def test_all_orders_of_two_streams_are_counted() -> None:
    def build(_: Orderings) -> Program:
        clock = Recording()
        memory = Memory({"page": b""})
        for stream, steps in ((clock.stream("a"), 4), (clock.stream("b"), 6)):
            for step in range(steps):
                stream.run(str(step), memory.put("page", b""))
        return Program(name="two streams", timeline=clock, memory=memory)

    race = Race(name="two streams", summary="", build=build)
    assert search(race, ORDERED).interleavings == comb(10, 4)


def test_the_search_notices_one_wrong_byte() -> None:
    def build(_: Orderings) -> Program:
        clock = Recording()
        memory = Memory({"page": b"right bytes"})
        writer, reader = clock.stream("writer"), clock.stream("reader")
        writer.run("flip", memory.put("page", b"right bytez"))
        reader.run("read", memory.read("page", b"right bytes", "reader"))
        return Program(name="flip", timeline=clock, memory=memory)

    result = search(Race(name="flip", summary="", build=build), ORDERED)
    assert result.violation is not None
    assert result.order == ("writer: flip", "reader: read")
