"""What one sizing is computed from: the model, the server's arguments, its switches, its bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.architecture import Architecture
from dsv4doctor.sizing.layouts import (
    MAIN_LAYOUTS,
    UNIFORM_FP8,
    V4,
    RowLayout,
    index_row_bytes,
    unified_row_bytes,
)

INDEX_DTYPES = ("fp8", "bf16", "bf16_priced", "fp4")
DEFAULT_SWA_RATIO = 0.1  # what the V4 hook sets when the operator gives none
DEFAULT_MAX_RUNNING_REQUESTS = 256  # likewise
DEFAULT_EVICTION_INTERVAL = 128
TRUE_WORDS = ("1", "true", "yes", "y", "on")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """One rank's sizing, in SGLang's names; `available_bytes` is the budget that the pools get.

    `index_dtype` `bf16` is stored as bf16 and priced by the release; `bf16_priced` is priced as
    bf16, too. `max_running_requests` is the server's argument, before division by `attn_dp_size`.
    """

    model: Architecture
    available_bytes: int
    platform: str = "cuda"
    env: Mapping[str, str] = field(default_factory=dict)
    index_dtype: str = "fp8"
    swa_full_tokens_ratio: float | None = None
    page_size: int = 256
    speculative: str | None = None
    speculative_num_draft_tokens: int | None = None
    speculative_num_steps: int | None = None
    speculative_eagle_topk: int | None = None
    draft_layers: int = 0
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    disaggregation_mode: str = "null"
    disaggregation_decode_extra_slots: int = 0
    chunked_prefill_size: int | None = 8192
    context_len: int = 1_048_576
    attn_dp_size: int = 1
    pp_size: int = 1
    pp_rank: int = 0
    swa_prefix_tails: int | None = None
    disable_radix_cache: bool = False
    disable_overlap_schedule: bool = False
    dsv4_attn_backend: str = "flashmla"
    kv_cache_dtype: str = "fp8_e4m3"
    kv_layout: str = "v4"
    encoder_replay: bool = False
    hisparse_host_to_device_ratio: int = 1

    @property
    def is_speculative(self) -> bool:
        return self.speculative is not None

    @property
    def is_dspark(self) -> bool:
        return self.speculative is not None and self.speculative.upper() == "DSPARK"

    @property
    def is_hip(self) -> bool:
        return self.platform.startswith("hip")

    @property
    def draft_tokens(self) -> int:
        """Draft tokens of one verify step; 0 without speculation."""
        return (self.speculative_num_draft_tokens or 0) if self.is_speculative else 0

    def switch(self, name: str) -> bool:
        """Whether the environment variable `name` is set to a true word."""
        return self.env.get(name, "").strip().lower() in TRUE_WORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Layers of a pipeline stage: all of them, and the owners of compressed storage by ratio."""

    total: int
    owners: Mapping[int, int]  # ratio -> layers, in the order 4, 128, 1, 2; absent ratios left out

    def count(self, ratio: int) -> int:
        return self.owners.get(ratio, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """`Inputs` resolved under an accounting: widths, rings and rows that every formula shares."""

    accounting: Accounting
    stored: Layers
    priced: Layers
    head_dim: int
    index_head_dim: int
    window: int
    page: int
    row_bytes: int  # one packed latent row as priced, without page padding
    main_layout: RowLayout
    compressed_option: str
    unified: bool
    unified_fp8: bool
    uniform_fp8: bool
    index_counted: int
    index_stored: int
    state_bytes: int  # bytes of one compress-state number
    rings: Mapping[int, int]  # ratio -> rows of a request's state ring
    online: bool  # online c128, as the pool sees it
    online_width: int  # numbers of width head_dim in a c128 state row, as priced
    draft_banks: int
    shrink: int  # HiSparse host-to-device ratio
    swa_ratio: float


def stage_range(inputs: Inputs) -> range:
    """The layers of this pipeline rank: an even split, the last ranks take one of the remainder."""
    layers, parts, rank = inputs.model.num_hidden_layers, inputs.pp_size, inputs.pp_rank
    base, remainder = divmod(layers, parts)
    extra_before = max(0, rank - (parts - remainder))
    start = rank * base + extra_before
    return range(start, start + base + (1 if rank >= parts - remainder else 0))


def count_layers(model: Architecture, stage: range, ratios: tuple[int, ...]) -> Layers:
    """Layers of `stage` by ratio; ratios 1 and 2 are owned by the KV source layers alone."""
    owners: dict[int, int] = {}
    for ratio in (4, 128):
        owned = ratios.count(ratio)
        if owned:
            owners[ratio] = owned
    for ratio in (1, 2):
        sources = model.kv_source_layer_ids
        owned = sum(1 for layer in sources if layer in stage and _ratio(model, layer) == ratio)
        if owned:
            owners[ratio] = owned
    return Layers(total=len(ratios), owners=owners)


def _ratio(model: Architecture, layer: int) -> int:
    return model.compress_ratios[layer]


def resolve_geometry(inputs: Inputs, accounting: Accounting) -> Geometry:
    """The shared widths of `inputs` under `accounting`; `checks.refuse` has run before."""
    model = inputs.model
    stage = stage_range(inputs)
    stored = count_layers(model, stage, model.compress_ratios[stage.start : stage.stop])
    whole = accounting.whole_ratio_list
    priced = count_layers(model, stage, model.compress_ratios) if whole else stored
    unified = (
        accounting.unified_pool
        and inputs.is_hip
        and inputs.env.get("SGLANG_HACK_FLASHMLA_BACKEND") == "unified_kv_triton"
    )
    fp8_rows = unified and _has_unified_fp8(inputs, accounting)
    trtllm = accounting.uniform_fp8_pool and inputs.dsv4_attn_backend == "trtllm" and not unified
    online_asked = inputs.switch("SGLANG_OPT_USE_ONLINE_COMPRESS")
    online = online_asked and (accounting.online_on_hip or not inputs.is_hip)
    counted, kept = _index_bytes(inputs, accounting)
    return Geometry(
        accounting=accounting,
        stored=stored,
        priced=priced,
        head_dim=model.head_dim,
        index_head_dim=model.index_head_dim,
        window=model.sliding_window,
        page=inputs.page_size,
        row_bytes=_row_bytes(inputs, accounting, unified=unified, fp8=fp8_rows, trtllm=trtllm),
        main_layout=UNIFORM_FP8 if trtllm else _main_layout(inputs, accounting),
        compressed_option=inputs.env.get("SGLANG_DSV4_COMPRESSED_KV_LAYOUT", "auto").lower(),
        unified=unified,
        unified_fp8=fp8_rows,
        uniform_fp8=trtllm,
        index_counted=counted,
        index_stored=kept,
        state_bytes=_state_bytes(inputs, accounting),
        rings=_rings(inputs, accounting, online=online),
        online=online,
        online_width=3 if online_asked else 2,
        draft_banks=_draft_banks(inputs, accounting, online=online_asked),
        shrink=inputs.hisparse_host_to_device_ratio,
        swa_ratio=_swa_ratio(inputs),
    )


def _has_unified_fp8(inputs: Inputs, accounting: Accounting) -> bool:
    return (
        accounting.unified_priced
        and inputs.platform == "hip-gfx95"
        and inputs.switch("SGLANG_DSV4_UNIFIED_KV_FP8")
    )


def _swa_ratio(inputs: Inputs) -> float:
    ratio = inputs.swa_full_tokens_ratio
    return DEFAULT_SWA_RATIO if ratio is None else ratio


def _row_bytes(
    inputs: Inputs, accounting: Accounting, *, unified: bool, fp8: bool, trtllm: bool
) -> int:
    model = inputs.model
    packed = model.head_dim - model.qk_rope_head_dim + 2 * model.qk_rope_head_dim + 8
    if unified and accounting.unified_priced:
        return unified_row_bytes(model.head_dim, model.qk_rope_head_dim, fp8=fp8)
    # 0.5.20 stores trtllm rows and prices packed ones.
    if trtllm and accounting.page_padding_priced:
        return model.head_dim
    return packed


def _main_layout(inputs: Inputs, accounting: Accounting) -> RowLayout:
    if not accounting.page_padding_priced:
        return V4
    mode = inputs.env.get("SGLANG_DSV4_KV_LAYOUT", inputs.kv_layout).lower()
    if inputs.dsv4_attn_backend == "flashmla_mega" and mode != "v41_new":
        mode = "v41"
    if mode == "auto":
        mode = "v41" if inputs.platform in ("cuda-sm100", "cuda-sm103") else "v4"
    return MAIN_LAYOUTS[mode]


def _index_bytes(inputs: Inputs, accounting: Accounting) -> tuple[int, int]:
    """(counted, stored) bytes of one c4 index-K row."""
    width = inputs.model.index_head_dim
    fp8 = index_row_bytes("fp8", width)
    if inputs.index_dtype == "fp4":
        stored = index_row_bytes("fp4", width) if accounting.fp4_index_stored else fp8
        priced_right = accounting.hip_fp4_index_priced and inputs.is_hip
        return (stored if priced_right else fp8), stored
    if inputs.index_dtype == "bf16":
        return fp8, index_row_bytes("bf16", width)
    if inputs.index_dtype == "bf16_priced":
        wide = index_row_bytes("bf16", width)
        return wide, wide
    return fp8, fp8


def _state_bytes(inputs: Inputs, accounting: Accounting) -> int:
    name = inputs.env.get("SGLANG_DSV4_COMPRESS_STATE_DTYPE", "float32").strip().lower()
    return 2 if accounting.state_dtype_switch and name in ("bf16", "bfloat16") else 4


def _rings(inputs: Inputs, accounting: Accounting, *, online: bool) -> Mapping[int, int]:
    drafts = inputs.draft_tokens
    # From 0.5.21 the rings follow the draft count, before it the algorithm.
    wide = drafts > 0 if accounting.page_padding_priced else inputs.is_speculative
    return {
        4: 16 if wide else 8,
        128: 1 if online else 256 if wide else 128,
        2: 1 << (drafts + 1).bit_length() if drafts else 2,
    }


def _draft_banks(inputs: Inputs, accounting: Accounting, *, online: bool) -> int:
    """Extra banks of online c128 state, one a draft token (experimental MTP path)."""
    if not (online and accounting.online_draft_banks):
        return 0
    return inputs.draft_tokens if inputs.switch("SGLANG_EXPERIMENTAL_ONLINE_C128_MTP") else 0


def as_mapping(value: Any) -> Mapping[str, str]:
    """Environment values as strings, as a process sees them."""
    return {str(key): str(item) for key, item in dict(value).items()}
