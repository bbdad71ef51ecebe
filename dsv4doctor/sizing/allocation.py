"""What the pools really allocate: whole pages, dummy pages, padded rows, rounded state rings.

Source: `DeepSeekV4TokenToKVPool` and its sub-pools in `mem_cache/deepseek_v4_memory_pool.py`,
`CompressStatePool` in `mem_cache/deepseek_v4_compress_state.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.sizing import fixed
from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.inputs import Geometry, Inputs
from dsv4doctor.sizing.layouts import (
    LOW_RATIO_INDEX_PAGE,
    compressed_layout,
    unified_row_bytes,
)
from dsv4doctor.sizing.pools import Pools
from dsv4doctor.sizing.pricing import c4_state_width, low_ratio_index_bytes

# Rows a unified layer holds per c128 block of 128 full tokens, by the layer's ratio.
UNIFIED_ROWS_PER_BLOCK = {0: 0, 4: 32, 128: 1}
SM120_SWA_PAGE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedPool:
    """Geometry of one paged pool: `layers` tensors of `pages` pages."""

    pages: int
    page_bytes: int
    page_tokens: int
    layers: int

    @property
    def total_bytes(self) -> int:
        return self.pages * self.page_bytes * self.layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Bytes by pool of one worker, with the geometry that they come from."""

    allocated_bytes: dict[str, int]
    geometry: dict[str, PagedPool]
    state_rows: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.allocated_bytes.values())


