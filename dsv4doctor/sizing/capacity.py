"""What people ask of a sizing: sessions that fit, a fraction that fits, what a format costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dsv4doctor.sizing.fixed import ceil_to
from dsv4doctor.sizing.inputs import Inputs
from dsv4doctor.sizing.layouts import index_row_bytes
from dsv4doctor.sizing.plan import Plan
from dsv4doctor.units import GIB, MIB

FORMATS = ("fp8", "bf16", "fp4")
Planner = Callable[[Inputs], Plan]

# SGLang keeps about this much for activations and graphs when it chooses the fraction itself:
# 1.5 MiB a token of a prefill chunk, 2 MiB a captured decode batch row, half a GiB beside.
_CHUNK_MIB, _GRAPH_ROW_MIB, _RUNTIME_MIB = 1.5, 2, 512
_GRAPH_ROWS = 256
_FRACTION_STEP = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The GPUs that one asks about; `attn_dp_size` pools of their own in each replica."""

    gpus: int
    tp_size: int
    pp_size: int
    attn_dp_size: int

    @property
    def replicas(self) -> int:
        return self.gpus // (self.tp_size * self.pp_size)


def sessions_that_fit(plan: Plan, fleet: Fleet, session_tokens: int) -> dict[str, Any] | None:
    """Tokens and sessions of `session_tokens` on the fleet, and which pool is the limit."""
    pools, geometry = plan.pools, plan.geometry
    if pools is None:
        return None
    per_pool = {
        "full tokens": pools.full // ceil_to(session_tokens, geometry.page),
        "max_running_requests": pools.max_running_requests,
    }
    if pools.swa and not geometry.unified:
        # A running session keeps its window and the page it writes in SWA slots.
        per_pool["swa tokens"] = pools.swa // (
            ceil_to(geometry.window, geometry.page) + geometry.page
        )
    limit = min(per_pool, key=lambda name: per_pool[name])
    pools_of_fleet = fleet.replicas * fleet.attn_dp_size
    return {
        "gpus": fleet.gpus,
        "replicas": fleet.replicas,
        "kv_pools": pools_of_fleet,
        "tokens": pools.full * pools_of_fleet,
        "session_tokens": session_tokens,
        "sessions": per_pool[limit] * pools_of_fleet,
        "sessions_by_limit": {name: n * pools_of_fleet for name, n in per_pool.items()},
        "limited_by": limit,
    }


def index_formats(inputs: Inputs, planner: Planner) -> list[dict[str, Any]]:
    """fp8, bf16 and fp4 index-K side by side: counted, stored, tokens, over-commit, cost in tokens.

    `tokens_if_priced_right` is what the rank would hold if the stored bytes were counted. Empty for
    a model without ratio-4 layers: its index-K has one format.
    """
    if 4 not in inputs.model.layer_ratios:
        return []
    rows = []
    fp8 = planner(replace(inputs, index_dtype="fp8")).pools
    for dtype in FORMATS:
        plan = planner(replace(inputs, index_dtype=dtype))
        right = _tokens_priced_right(plan)
        width = plan.geometry.index_head_dim
        asked = index_row_bytes(dtype, width)
        rows.append(
            {
                "dtype": dtype,
                "stored_by_this_release": dtype != "bf16" and plan.geometry.index_stored == asked,
                "bytes_per_token_counted": plan.geometry.index_counted,
                "bytes_per_token_allocated": plan.geometry.index_stored,
                "bytes_per_full_token": plan.price.per_full_token,
                "tokens": None if plan.pools is None else plan.pools.full,
                "tokens_if_priced_right": right,
                "tokens_against_fp8": None if right is None or fp8 is None else right - fp8.full,
                "over_commit_bytes": plan.over_commit_bytes,
            }
        )
    return rows


def _tokens_priced_right(plan: Plan) -> int | None:
    """Tokens of the same budget with the stored index bytes counted, drafts' inflation included."""
    if plan.pools is None:
        return None
    geometry = plan.geometry
    more = (geometry.index_stored - geometry.index_counted) * geometry.stored.count(4) / 4
    price = plan.price.per_full_token
    right = price + more * plan.price.inflation
    left = plan.inputs.available_bytes - sum(
        size for name, size in plan.fixed_bytes.items() if name != "low_ratio_padding"
    )
    if not more:
        return plan.pools.full
    return int(left / right) // geometry.page * geometry.page


def reserve_bytes(inputs: Inputs) -> int:
    """Bytes outside the pools that a boot of this shape is likely to need: an estimate."""
    chunk = max(inputs.chunked_prefill_size or 0, 2048)
    mib = _RUNTIME_MIB + _CHUNK_MIB * chunk + _GRAPH_ROW_MIB * _GRAPH_ROWS
    return int(mib * MIB)


def available_from_fraction(gpu_memory: int, weight_bytes: int, fraction: float) -> int:
    """The pools' budget: `1 - fraction` of the GPU is kept back once the weights are loaded."""
    return max(int(gpu_memory * fraction) - weight_bytes, 0)


def outside_bytes(plan: Plan) -> int:
    """GPU memory beside the budget: the request table (int32), the full-to-SWA map (int64)."""
    if plan.pools is None:
        return 0
    inputs, pools = plan.inputs, plan.pools
    rows = pools.max_running_requests + 1
    table = rows * (inputs.context_len + 4 + inputs.draft_tokens) * 4
    return table + 8 * (pools.full + inputs.page_size + 1)


def fraction_that_fits(
    inputs: Inputs, planner: Planner, gpu_memory: int, weight_bytes: int
) -> dict[str, Any]:
    """The largest `--mem-fraction-static` whose pools and their surroundings fit: an estimate."""
    reserve = reserve_bytes(inputs)

    def spare(fraction: float) -> tuple[int, Plan]:
        budget = available_from_fraction(gpu_memory, weight_bytes, fraction)
        plan = planner(replace(inputs, available_bytes=budget))
        used = plan.inputs.available_bytes + max(plan.over_commit_bytes or 0, 0)
        return gpu_memory - weight_bytes - used - outside_bytes(plan) - reserve, plan

    low, high = math.ceil(weight_bytes / gpu_memory / _FRACTION_STEP), int(0.99 / _FRACTION_STEP)
    best: tuple[float, Plan] | None = None
    while low <= high:
        middle = (low + high) // 2
        left, plan = spare(middle * _FRACTION_STEP)
        if left >= 0:
            low = middle + 1
            if plan.pools is not None:
                best = (round(middle * _FRACTION_STEP, 3), plan)
        else:
            high = middle - 1
    result: dict[str, Any] = {
        "figures_are": "estimate",
        "reserve_bytes": reserve,
        "weight_bytes": weight_bytes,
        "gpu_memory_bytes": gpu_memory,
        "mem_fraction_static": None,
    }
    if best is not None and best[1].pools is not None:
        result |= {
            "mem_fraction_static": best[0],
            "available_bytes": best[1].inputs.available_bytes,
            "tokens": best[1].pools.full,
            "outside_bytes": outside_bytes(best[1]),
        }
    return result


def budget_of_tokens(plan_of: Planner, inputs: Inputs, tokens: int) -> int:
    """The least budget, to a MiB, that gives `tokens` full tokens: what such a server had."""
    low, high = 0, 4096 * GIB // MIB
    while low < high:
        middle = (low + high) // 2
        pools = plan_of(replace(inputs, available_bytes=middle * MIB)).pools
        if pools is not None and pools.full >= tokens:
            high = middle
        else:
            low = middle + 1
    return low * MIB
