"""Sessions, formats side by side, and the fraction that fits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders_sizing import plan

from dsv4doctor.sizing.capacity import (
    Fleet,
    available_from_fraction,
    budget_of_tokens,
    fraction_that_fits,
    index_formats,
    outside_bytes,
    reserve_bytes,
    sessions_that_fit,
)
from dsv4doctor.sizing.hardware import gpu_bytes
from dsv4doctor.sizing.inputs import Inputs
from dsv4doctor.sizing.plan import Plan, make_plan
from dsv4doctor.sizing.versions import VERSIONS
from dsv4doctor.units import GIB


def newest(inputs: Inputs) -> Plan:
    return make_plan(inputs, VERSIONS[-1])


def test_sessions_are_bound_by_the_scarcest_pool() -> None:
    sized = plan(max_running_requests=64)
    fleet = Fleet(gpus=16, tp_size=4, pp_size=1, attn_dp_size=1)
    short = sessions_that_fit(sized, fleet, 1000)
    long = sessions_that_fit(sized, fleet, 1 << 20)
    assert short is not None
    assert long is not None
    assert (short["replicas"], short["sessions"]) == (4, 256)
    assert short["limited_by"] == "max_running_requests"
    assert sized.pools is not None
    assert long["sessions"] == 4 * (sized.pools.full >> 20)
    assert long["limited_by"] == "full tokens"


def test_each_dp_worker_has_a_pool_of_its_own() -> None:
    sized = plan(max_running_requests=64, attn_dp_size=4)
    one = Fleet(gpus=8, tp_size=8, pp_size=1, attn_dp_size=1)
    four = replace(one, attn_dp_size=4)
    counts = [sessions_that_fit(sized, fleet, 4096) for fleet in (one, four)]
    assert [found["tokens"] for found in counts if found] == [
        sized.pools.full * pools for pools in (1, 4) if sized.pools
    ]


def test_three_formats_side_by_side() -> None:
    fp8, bf16, fp4 = index_formats(plan().inputs, newest)
    assert [row["bytes_per_token_counted"] for row in (fp8, bf16, fp4)] == [132, 132, 132]
    assert [row["bytes_per_token_allocated"] for row in (fp8, bf16, fp4)] == [132, 256, 68]
    priced = plan(index_dtype="bf16_priced").pools
    assert priced is not None
    assert bf16["tokens_if_priced_right"] == priced.full
    assert bf16["tokens_against_fp8"] == priced.full - fp8["tokens"]
    assert fp4["tokens_against_fp8"] > 0


def test_v41_has_one_index_format() -> None:
    assert index_formats(plan(model="V4.1-Flash").inputs, newest) == []


def test_the_fraction_leaves_room_and_the_next_does_not() -> None:
    memory, weights = gpu_bytes("H200"), 40 * GIB
    inputs = plan().inputs
    found = fraction_that_fits(inputs, newest, memory, weights)
    fraction = found["mem_fraction_static"]

    def spare(value: float) -> int:
        budget = available_from_fraction(memory, weights, value)
        sized = newest(replace(inputs, available_bytes=budget))
        over = max(sized.over_commit_bytes or 0, 0)
        return memory - weights - budget - over - outside_bytes(sized) - reserve_bytes(inputs)

    assert spare(fraction) >= 0 > spare(fraction + 0.001)
    assert found["figures_are"] == "estimate"


def test_no_fraction_fits_weights_as_large_as_the_gpu() -> None:
    memory = gpu_bytes("H100")
    found = fraction_that_fits(plan().inputs, newest, memory, memory)
    assert found["mem_fraction_static"] is None


@pytest.mark.parametrize("tokens", [100_096, 3_692_288])
def test_the_budget_of_a_server_that_holds_so_many_tokens(tokens: int) -> None:
    budget = budget_of_tokens(newest, plan().inputs, tokens)
    pools = newest(replace(plan().inputs, available_bytes=budget)).pools
    less = newest(replace(plan().inputs, available_bytes=budget - 2**20)).pools
    assert pools is not None
    assert pools.full >= tokens
    assert less is None or less.full < tokens
