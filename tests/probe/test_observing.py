"""Which pages are observed, within which bounds, and in what words it is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import streams
import torch
from builders_probe import armed, make_batch, make_probe, records, step

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.kernels.layouts import index_layout
from dsv4doctor.kernels.reference import digest_pages
from dsv4doctor.probe.budget import Budget
from dsv4doctor.probe.ring import Ring
from dsv4doctor.probe_protocol import (
    Forgotten,
    Observation,
    ProtocolError,
    parse_drained,
    parse_record,
    parse_status,
)

PROGRAMS = Path(__file__).with_name("layers_programs.py")


def seen(probe: Any, hop: str) -> list[Observation]:
    found = [one for one in records(probe) if isinstance(one, Observation)]
    return [one for one in found if one.hop == hop]


def test_only_full_pages_are_digested_and_page_zero_never() -> None:
    probe, _ = make_probe()
    steps = armed(probe)
    step(steps, make_batch(3 * 256 + 255, first_page=0))
    found = seen(probe, protocol.STORE)
    assert {one.page for one in found} == {1, 2}
    assert {one.layer for one in found} == {1, 3}
    assert {(one.page, one.index) for one in found} == {(1, 1), (2, 2)}


def test_a_chunked_prefill_tells_each_page_once() -> None:
    probe, _ = make_probe()
    steps = armed(probe)
    for before, after in ((0, 300), (300, 700), (700, 1024)):
        step(steps, make_batch(after, prefix=before))
    assert [one.index for one in seen(probe, protocol.STORE) if one.layer == 1] == [0, 1, 2, 3]


def test_digests_do_not_depend_on_the_page_or_its_neighbours() -> None:
    probe, pool = make_probe()
    for buffer in pool.c4_indexer_kv_pool.index_k_with_scale_buffer:
        buffer[5] = buffer[2]
    steps = armed(probe)
    step(steps, make_batch(6 * 256))
    by_page = {(one.page, one.layer): one.digest for one in seen(probe, protocol.STORE)}
    assert by_page[5, 1] == by_page[2, 1]
    assert len({digest for (_, layer), digest in by_page.items() if layer == 1}) == 5
    assert by_page[2, 1] != by_page[2, 3]


def test_the_bound_on_bytes_is_kept_and_what_was_left_out_is_named() -> None:
    probe, _ = make_probe()
    steps = armed(probe, max_bytes_per_step=3 * 2 * 8448)
    step(steps, make_batch(3 * 256))
    step(steps, make_batch(4 * 256, name="more", first_page=4))
    found = records(probe)
    assert {one.page for one in found if isinstance(one, Observation)} == {1, 2, 3, 4, 5, 6}
    (forgotten,) = [one for one in found if isinstance(one, Forgotten)]
    assert (forgotten.page, forgotten.reason) == (7, "limit")
    assert probe.observer.skipped == {"limit": 1}
    assert probe.observer.budget.bytes == 2 * 3 * 2 * 8448


def test_the_bound_on_time_is_kept() -> None:
    now = [0.0]
    budget = Budget(lambda: now[0])
    budget.begin(1 << 30, 0.01)
    spent = 0.0
    for _ in range(1000):
        now[0] += 0.010
        budget.next_step()
        if budget.left_bytes:
            with budget.timed():
                now[0] += 0.005
                spent += 0.005
    assert spent <= 0.01 * now[0] + 0.020 + 0.005
    assert budget.hook_ms == pytest.approx(spent * 1e3)


def test_a_prefix_is_read_in_turns_restored_pages_first() -> None:
    probe, pool = make_probe()
    steps = armed(probe, max_bytes_per_step=4 * 2 * 8448)
    batch = make_batch(9 * 256, prefix=8 * 256)
    batch.reqs[0].host_hit_length = 256
    counted: list[set[int | None]] = []
    for _ in range(2):
        token = steps.enter_step(SimpleNamespace(forward_ct=0), batch)
        for layer in (1, 3):
            entered = steps.enter_getter(pool, layer)
            steps.leave_index_read(entered, None, pool, layer)
        steps.leave_step(token, None, SimpleNamespace(), batch)
        counted.append({one.page for one in seen(probe, protocol.READ)})
    first, both = counted
    assert len(first) == 2
    assert 8 in first
    assert len(both) == 3
    # No load of this rank brought them.
    assert {one.ordered for one in seen(probe, protocol.READ)} == {None}


def test_what_the_compressor_asks_for_is_no_read() -> None:
    probe, pool = make_probe()
    steps = armed(probe)
    batch = make_batch(512, prefix=256)
    token = steps.enter_step(SimpleNamespace(forward_ct=0), batch)
    writing = steps.enter_write()
    entered = steps.enter_getter(pool, 1)
    steps.leave_index_read(entered, None, pool, 1)
    steps.leave_write(writing, None)
    steps.leave_step(token, None, SimpleNamespace(), batch)
    assert seen(probe, protocol.READ) == []
    assert probe.observer.skipped == {"no read ran": 1}


def test_under_overlap_the_store_is_digested_behind_the_forward() -> None:
    """The forward's writes are still queued when `run_batch` returns: the digest comes after."""
    probe, pool = make_probe(submit=streams.submit)
    steps = armed(probe)
    forward = streams.Stream()
    scheduler = SimpleNamespace(forward_ct=0, enable_overlap=True, forward_stream=forward)
    batch, buffer = make_batch(256), pool.c4_indexer_kv_pool.index_k_with_scale_buffer[0]
    before = buffer[1].clone()
    token = steps.enter_step(scheduler, batch)
    with forward:
        streams.submit(lambda: buffer[1].fill_(7))
    steps.leave_step(token, None, scheduler, batch)
    assert records(probe) == [], "nothing has run yet"
    assert torch.equal(buffer[1], before)
    forward.synchronize()
    (found,) = [one for one in seen(probe, protocol.STORE) if one.layer == 1]
    layout = index_layout("fp8")
    expected = digest_pages(layout, buffer[1].reshape(1, -1).numpy())
    assert found.digest == f"{int(expected[0]):016x}"


