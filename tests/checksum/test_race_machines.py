"""The race: nothing stale behind the right gate, stale pages without it, wider windows for bf16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dsv4doctor.checksum.worker.race import Plan, judge, make_contents, race, sums
from dsv4doctor.checksum.worker.race_clock import ClockMachine
from dsv4doctor.checksum.worker.race_threads import ThreadMachine
from dsv4doctor.kernels.layouts import index_layout

SMALL = {"pages_per_request": 12, "layers": 6}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return race(ClockMachine(), ["fp8", "bf16", "fp4"], [1, 2, 4], seed=5)


def of(rows: list[dict[str, Any]], **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def test_nothing_is_stale_behind_the_layers_own_gate(rows: list[dict[str, Any]]):
    gated = of(rows, gate="own")
    assert len(gated) == 9
    assert all(row["stale"] == row["torn"] == 0 for row in gated)


@pytest.mark.parametrize("gate", ["none", "wrong-layer"])
def test_reads_without_the_right_gate_are_stale(rows: list[dict[str, Any]], gate: str):
    assert all(row["stale"] > 0 for row in of(rows, gate=gate))


def test_a_bf16_window_is_twice_an_fp8_window(rows: list[dict[str, Any]]):
    for depth in (1, 2, 4):
        window = {
            dtype: of(rows, dtype=dtype, queue_depth=depth, gate="none")[0]["window_us"]
            for dtype in ("fp8", "bf16", "fp4")
        }
        assert window["bf16"] / window["fp8"] == pytest.approx(256 / 132)
        assert window["fp4"] / window["fp8"] == pytest.approx(68 / 132)


def test_deeper_queues_and_wider_keys_are_stale_more_often(rows: list[dict[str, Any]]):
    share = {
        (row["dtype"], row["queue_depth"]): row["stale_share"] for row in of(rows, gate="none")
    }
    for dtype in ("fp8", "bf16", "fp4"):
        assert share[dtype, 1] <= share[dtype, 2] <= share[dtype, 4]
    assert share["fp4", 4] < share["fp8", 4] < share["bf16", 4]


def test_stale_pages_displace_what_the_indexer_selects(rows: list[dict[str, Any]]):
    overlaps = [row["top512_overlap"] for row in of(rows, gate="none", queue_depth=4)]
    assert all(overlap is not None and overlap < 0.6 for overlap in overlaps)


def test_the_clock_gives_the_same_answer_again():
    again = [race(ClockMachine(), ["bf16"], [2], 1, **SMALL) for _ in range(2)]
    assert again[0] == again[1]


def test_a_read_in_the_middle_of_a_copy_is_torn():
    """One page that takes 100 µs to copy, read 50 µs in: half of each tenant's bytes."""
    plan = Plan(
        layout=index_layout("fp8"), gate="wrong-layer", pages_per_request=1, layers=2,
        other_bytes=0, bandwidth_gb_per_s=8448 / 100e-6 / 1e9, layer_us=50,
    )  # fmt: skip
    contents = make_contents(plan, 3)
    row, reads = judge(ClockMachine(), plan, contents)
    assert (row["stale"], row["torn"]) == (1, 1)  # layer 0 unread yet; layer 1 half copied
    half = contents.old[1, 0].copy()
    half[:4224] = contents.new[1, 0, :4224]
    assert reads.sums[1, 0] == sums(plan.layout, half[None])[0]


def test_threads_read_stale_pages_without_the_gate_and_none_with_it():
    plan = Plan(layout=index_layout("bf16"), gate="none", queue_depth=8, **SMALL)
    contents = make_contents(plan, 2)
    row, _ = judge(ThreadMachine(), plan, contents)
    assert row["stale"] > 0
    gated = Plan(layout=index_layout("bf16"), gate="own", queue_depth=8, **SMALL)
    row, reads = judge(ThreadMachine(), gated, contents)
    assert row["stale"] == row["torn"] == 0
    assert (reads.sums == contents.new_sums).all()


@pytest.mark.parametrize("dtype", ["fp8", "bf16", "fp4"])
def test_stored_keys_decode_to_what_was_stored(dtype: str):
    from dsv4doctor.checksum.worker.keys import random_keys, store_keys
    from dsv4doctor.kernels.reference_scores import decode_keys

    layout = index_layout(dtype)
    keys = random_keys(128, np.random.default_rng(0))
    decoded, scale = decode_keys(layout, store_keys(layout, keys))
    found = (decoded * scale[..., None]).reshape(128, 128)
    worst = {"bf16": 2**-8, "fp8": 2**-4, "fp4": 0.25}[dtype]  # half a step of each format
    assert np.abs(found - keys).max() <= worst * np.abs(keys).max()
