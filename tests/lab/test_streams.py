"""Streams keep CUDA's rules, and the engine's waits are where a release has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dsv4doctor.lab.clock import TransferThreadDead
from dsv4doctor.lab.latents import MAIN_PAGE_BYTES, encode_main_page, main_slots
from dsv4doctor.lab.layouts import INDEX_FORMATS, PAGE_SLOTS
from dsv4doctor.lab.ordering import EngineStreams, Forward
from dsv4doctor.lab.releases import ORDERED, Barrier, BarrierPosition, Orderings
from dsv4doctor.lab.streams import Timeline
from dsv4doctor.lab.tokens import encode


def test_a_stream_works_in_order_and_others_do_not_wait() -> None:
    clock, seen = Timeline(), []
    slow, fast = clock.stream("slow"), clock.stream("fast")
    for name in ("first", "second"):
        slow.run(name, lambda name=name: seen.append(name), 2.0)
    fast.run("other", lambda: seen.append("other"), 3.0)
    clock.work(3.5)
    assert seen == ["first", "other"]
    clock.rest()
    assert (seen, clock.now_ms) == (["first", "other", "second"], 4.0)


def test_a_wait_means_what_was_recorded_and_not_what_comes_later() -> None:
    clock, seen = Timeline(), []
    writer, reader = clock.stream("writer"), clock.stream("reader")
    writer.run("before", lambda: seen.append("before"), 1.0)
    event = writer.record()
    writer.run("after", lambda: seen.append("after"), 5.0)
    reader.wait(event)
    reader.run("read", lambda: seen.append("read"), 1.0)
    clock.rest()
    assert seen == ["before", "read", "after"]


def test_work_begins_no_earlier_than_it_is_given_out() -> None:
    clock = Timeline()
    clock.work(5.0)
    stream = clock.stream("idle")
    assert clock.has_reached(stream.record())
    assert stream.run("work", None, 1.0).at_ms == 6.0
    assert not clock.has_reached(stream.record())


def test_of_equals_what_was_queued_first_happens_first() -> None:
    clock, seen = Timeline(), []
    for name in ("a", "b", "c"):
        clock.stream(name).run(name, lambda name=name: seen.append(name), 1.0)
    clock.rest()
    assert seen == ["a", "b", "c"]


def test_a_dead_stream_holds_up_whoever_waits_for_it() -> None:
    clock, seen = Timeline(), []
    loads, forward = clock.stream("h2d"), clock.stream("forward")
    loads.run("load", lambda: seen.append("load"), 1.0)
    loads.drop()
    loads.run("another", lambda: seen.append("another"), 1.0)
    forward.wait(loads.record())
    forward.run("read", lambda: seen.append("read"))
    with pytest.raises(TransferThreadDead):
        clock.wait(forward.record())
    clock.work(100.0)
    clock.rest()
    assert seen == []


def at_ms_of_copies(orderings: Orderings) -> tuple[float, float, float]:
    """When the results are looked at while a second decode runs, and when a backup and a load that
    are queued then begin."""
    clock = Timeline()
    streams = EngineStreams(clock, orderings)
    streams.begin_step()
    with streams.forward_pass(Forward.GRAPH_DECODE) as forward:
        forward.run("step n", None, 10.0)
        results = forward.record()
    streams.begin_step()
    with streams.forward_pass(Forward.GRAPH_DECODE) as forward:
        forward.run("step n + 1", None, 10.0)
    clock.wait(results)
    streams.start_writing()
    backup = streams.backup.run("back up").at_ms
    streams.begin_step()
    streams.start_loading()
    load = streams.loads[0].run("load").at_ms
    assert backup is not None
    assert load is not None
    return clock.now_ms, backup, load


OPEN = replace(ORDERED, load_fence=False, write_fence=False)


@pytest.mark.parametrize(
    ("orderings", "expected"),
    [
        pytest.param(OPEN, (10.0, 10.0, 10.0), id="neither waits"),
        pytest.param(replace(OPEN, load_fence=True), (10.0, 10.0, 20.0), id="loads wait"),
        pytest.param(replace(OPEN, write_fence=True), (10.0, 20.0, 10.0), id="backups wait"),
        pytest.param(replace(OPEN, barrier=Barrier.WHOLE), (10.0, 20.0, 20.0), id="coarse barrier"),
        pytest.param(
            replace(
                OPEN, barrier=Barrier.WHOLE, barrier_position=BarrierPosition.TOP_OF_LOOP
            ),
            (10.0, 10.0, 20.0),
            id="a barrier at the top of the loop comes too late for backups",
        ),
        pytest.param(replace(OPEN, overlap=False), (10.0, 20.0, 20.0), id="one stream"),
    ],
)  # fmt: skip
def test_copies_begin_where_the_orderings_let_them(
    orderings: Orderings, expected: tuple[float, float, float]
) -> None:
    assert at_ms_of_copies(orderings) == expected


@pytest.mark.parametrize("name", INDEX_FORMATS)
def test_slots_of_an_index_page_cover_it_once(name: str) -> None:
    form = INDEX_FORMATS[name]
    touched = np.zeros(form.page_bytes, dtype=np.int64)
    for first, last in ((0, 5), (5, 6), (6, PAGE_SLOTS)):
        for part in form.slots(first, last):
            touched[part] += 1
    assert (touched == 1).all()
    keys = np.random.default_rng(0).standard_normal((2, PAGE_SLOTS, 128)).astype(np.float32)
    pages = form.encode(keys)
    page = pages[0].copy()
    for part in form.slots(10, 20):
        page[part] = pages[1][part]
    mixed = form.decode(page[None, :])[0]
    whole = form.decode(pages)
    assert (mixed[10:20] == whole[1, 10:20]).all()
    assert (mixed[:10] == whole[0, :10]).all()
    assert (mixed[20:] == whole[0, 20:]).all()


def test_slots_of_a_main_page_make_the_page_of_longer_text() -> None:
    tokens = encode("The clerk walked past the narrow window and wrote it down again. " * 30)[:256]
    page = np.zeros(MAIN_PAGE_BYTES, dtype=np.uint8)
    whole = encode_main_page(tokens, 3)
    for first, last in ((0, 7), (7, 40), (40, PAGE_SLOTS)):
        for part in main_slots(first, last):
            page[part] = whole[part]
    assert (page == whole).all()
