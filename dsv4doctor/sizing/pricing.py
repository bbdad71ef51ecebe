"""What the configurator believes a token costs, pool by pool and in all.

The sums keep the order in which the releases add their terms: results agree to the last bit, and
the divisions that follow floor to the same token.

Source: `DSV4PoolConfigurator._get_bytes_per_full_token` and `_get_bytes_per_swa_token` of
`model_executor/pool_configurator.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.inputs import Geometry, Inputs
from dsv4doctor.sizing.layouts import compressed_layout, index_row_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Bytes per token: `per_full_token` divides the budget; `per_swa_token` is from 0.5.21 on."""

    per_full_token: float
    per_swa_token: float | None
    inflation: float  # (layers + 1) / layers under speculation, else 1
    swa_row: float  # one SWA row, page padding included where the release prices it


def c4_state_width(geometry: Geometry) -> tuple[int, int]:
    """Bytes of one c4 state row and one c4 indexer state row."""
    e = geometry.state_bytes
    return 4 * geometry.head_dim * e, 4 * geometry.index_head_dim * e


def padded_row(geometry: Geometry, ratio: int = 0) -> float:
    """Bytes of one row with its share of the page's padding, as 0.5.21 and later price it."""
    if geometry.unified or geometry.uniform_fp8:
        return geometry.row_bytes
    layout, tokens = geometry.main_layout, geometry.page
    if ratio:
        layout = compressed_layout(layout, ratio, geometry.compressed_option)
        tokens = geometry.page // ratio
    return layout.page_bytes(tokens) / tokens


def low_ratio_index_bytes(geometry: Geometry) -> int:
    """Bytes of an index-K row of ratios 1 and 2: fp4, whatever c4 stores."""
    return index_row_bytes("fp4", geometry.index_head_dim)


def price_tokens(
    inputs: Inputs, geometry: Geometry, accounting: Accounting, *, capped: bool, paged_draft: int
) -> Price:
    """Bytes per token. `capped`: SWA is a deduction; `paged_draft`: replay's paged draft layers."""
    inflation = 1.0
    if inputs.is_speculative and not inputs.encoder_replay:
        inflation = (geometry.priced.total + 1) / geometry.priced.total
    if not accounting.page_padding_priced:
        total = _unpadded(geometry, accounting) * inflation
        return Price(
            per_full_token=total,
            per_swa_token=None,
            inflation=inflation,
            swa_row=geometry.row_bytes,
        )
    if inputs.encoder_replay:
        swa: float = geometry.row_bytes * paged_draft
    else:
        swa = _swa_token(geometry)
    ratio = 0.0 if geometry.unified or capped else geometry.swa_ratio
    if inputs.encoder_replay and not paged_draft:
        ratio = 0.0
    total = ratio * swa + sum(
        _compressed(geometry, accounting, owner) * count
        for owner, count in geometry.priced.owners.items()
    )
    if inflation != 1.0:
        total, swa = total * inflation, swa * inflation
    return Price(
        per_full_token=total,
        per_swa_token=swa,
        inflation=inflation,
        swa_row=padded_row(geometry),
    )


def _swa_token(geometry: Geometry) -> float:
    state, index_state = c4_state_width(geometry)
    rows_per_token = geometry.rings[4] / geometry.page if geometry.priced.count(4) else 0.0
    return padded_row(geometry) * geometry.priced.total + (
        rows_per_token * (state + index_state) * geometry.priced.count(4)
    )


def _compressed(geometry: Geometry, accounting: Accounting, ratio: int) -> float:
    """Bytes one full token adds per layer of `ratio`: its shares of a latent and an index row."""
    if ratio in (1, 2):
        row = padded_row(geometry, ratio) if accounting.low_ratio_by_layout else geometry.row_bytes
        return (row + low_ratio_index_bytes(geometry)) / ratio
    if ratio == 4:
        share = 1 / (4 * geometry.shrink)
        return share * padded_row(geometry, 4) + 1 / 4 * geometry.index_counted
    return 1 / 128 * padded_row(geometry, 128)


def _unpadded(geometry: Geometry, accounting: Accounting) -> float:
    """0.5.12-0.5.20: rows without padding; state of c4 (to 0.5.14 of c128) per window of SWA."""
    n4, n128, row = geometry.priced.count(4), geometry.priced.count(128), geometry.row_bytes
    state, index_state = c4_state_width(geometry)
    ratio = geometry.swa_ratio
    rings = geometry.unified and accounting.unified_priced
    c4_rows = geometry.rings[4] / geometry.window
    c128_rows = 0.0
    if accounting.c128_state_per_token:
        c128_rows = geometry.rings[128] / geometry.window
        if geometry.draft_banks:
            c128_rows *= 1 + geometry.draft_banks
    c128_state = geometry.online_width * geometry.head_dim * geometry.state_bytes
    return (
        (0.0 if rings else ratio * row * geometry.priced.total)
        + 1 / (4 * geometry.shrink) * row * n4
        + 1 / 128 * row * n128
        + 1 / 4 * geometry.index_counted * n4
        + (0.0 if rings else ratio * c4_rows * state * n4)
        + ratio * c128_rows * c128_state * n128
        + (0.0 if rings else ratio * c4_rows * index_state * n4)
    )
