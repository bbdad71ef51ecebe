"""The shape of an accounting version: which releases it holds for and what it does differently.

A release's file under `versions/` states only what changed against the release before it, so that
the folder reads as the history of the formula. The formulas themselves are in `pricing`, `fixed`,
`pools` and `allocation`, and branch on these facts alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """What one range of SGLang releases prices, deducts, rounds and allocates."""

    releases: tuple[str, ...]  # every release it was executed for, oldest first
    summary: str

    # what is counted
    whole_ratio_list: bool = False  # prices the MTP entry of compress_ratios as a layer
    c128_state_per_token: bool = False  # else a deduction by request slots
    state_dtype_switch: bool = False  # SGLANG_DSV4_COMPRESS_STATE_DTYPE is read
    online_needs_fp32_state: bool = False
    online_draft_banks: bool = False  # SGLANG_EXPERIMENTAL_ONLINE_C128_MTP is read
    online_on_hip: bool = False  # the pool honours online c128 on HIP
    hip_fp4_index_priced: bool = False
    page_padding_priced: bool = False  # rows priced as padded pages; cap mode; ratios 1 and 2
    low_ratio_by_layout: bool = False  # ratios 1 and 2 priced by their layout, pages reserved
    draft_swa_ring: bool = False  # DSpark's SWA under encoder replay is a per-request ring
    replay_scales_tails: bool = False

    # what is refused
    draft_tokens_bounded: bool = False
    swa_floor: bool = False
    unified_fp8_refuses_pd: bool = False

    # requests
    requests_capped_by_tokens: bool = False  # by full // 2, else by 2048 to 4096
    at_least_one_request: bool = False

    # what is allocated
    fp4_index_stored: bool = True
    unified_pool: bool = False
    unified_page_of_rows: bool = False
    unified_priced: bool = False  # rows, ring and c4 state of the unified pool are priced
    uniform_fp8_pool: bool = False  # --dsv4-attn-backend trtllm
    logical_dummy_page: bool = False  # KV pools reserve a page of logical tokens, else of slots
    index_logical_dummy_page: bool = False
    sm120_swa_pages: bool = False

    @property
    def newest(self) -> str:
        return self.releases[-1]
