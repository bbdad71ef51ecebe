"""Bytes that belong to request slots and not to tokens: deducted before the tokens are counted.

Source: `_get_c128_state_fixed_bytes`, `_get_c2_state_fixed_bytes`, `_fixed_swa_bytes`,
`_fixed_c4_state_bytes`, `_resolve_swa_cap_tokens` of `model_executor/pool_configurator.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.inputs import DEFAULT_EVICTION_INTERVAL, Geometry, Inputs
from dsv4doctor.sizing.layouts import unified_row_bytes

TAILS_PER_REQUEST = 4  # cached prefix tails that cap mode keeps addressable, by default
ENCODER_ROW_MARGIN = 16  # bytes beside a row in the request window: its tag and padding
COMPRESSED_WIDTHS = 3 * 16 * 8  # replay's compressor scratch, per slot and latent number


@dataclass(frozen=True, slots=True, kw_only=True)
class SwaPlan:
    """How the SWA pool is sized: by ratio (`cap_tokens` None) or by requests; replay's window."""

    cap_tokens: int | None
    prefix_tails: int
    window_bytes: int
    paged_draft_layers: int
    ring_draft_layers: int


def ceil_to(count: int, step: int) -> int:
    return -(-count // step) * step


def requests_per_worker(inputs: Inputs, accounting: Accounting) -> int | None:
    """The operator's max_running_requests on one attention-DP worker; None when none was given."""
    if inputs.max_running_requests is None:
        return None
    share = inputs.max_running_requests // inputs.attn_dp_size
    return max(1, share) if accounting.at_least_one_request else share


def estimated_requests(tokens: int, context_len: int) -> int:
    """What a server without max_running_requests assumes from its token capacity."""
    return max(min(int(tokens / context_len * 512), 4096), 2048)


def request_slots(inputs: Inputs, requests: int) -> int:
    """Rows of the request pool: one per request and one spare; decode adds its prealloc slots."""
    extra = (
        inputs.disaggregation_decode_extra_slots if inputs.disaggregation_mode == "decode" else 0
    )
    return requests + extra + 1


def state_rows(slots: int, ring: int, multiple: int) -> int:
    """Rows of a ring state pool of `slots` requests: one ring and one row more, rounded up."""
    return ceil_to(slots * ring + ring + 1, multiple)


def c128_state_bytes(geometry: Geometry, inputs: Inputs, requests: int) -> int:
    """The c128 state of every request slot, as deducted from 0.5.15 on."""
    layers = geometry.priced.count(128)
    slots = request_slots(inputs, requests)
    ring = geometry.rings[128]
    if geometry.online_width == 3:
        # Banks multiply whenever online c128 is asked for; without MTP there are none.
        rows = (slots + ring + 1) * (1 + inputs.draft_tokens)
    else:
        rows = state_rows(slots, ring, 128)
    return rows * geometry.online_width * geometry.head_dim * geometry.state_bytes * layers


def c2_state_bytes(geometry: Geometry, inputs: Inputs, requests: int) -> int:
    """The pending-pair state of V4.1's ratio-2 layers: fp32 (kv, score) by request slot."""
    rows = state_rows(request_slots(inputs, requests), geometry.rings[2], 2)
    return rows * 2 * geometry.head_dim * 4 * geometry.priced.count(2)


def unified_c4_state_bytes(geometry: Geometry, inputs: Inputs, requests: int) -> int:
    """c4 and indexer state of the unified pool, by request slot; 0 elsewhere."""
    if not geometry.unified:
        return 0
    rows = state_rows(request_slots(inputs, requests), geometry.rings[4], 4)
    width = 4 * (geometry.head_dim + geometry.index_head_dim) * geometry.state_bytes
    return rows * width * geometry.priced.count(4)


def swa_ring_tokens(inputs: Inputs, geometry: Geometry) -> int:
    """Rows of one request's SWA ring in the unified pool: the window and the drafts ahead of it."""
    return geometry.window + (inputs.draft_tokens - 1 if inputs.is_speculative else 0)


def unified_ring_bytes(
    geometry: Geometry, inputs: Inputs, accounting: Accounting, requests: int, inflation: float
) -> int:
    """The SWA rings of the unified pool, draft included; 0 elsewhere."""
    if not geometry.unified:
        return 0
    tokens = request_slots(inputs, requests) * swa_ring_tokens(inputs, geometry)
    target = tokens * geometry.row_bytes * geometry.priced.total
    if geometry.unified_fp8 and inputs.is_dspark and accounting.page_padding_priced:
        wide = unified_row_bytes(geometry.head_dim, inputs.model.qk_rope_head_dim, fp8=False)
        return target + tokens * wide
    return int(target * inflation)


def plan_swa(inputs: Inputs, geometry: Geometry, accounting: Accounting) -> SwaPlan:
    """Cap or ratio, prefix tails, and encoder replay's request window (0.5.21 and later)."""
    if not accounting.page_padding_priced:
        return SwaPlan(
            cap_tokens=None, prefix_tails=0, window_bytes=0, paged_draft_layers=0,
            ring_draft_layers=0,
        )  # fmt: skip
    draft = inputs.draft_layers if inputs.encoder_replay and inputs.is_dspark else 0
    ring = draft if accounting.draft_swa_ring and not inputs.is_hip else 0
    paged = draft - ring
    tails = _prefix_tails(inputs, geometry, accounting, paged)
    if inputs.encoder_replay and not paged:
        cap: int | None = 0
    else:
        cap = _cap_tokens(inputs, geometry, accounting, tails)
    return SwaPlan(
        cap_tokens=cap,
        prefix_tails=tails,
        window_bytes=_request_window_bytes(inputs, geometry, accounting, ring),
        paged_draft_layers=paged,
        ring_draft_layers=ring,
    )


def _prefix_tails(inputs: Inputs, geometry: Geometry, accounting: Accounting, paged: int) -> int:
    if inputs.swa_prefix_tails is not None:
        return inputs.swa_prefix_tails
    requests = requests_per_worker(inputs, accounting)
    if inputs.disable_radix_cache or requests is None:
        return 0
    tails = TAILS_PER_REQUEST * requests
    if accounting.replay_scales_tails and inputs.encoder_replay and paged:
        tails *= max(1, geometry.priced.total // paged)
    return tails


def _cap_tokens(
    inputs: Inputs, geometry: Geometry, accounting: Accounting, tails: int
) -> int | None:
    """SWA tokens reserved by requests; None keeps the ratio."""
    if inputs.swa_full_tokens_ratio is not None or geometry.unified:
        return None
    if requests_per_worker(inputs, accounting) is None:
        return None
    decode = inputs.disaggregation_mode == "decode"
    if not decode and (inputs.chunked_prefill_size or 0) <= 0:
        return None
    cap = _request_cap(inputs, geometry, accounting, decode=decode)
    return ceil_to(cap + tails * (geometry.window + geometry.page), geometry.page)


def _request_cap(
    inputs: Inputs, geometry: Geometry, accounting: Accounting, *, decode: bool
) -> int:
    """SWA slots the scheduler can hold live at max_running_requests."""
    drafts = inputs.draft_tokens or 1
    interval = max(
        1, int(inputs.env.get("SGLANG_SWA_EVICTION_INTERVAL", DEFAULT_EVICTION_INTERVAL))
    )
    per_request = geometry.window + interval * drafts + geometry.page
    per_request += _decode_allocation(inputs, geometry)
    requests = requests_per_worker(inputs, accounting) or 0
    if decode:
        spare = (geometry.window + geometry.page) * inputs.disaggregation_decode_extra_slots
        return per_request * requests + spare
    chunks = 1 if inputs.disable_overlap_schedule else 2
    return per_request * requests + chunks * (inputs.chunked_prefill_size or 0) + geometry.page


def _decode_allocation(inputs: Inputs, geometry: Geometry) -> int:
    if not inputs.is_speculative:
        return geometry.page
    steps = inputs.speculative_num_steps or 1
    topk = inputs.speculative_eagle_topk or 1
    drafts = inputs.draft_tokens or 1
    page = geometry.page
    if inputs.disable_overlap_schedule:
        per_branch = ceil_to(steps + page if topk > 1 else steps, page)
        return max(per_branch * topk, ceil_to(drafts, page))
    if topk == 1:
        return 2 * max(steps, drafts)
    pages = (page - 1 + steps + page - 1) // page
    return 2 * max(pages * page * topk, drafts)


def _request_window_bytes(
    inputs: Inputs, geometry: Geometry, accounting: Accounting, ring_layers: int
) -> int:
    """Encoder replay's per-request SWA window with its scratch, and DSpark's draft ring."""
    if not inputs.encoder_replay:
        return 0
    slots = (requests_per_worker(inputs, accounting) or 0) + 1
    drafts, page, row = inputs.draft_tokens, geometry.page, geometry.row_bytes
    capacity = ceil_to(geometry.window + drafts, page)
    longest = max(inputs.chunked_prefill_size or 0, slots * max(128, drafts))
    scratch = longest + slots * 128 + page
    return (
        (slots * capacity + page) * geometry.priced.total * (row + ENCODER_ROW_MARGIN)
        + 4 * scratch * (row + ENCODER_ROW_MARGIN)
        + slots * COMPRESSED_WIDTHS * geometry.head_dim
        + (slots * capacity + page) * ring_layers * row
    )


def sum_parts(parts: Mapping[str, float]) -> float:
    return sum(parts.values())