def test_arming_again_begins_anew_and_numbers_go_on() -> None:
    probe, _ = make_probe()
    steps = armed(probe)
    step(steps, make_batch(512))
    last = records(probe)[-1].seq
    step(steps, make_batch(256, name="undrained"))
    steps = armed(probe)
    step(steps, make_batch(256, name="new"))
    found = records(probe)
    assert {one.request for one in found if isinstance(one, Observation)} == {"new"}
    assert min(one.seq for one in found) > last


def test_the_ring_reserves_in_one_piece_and_in_order() -> None:
    device = SimpleNamespace(new_words=lambda count: (torch.zeros(count), torch.zeros(count)))
    ring = Ring(device, 10)  # type: ignore[arg-type]
    assert [ring.reserve(4), ring.reserve(4), ring.reserve(4)][2] is None
    ring.release()
    wrapped = ring.reserve(3)
    assert wrapped is not None
    assert wrapped.start == 0
    assert ring.reserve(1) is None, "its end would touch the oldest, which is still in use"
    ring.release()
    assert ring.reserve(6) is not None
    ring.release()
    ring.release()
    assert ring.used == 0
    assert ring.reserve(10) is not None
    assert ring.reserve(11) is None


def test_status_and_records_parse_as_the_vocabulary_says() -> None:
    probe, _ = make_probe()
    steps = armed(probe)
    step(steps, make_batch(512))
    records(probe)
    status = parse_status(json.loads(json.dumps(probe.status())))
    assert status.counts == {"store": 2}
    assert [pool.pool for pool in status.pools] == ["index_k", "c4", "c128"]
    answer = probe.answer(protocol.drain(0, limit=1))
    drained = parse_drained(json.loads(json.dumps(answer)))
    assert (len(drained.observations), drained.left, drained.lost) == (2, 1, 0)
    rest = parse_drained(probe.answer(protocol.drain(drained.next_after)))
    assert {one.page for one in rest.observations} == {2}


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"n": 1, "hop": "sideways"}, "no hop 'sideways'"),
        ({"n": 2, "hop": "load", "t": 0, "pool": "index_k", "layers": [1], "digests": []}, "0 dig"),
        ({"n": 3, "hop": "load", "t": 0, "pool": "c4", "layers": [1], "digests": ["f"]}, "16 hex"),
        ({"n": 4, "hop": "unseen", "t": 0}, "record 4: KeyError"),
        ("x", "record is no object"),
    ],
)
def test_what_is_no_record_is_named(record: Any, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        parse_record(record)


def test_kernels_give_the_references_digests() -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS), "interpret"],
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == {
        "fp8": True, "fp4-rocm": True, "c128": True, "page_first": True, "flipped": [True, False],
        "put back": True, "anywhere": True, "confined": [3, 0, 0, 0, 0, 1],
    }  # fmt: skip


@pytest.mark.parametrize(
    "target", [("cuda", "90"), pytest.param(("hip", "gfx942"), marks=pytest.mark.soak)]
)
def test_kernels_compile_without_spills(target: tuple[str, str]) -> None:
    # The kernels' own tests set the interpreter for every later test of their process.
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, str(PROGRAMS), "compile", *target],
        capture_output=True, text=True, timeout=240, check=True, env=environment,
    )  # fmt: skip
    for name, code in json.loads(done.stdout).items():
        assert (code["spills"], code["stack_bytes"]) == (0, 0), name
        assert name in ("flip_kernel", "confine_kernel") or code["wide_loads"] >= 7, name
