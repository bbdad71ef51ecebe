"""One rank's sizing in whole: what is believed, what is allocated, and where the two part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsv4doctor.sizing import checks, fixed
from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.allocation import Allocation, allocate, allocate_draft
from dsv4doctor.sizing.inputs import Geometry, Inputs, resolve_geometry
from dsv4doctor.sizing.pools import Pools, compute_pools, fixed_parts, low_ratio_padding
from dsv4doctor.sizing.pricing import Price, price_tokens
from dsv4doctor.sizing.refusal import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything computed for one rank. After a refusal `pools` and `allocation` are None."""

    inputs: Inputs
    accounting: Accounting
    geometry: Geometry
    price: Price
    swa: fixed.SwaPlan
    fixed_bytes: Mapping[str, float]
    pools: Pools | None
    allocation: Allocation | None
    draft: Allocation | None
    refusal: Refusal | None

    @property
    def allocated_total(self) -> int | None:
        return None if self.allocation is None else self.allocation.total

    @property
    def draft_total(self) -> int | None:
        return None if self.draft is None else self.draft.total

    @property
    def over_commit_bytes(self) -> int | None:
        """Allocated by both workers less the budget; negative is waste; None after a refusal."""
        if self.allocation is None or self.draft is None:
            return None
        return self.allocation.total + self.draft.total - self.inputs.available_bytes

    @property
    def index_dtype(self) -> str:
        """The stored format of index-K: V4.1's ratios 1 and 2 are fp4 whatever is asked for."""
        if not self.geometry.stored.count(4):
            return "fp4"
        if self.geometry.index_stored == self.geometry.index_head_dim * 2:
            return "bf16"
        if self.inputs.index_dtype == "fp4" and self.accounting.fp4_index_stored:
            return "fp4"
        return "fp8"


def make_plan(inputs: Inputs, accounting: Accounting) -> Plan:
    """The sizing of `inputs` under `accounting`; a memory refusal is part of it.

    Raises:
        Refusal: a combination that the release refuses whatever the memory.
    """
    checks.refuse(inputs, accounting)
    geometry = resolve_geometry(inputs, accounting)
    swa = fixed.plan_swa(inputs, geometry, accounting)
    price = price_tokens(
        inputs,
        geometry,
        accounting,
        capped=swa.cap_tokens is not None,
        paged_draft=swa.paged_draft_layers,
    )
    if price.per_full_token <= 0:
        raise Refusal("ZeroDivisionError", "no pool grows with the tokens of this model")
    parts = fixed_parts(inputs, geometry, accounting, price, swa)
    pools, stop = None, None
    try:
        pools = compute_pools(inputs, geometry, price, swa, parts)
    except Refusal as refused:
        stop = refused
    allocation = draft = None
    if pools is not None:
        allocation = allocate(inputs, geometry, accounting, pools, swa)
        draft = allocate_draft(inputs, geometry, accounting, pools, swa)
        if accounting.low_ratio_by_layout:
            parts = {**parts, "low_ratio_padding": low_ratio_padding(geometry, pools.full)}
    return Plan(
        inputs=inputs,
        accounting=accounting,
        geometry=geometry,
        price=price,
        swa=swa,
        fixed_bytes=parts,
        pools=pools,
        allocation=allocation,
        draft=draft,
        refusal=stop,
    )


def plan_figures(plan: Plan) -> dict[str, Any]:
    """The contract's figures of a plan, in its names; without verdict, causes and findings."""
    pools = plan.pools
    figures: dict[str, Any] = {
        "bytes_per_full_token": plan.price.per_full_token,
        "bytes_per_swa_token": plan.price.per_swa_token,
        "swa_cap_tokens": plan.swa.cap_tokens,
        "swa_prefix_tails": None,
        "request_window_bytes": None,
        "fixed_bytes": dict(plan.fixed_bytes),
    }
    if plan.accounting.page_padding_priced:
        figures["swa_prefix_tails"] = plan.swa.prefix_tails
        figures["request_window_bytes"] = plan.swa.window_bytes
    if pools is not None and plan.allocation is not None and plan.draft is not None:
        figures |= _pool_figures(pools) | _allocation_figures(plan.allocation)
        figures |= {
            "draft_allocated_bytes": plan.draft.allocated_bytes,
            "draft_allocated_total": plan.draft.total,
            "over_commit_bytes": plan.over_commit_bytes,
            "index_k": _index_figures(plan),
        }
    return figures


def _pool_figures(pools: Pools) -> dict[str, Any]:
    return {
        "max_running_requests": pools.max_running_requests,
        "pool_sizes": pools.as_sizes(),
        "c128_state_before_finalize": pools.c128_state_before_finalize,
        "estimated_bytes_at_full": pools.estimated_bytes,
    }


def _allocation_figures(allocation: Allocation) -> dict[str, Any]:
    return {
        "allocated_bytes": allocation.allocated_bytes,
        "geometry": {
            name: {
                "pages": pool.pages,
                "page_bytes": pool.page_bytes,
                "page_tokens": pool.page_tokens,
                "layers": pool.layers,
            }
            for name, pool in allocation.geometry.items()
        },
        "state_rows": allocation.state_rows,
        "allocated_total": allocation.total,
    }


def _index_figures(plan: Plan) -> dict[str, Any]:
    geometry = plan.geometry
    counted, stored = geometry.index_counted, geometry.index_stored
    if not geometry.stored.count(4):
        counted = stored = geometry.index_head_dim // 2 + geometry.index_head_dim // 32
    return {
        "dtype": plan.index_dtype,
        "bytes_per_token_counted": counted,
        "bytes_per_token_allocated": stored,
    }
