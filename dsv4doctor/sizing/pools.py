"""How many tokens each pool gets out of the available bytes, as a release computes it.

Source: `calculate_pool_sizes`, `_compute_dsv4_sizes`, `finalize_with_max_running_requests` of
`model_executor/pool_configurator.py`; `_resolve_max_num_reqs` of the model runner.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsv4doctor.sizing import fixed, refusal
from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.inputs import Geometry, Inputs
from dsv4doctor.sizing.layouts import LOW_RATIO_INDEX_PAGE
from dsv4doctor.sizing.pricing import Price, low_ratio_index_bytes, padded_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Sizes in own tokens; `max_running_requests` per worker, after the release's caps."""

    full: int
    swa: int
    c4: int
    c128: int
    c4_state: int
    c128_state: int
    c128_state_before_finalize: int
    max_running_requests: int
    estimated_bytes: float  # what the configurator believes all of it costs

    def as_sizes(self) -> dict[str, int]:
        return {
            "full": self.full,
            "swa": self.swa,
            "c4": self.c4,
            "c128": self.c128,
            "c4_state": self.c4_state,
            "c128_state": self.c128_state,
        }


def requests_for_fixed(inputs: Inputs, accounting: Accounting, price: Price) -> int:
    """Requests per worker that the deductions are made for; from the bytes when not given."""
    given = fixed.requests_per_worker(inputs, accounting)
    if given is not None:
        return given
    tokens = int(inputs.available_bytes / price.per_full_token)
    return min(fixed.estimated_requests(tokens, inputs.context_len), tokens // 2)


def fixed_parts(
    inputs: Inputs,
    geometry: Geometry,
    accounting: Accounting,
    price: Price,
    swa: fixed.SwaPlan,
) -> dict[str, float]:
    """The deductions by name; empty up to 0.5.14."""
    if accounting.c128_state_per_token:
        return {}
    requests = requests_for_fixed(inputs, accounting, price)
    parts: dict[str, float] = {"c128_state": fixed.c128_state_bytes(geometry, inputs, requests)}
    if accounting.unified_priced:
        parts["swa_ring"] = fixed.unified_ring_bytes(
            geometry, inputs, accounting, requests, price.inflation
        )
        parts["c4_state"] = fixed.unified_c4_state_bytes(geometry, inputs, requests)
    if accounting.page_padding_priced:
        paged = 0.0 if swa.cap_tokens is None else swa.cap_tokens * (price.per_swa_token or 0)
        parts["c2_state"] = fixed.c2_state_bytes(geometry, inputs, requests)
        parts["swa_fixed"] = swa.window_bytes + paged
    return parts


def fit_tokens(
    inputs: Inputs,
    geometry: Geometry,
    accounting: Accounting,
    price: Price,
    deducted: float,
) -> int:
    """Full tokens that the release takes from the bytes left, whole pages where it rounds here."""
    left = max(inputs.available_bytes - deducted, 0)
    full = int(left / price.per_full_token)
    if accounting.low_ratio_by_layout:
        page = geometry.page
        full = full // page * page
        while full > 0 and (full * price.per_full_token + low_ratio_padding(geometry, full) > left):
            full -= page
    return full


def low_ratio_padding(geometry: Geometry, full: int) -> float:
    """Reserved pages of ratios 1 and 2 beyond their price by token (0.5.23)."""
    if geometry.unified or geometry.uniform_fp8:
        return 0
    total: float = 0
    for ratio in (1, 2):
        layers = geometry.priced.count(ratio)
        if not layers:
            continue
        rows = geometry.page * padded_row(geometry, ratio)
        logical = (full + geometry.page) // ratio
        slots = fixed.ceil_to(logical + LOW_RATIO_INDEX_PAGE, LOW_RATIO_INDEX_PAGE)
        index = (slots - full // ratio) * low_ratio_index_bytes(geometry)
        total += (rows + index) * layers
    return total


def compute_pools(
    inputs: Inputs,
    geometry: Geometry,
    price: Price,
    swa: fixed.SwaPlan,
    parts: Mapping[str, float],
) -> Pools:
    """The pool sizes in tokens, rounded as the release rounds them.

    Raises:
        Refusal: what the release itself stops with.
    """
    accounting = geometry.accounting
    deducted = fixed.sum_parts(parts)
    full = fit_tokens(inputs, geometry, accounting, price, deducted)
    if full <= 0 and swa.cap_tokens is not None:
        raise refusal.cap_too_big(swa.cap_tokens, parts["swa_fixed"], inputs.available_bytes)
    if inputs.max_total_tokens is not None:
        full = min(full, inputs.max_total_tokens)
    page = geometry.page
    full = full // page * page
    swa_tokens = _swa_tokens(inputs, geometry, swa, full)
    by_ratio = swa.cap_tokens is None and not geometry.unified
    if accounting.swa_floor and by_ratio and geometry.window + page >= swa_tokens:
        raise refusal.swa_floor(swa_tokens, geometry.window, page)
    if full <= 0:
        raise refusal.not_enough_memory()
    requests = _running_requests(inputs, accounting, full)
    c4_state, c128_state = _state_sizes(geometry, accounting, swa_tokens)
    before = c128_state
    slots = fixed.request_slots(inputs, requests)
    if not accounting.c128_state_per_token:
        c128_state = slots if geometry.online_width == 3 else slots * _c128_ring(geometry)
    if geometry.unified and accounting.unified_priced and geometry.priced.count(4):
        c4_state = slots * geometry.rings[4]
    padding = low_ratio_padding(geometry, full) if accounting.low_ratio_by_layout else 0
    return Pools(
        full=full,
        swa=swa_tokens,
        c4=full // (4 * geometry.shrink),
        c128=full // 128,
        c4_state=c4_state,
        c128_state=c128_state,
        c128_state_before_finalize=before,
        max_running_requests=requests,
        estimated_bytes=full * price.per_full_token + deducted + padding,
    )


def _c128_ring(geometry: Geometry) -> int:
    return geometry.rings[128] if geometry.priced.count(128) else 0


def _swa_tokens(inputs: Inputs, geometry: Geometry, swa: fixed.SwaPlan, full: int) -> int:
    if swa.cap_tokens is not None:
        return swa.cap_tokens
    ratio = geometry.swa_ratio
    if inputs.encoder_replay and not swa.paged_draft_layers:
        ratio = 0.0
    return int(full * ratio) // geometry.page * geometry.page


def _state_sizes(geometry: Geometry, accounting: Accounting, swa_tokens: int) -> tuple[int, int]:
    """(c4, c128) state rows before the requests are known."""
    if accounting.page_padding_priced:
        has_c4 = bool(geometry.priced.count(4))
        ring = geometry.rings[4] if has_c4 else 0
        return (0 if geometry.unified else swa_tokens // geometry.page * ring), 0
    windows = swa_tokens // geometry.window
    c4 = 0 if geometry.unified and accounting.unified_priced else windows * geometry.rings[4]
    c128 = windows * geometry.rings[128] if accounting.c128_state_per_token else 0
    return c4, c128


def _running_requests(inputs: Inputs, accounting: Accounting, full: int) -> int:
    """Requests per worker once the capacity is known."""
    given = fixed.requests_per_worker(inputs, accounting)
    estimated = fixed.estimated_requests(full, inputs.context_len)
    if not accounting.requests_capped_by_tokens:
        return estimated if given is None else min(given, estimated)
    return min(estimated if given is None else given, full // 2)