def kv_pages(size: int, page: int, logical: int, accounting: Accounting) -> int:
    """Pages of a KV pool of `size` slots, a dummy page included (of logical tokens from 0.5.21)."""
    if accounting.logical_dummy_page:
        return -(-(size + logical) // page)
    return (size + page + 1) // page


def index_pages(size: int, page: int, logical: int, accounting: Accounting) -> int:
    """Pages of an index pool; its dummy page became logical one release after the KV pools'."""
    if accounting.index_logical_dummy_page:
        return -(-(size + logical) // page)
    return (size + page + 1) // page


def allocate(
    inputs: Inputs, geometry: Geometry, accounting: Accounting, pools: Pools, swa: fixed.SwaPlan
) -> Allocation:
    """The target worker's pools."""
    paged: dict[str, PagedPool] = {}
    flat: dict[str, int] = {}
    if inputs.encoder_replay:
        flat["request_window"] = _request_window(inputs, geometry, pools)
    elif geometry.unified:
        flat["unified"] = _unified(inputs, geometry, accounting, pools, geometry.stored.total)
    else:
        paged["swa"] = _swa_pool(inputs, geometry, accounting, pools.swa, geometry.stored.total)
    if not geometry.unified:
        paged |= _compressed_pools(geometry, accounting, pools)
    paged |= _index_pools(geometry, accounting, pools)
    rows, states = _states(inputs, geometry, accounting, pools)
    flat |= states
    allocated = {name: pool.total_bytes for name, pool in paged.items()} | flat
    return Allocation(allocated_bytes=allocated, geometry=paged, state_rows=rows)


def allocate_draft(
    inputs: Inputs, geometry: Geometry, accounting: Accounting, pools: Pools, swa: fixed.SwaPlan
) -> Allocation:
    """The draft worker's pools: SWA alone, as many tokens as the target's."""
    layers = inputs.draft_layers if inputs.is_speculative else 0
    if not layers:
        return Allocation(allocated_bytes={}, geometry={}, state_rows={})
    if geometry.unified:
        rows = _unified_ring_rows(inputs, geometry, pools) * layers
        fp8 = geometry.unified_fp8 and not inputs.is_dspark
        width = unified_row_bytes(geometry.head_dim, inputs.model.qk_rope_head_dim, fp8=fp8)
        return Allocation(allocated_bytes={"unified": rows * width}, geometry={}, state_rows={})
    tokens = pools.swa
    if swa.ring_draft_layers:
        slots = fixed.request_slots(inputs, pools.max_running_requests)
        tokens = slots * fixed.ceil_to(geometry.window + inputs.draft_tokens, geometry.page)
    pool = _swa_pool(inputs, geometry, accounting, tokens, layers)
    allocated = {"swa": pool.total_bytes}
    if not accounting.logical_dummy_page:
        # Up to 0.5.20 the draft builds its compressed pools, too, with no layer in them.
        allocated |= {"c4": 0, "c128": 0, "index_k": 0}
    return Allocation(allocated_bytes=allocated, geometry={"swa": pool}, state_rows={})


def _swa_pool(
    inputs: Inputs, geometry: Geometry, accounting: Accounting, size: int, layers: int
) -> PagedPool:
    page = geometry.page
    direct = inputs.platform == "cuda-sm120" and inputs.switch("SGLANG_OPT_SM120_DIRECT_SWA_KV")
    if accounting.sm120_swa_pages and direct:
        page = SM120_SWA_PAGE
    return PagedPool(
        pages=kv_pages(size, page, geometry.page, accounting),
        page_bytes=geometry.main_layout.page_bytes(page),
        page_tokens=page,
        layers=layers,
    )


def _compressed_pools(
    geometry: Geometry, accounting: Accounting, pools: Pools
) -> dict[str, PagedPool]:
    sizes = {4: pools.c4, 128: pools.c128, 1: pools.full, 2: pools.full // 2}
    found = {}
    for ratio, layers in geometry.stored.owners.items():
        layout = compressed_layout(geometry.main_layout, ratio, geometry.compressed_option)
        page = geometry.page // ratio
        found[f"c{ratio}"] = PagedPool(
            pages=kv_pages(sizes[ratio], page, geometry.page, accounting),
            page_bytes=layout.page_bytes(page),
            page_tokens=page,
            layers=layers,
        )
    return found


def _index_pools(geometry: Geometry, accounting: Accounting, pools: Pools) -> dict[str, PagedPool]:
    found = {}
    layers = geometry.stored.count(4)
    if layers:
        page = geometry.page // 4
        found["index_k"] = PagedPool(
            # The index follows the logical c4 space: HiSparse does not shrink it.
            pages=index_pages(pools.c128 * 32, page, geometry.page, accounting),
            page_bytes=page * geometry.index_stored,
            page_tokens=page,
            layers=layers,
        )
    for ratio in (1, 2):
        layers = geometry.stored.count(ratio)
        if layers:
            page = LOW_RATIO_INDEX_PAGE
            # Built without the model's page size, so its own page is the dummy page.
            size = (pools.full + geometry.page) // ratio
            found[f"index_k_r{ratio}"] = PagedPool(
                pages=index_pages(size, page, page, accounting),
                page_bytes=page * low_ratio_index_bytes(geometry),
                page_tokens=page,
                layers=layers,
            )
    return found


def _states(
    inputs: Inputs, geometry: Geometry, accounting: Accounting, pools: Pools
) -> tuple[dict[str, int], dict[str, int]]:
    """(rows, bytes) of the compress-state pools: `size + ring + 1` rows, rounded to the ratio."""
    rows: dict[str, int] = {}
    flat: dict[str, int] = {}
    stored, e = geometry.stored, geometry.state_bytes
    slots = fixed.request_slots(inputs, pools.max_running_requests)
    if stored.count(4):
        count = fixed.ceil_to(pools.c4_state + geometry.rings[4] + 1, 4)
        state, index_state = c4_state_width(geometry)
        rows["c4_state"] = rows["c4_indexer_state"] = count
        flat["c4_state"] = count * state * stored.count(4)
        flat["c4_indexer_state"] = count * index_state * stored.count(4)
    if stored.count(128):
        ring = geometry.rings[128]
        size = pools.c128_state
        if not accounting.c128_state_per_token:
            size = max(size, slots if geometry.online else slots * ring)
        if geometry.online:
            count, width = (size + ring + 1) * (1 + geometry.draft_banks), 3
        else:
            count, width = fixed.ceil_to(size + ring + 1, 128), 2
        rows["c128_state"] = count
        flat["c128_state"] = count * width * geometry.head_dim * e * stored.count(128)
    if stored.count(2):
        count = fixed.state_rows(slots, geometry.rings[2], 2)
        rows["c2_state"] = count
        flat["c2_state"] = count * 2 * geometry.head_dim * 4 * stored.count(2)
    return rows, flat


def _unified_ring_rows(inputs: Inputs, geometry: Geometry, pools: Pools) -> int:
    slots = fixed.request_slots(inputs, pools.max_running_requests)
    return slots * fixed.swa_ring_tokens(inputs, geometry)


def _unified(
    inputs: Inputs, geometry: Geometry, accounting: Accounting, pools: Pools, layers: int
) -> int:
    """The unified pool (HIP): every layer one tensor of SWA rings and compressed rows."""
    rows = layers * _unified_ring_rows(inputs, geometry, pools)
    for ratio, count in geometry.stored.owners.items():
        page_of_rows = geometry.page // ratio if accounting.unified_page_of_rows else 0
        rows += count * (pools.c128 * UNIFIED_ROWS_PER_BLOCK[ratio] + page_of_rows)
    fp8 = geometry.unified_fp8
    return rows * unified_row_bytes(geometry.head_dim, inputs.model.qk_rope_head_dim, fp8=fp8)


def _request_window(inputs: Inputs, geometry: Geometry, pools: Pools) -> int:
    """Encoder replay's window: pages and int64 tags of every layer, a workspace: an estimate.

    Source: `mem_cache/dsv41_request_window.py`, read and not executed.
    """
    page, layout = geometry.page, geometry.main_layout
    slots = fixed.request_slots(inputs, pools.max_running_requests)
    drafts = inputs.draft_tokens
    state_tokens = slots * fixed.ceil_to(geometry.window + drafts, page) + page
    longest = max(inputs.chunked_prefill_size or 0, (slots + 1) * (1 + drafts))
    work_tokens = fixed.ceil_to((slots + 1) * geometry.window + longest, page)
    pages = (state_tokens // page + 1) * geometry.stored.total + work_tokens // page + 1
    return pages * layout.page_bytes(page) + geometry.stored.total * state_tokens * 8
