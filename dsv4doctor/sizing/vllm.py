"""DeepSeek-V4 in vLLM 0.33.0: one shared pool of blocks that every cache group draws from.

A physical block is as large as the largest group's pages together; blocks are owned by one group
at a time, so the pool cannot over-commit, and what a small group's block leaves empty is waste.

Source: `v1/kv_cache_interface.py`, `v1/core/kv_cache_planning.py`, `v1/kv_cache_layout.py`,
executed on CPU for V4-Flash and V4-Pro; the specs per layer transcribed from `models/deepseek_v4`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsv4doctor.errors import UsageError
from dsv4doctor.sizing.architecture import FLASH, PRO, Architecture
from dsv4doctor.sizing.spec import read_model

VERSION = "0.33.0"
MAIN_BLOCK = 256  # tokens of a block of the compressed caches; the backends take no other
SWA_BLOCK = 64
C4_STATE_BLOCK, C128_STATE_BLOCK = 4, 8
C4_STATE_WINDOW = 8
KV_KINDS = ("fp8_ds_mla", "bf16")
INDEX_KINDS = ("fp8", "mxfp4")
KEYS = frozenset(
    (
        "engine", "version", "model", "available_bytes", "max_model_len",
        "max_num_batched_tokens", "max_concurrent_batches", "index", "kv",
        "num_gpu_blocks_override", "num_hidden_layers", "compress_ratios",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmInputs:
    """One rank's sizing under vLLM; `max_concurrent_batches` is 2 with async scheduling."""

    model: Architecture
    available_bytes: int
    max_model_len: int = 1_048_576
    max_num_batched_tokens: int = 8192
    max_concurrent_batches: int = 2
    index: str = "fp8"
    kv: str = "fp8_ds_mla"
    num_gpu_blocks_override: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One layer's page of a cache: tokens a block spans, bytes raw and padded."""

    block_size: int
    raw: int
    padded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A cache group: layers whose pages share a block, and the blocks one request needs."""

    kind: tuple[str, ...]
    n_layers: int
    block_size: int
    page_bytes: int
    pages_per_request: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmPlan:
    inputs: VllmInputs
    page_sizes: Mapping[str, Page]
    groups: tuple[Group, ...]
    bytes_per_block: int
    num_blocks: int
    blocks_per_request: int

    @property
    def max_concurrency(self) -> float:
        return self.num_blocks / self.blocks_per_request

    @property
    def capacity_tokens(self) -> int:
        return int(self.max_concurrency * self.inputs.max_model_len)

    @property
    def allocated_bytes(self) -> int:
        return self.num_blocks * self.bytes_per_block

    @property
    def fits(self) -> bool:
        """vLLM's start-up check: one request of max_model_len is held beside the null block."""
        return self.num_blocks - 1 >= self.blocks_per_request


def _pages(inputs: VllmInputs) -> dict[str, Page]:
    bf16 = inputs.kv == "bf16"
    align, row = (512, 1024) if bf16 else (576, 584)
    slots = MAIN_BLOCK // 4
    index_row = 132 if inputs.index == "fp8" else 68

    def page(block: int, raw: int) -> Page:
        return Page(block_size=block, raw=raw, padded=-(-raw // align) * align)

    c4 = {
        ".c4": page(MAIN_BLOCK, slots * row),
        ".compressor.state_cache(sw8)": page(C4_STATE_BLOCK, C4_STATE_BLOCK * 8192),
        ".indexer.k_cache": page(MAIN_BLOCK, slots * index_row),
        ".indexer.compressor.state_cache": page(C4_STATE_BLOCK, C4_STATE_BLOCK * 2048),
    }
    c128 = {
        ".c128": page(MAIN_BLOCK, MAIN_BLOCK // 128 * row),
        ".compressor.state_cache(sw128)": page(C128_STATE_BLOCK, C128_STATE_BLOCK * 4096),
    }
    ratios = inputs.model.layer_ratios
    found = {".swa_cache": page(SWA_BLOCK, SWA_BLOCK * row)}
    if 4 in ratios:
        found |= c4
    if 128 in ratios:
        found |= c128
    return found


def _window_pages(inputs: VllmInputs, window: int, block: int) -> int:
    """Blocks one request holds of a sliding-window cache while its batches are in flight."""
    in_flight = inputs.max_num_batched_tokens * inputs.max_concurrent_batches
    return -(-min(window - 1 + in_flight, inputs.max_model_len) // block) + 1


def _groups(inputs: VllmInputs, pages: Mapping[str, Page]) -> tuple[Group, ...]:
    made = (*_window_groups(inputs, pages), _full_group(inputs, pages), *_states(inputs, pages))
    return tuple(group for group in made if group is not None)


def _window_groups(inputs: VllmInputs, pages: Mapping[str, Page]) -> list[Group]:
    """Every layer's sliding window, in two groups of half the layers."""
    total = len(inputs.model.layer_ratios)
    return [
        Group(
            kind=(".swa_cache",),
            n_layers=layers,
            block_size=SWA_BLOCK,
            page_bytes=layers * pages[".swa_cache"].padded,
            pages_per_request=_window_pages(inputs, inputs.model.sliding_window, SWA_BLOCK),
        )
        for layers in (-(-total // 2), total // 2)
        if layers
    ]


def _full_group(inputs: VllmInputs, pages: Mapping[str, Page]) -> Group | None:
    """The compressed latents and the indexer's keys, which a request keeps for its whole length."""
    n4, n128 = (inputs.model.layer_ratios.count(ratio) for ratio in (4, 128))
    full = 0
    if n4:
        full += n4 * (pages[".c4"].padded + pages[".indexer.k_cache"].padded)
    if n128:
        full += n128 * pages[".c128"].padded
    if not full:
        return None
    return Group(
        kind=("c4", "c128", ".indexer.k_cache"),
        n_layers=2 * n4 + n128,
        block_size=MAIN_BLOCK,
        page_bytes=full,
        pages_per_request=-(-inputs.max_model_len // MAIN_BLOCK),
    )


def _states(inputs: VllmInputs, pages: Mapping[str, Page]) -> list[Group]:
    """The compressors' states, one group a ratio."""
    n4, n128 = (inputs.model.layer_ratios.count(ratio) for ratio in (4, 128))
    groups = []
    if n4:
        state = pages[".compressor.state_cache(sw8)"].padded
        state += pages[".indexer.compressor.state_cache"].padded
        groups.append(
            Group(
                kind=(".compressor.state_cache", ".indexer.compressor.state_cache"),
                n_layers=2 * n4,
                block_size=C4_STATE_BLOCK,
                page_bytes=n4 * state,
                pages_per_request=_window_pages(inputs, C4_STATE_WINDOW, C4_STATE_BLOCK),
            )
        )
    if n128:
        groups.append(
            Group(
                kind=(".compressor.state_cache",),
                n_layers=n128,
                block_size=C128_STATE_BLOCK,
                page_bytes=n128 * pages[".compressor.state_cache(sw128)"].padded,
                pages_per_request=_window_pages(
                    inputs, inputs.model.sliding_window, C128_STATE_BLOCK
                ),
            )
        )
    return groups


def plan_vllm(inputs: VllmInputs) -> VllmPlan:
    """The block pool of one rank."""
    pages = _pages(inputs)
    groups = _groups(inputs, pages)
    block = max(group.page_bytes for group in groups)
    blocks = inputs.num_gpu_blocks_override
    return VllmPlan(
        inputs=inputs,
        page_sizes=pages,
        groups=groups,
        bytes_per_block=block,
        num_blocks=inputs.available_bytes // block if blocks is None else blocks,
        blocks_per_request=sum(group.pages_per_request for group in groups),
    )


def read_vllm_spec(data: Mapping[str, Any]) -> VllmInputs:
    """The vLLM sizing that `data` describes.

    Raises:
        UsageError: an unknown key, a wrong value, a model of another family.
    """
    unknown = sorted(set(data) - KEYS)
    if unknown:
        raise UsageError(
            f"unknown vLLM spec key {unknown[0]!r}", f"known: {', '.join(sorted(KEYS))}"
        )
    model = _vllm_model(data)
    index = {"auto": "fp8", "fp4": "mxfp4"}.get(data.get("index", "fp8"), data.get("index", "fp8"))
    kv = {"auto": "fp8_ds_mla"}.get(data.get("kv", "auto"), data.get("kv", "auto"))
    if index not in INDEX_KINDS:
        raise UsageError(f"vLLM refuses index-K {index!r}", "fp8 or mxfp4")
    if kv not in KV_KINDS:
        raise UsageError(f"kv {kv!r} is not covered for vLLM", "fp8_ds_mla or bf16")
    counts = {}
    for key in (
        "available_bytes", "max_model_len", "max_num_batched_tokens", "max_concurrent_batches",
        "num_gpu_blocks_override",
    ):  # fmt: skip
        if data.get(key) is None:
            continue
        value = data[key]
        good = isinstance(value, int) and not isinstance(value, bool)
        if not good or not (0 if key == "available_bytes" else 1) <= value <= 1 << 53:
            raise UsageError(f"{key} must be a positive integer, not {value!r}", f"a number: {key}")
        counts[key] = value
    if "available_bytes" not in counts:
        raise UsageError("available_bytes is missing", "the bytes a rank's KV cache gets")
    return VllmInputs(model=model, index=index, kv=kv, **counts)


def _vllm_model(data: Mapping[str, Any]) -> Architecture:
    fields = ("model", "num_hidden_layers", "compress_ratios")
    model = read_model({key: data[key] for key in fields if key in data})
    if set(model.layer_ratios) & {1, 2}:
        raise UsageError(
            f"{model.name} under vLLM was read and not executed, so it is not sized here",
            "V4-Flash or V4-Pro, or engine sglang",
        )
    return model


def is_executed(model: Architecture) -> bool:
    """Whether the planner was executed for this list of layers; else its grouping may differ."""
    return model.layer_ratios in (FLASH.layer_ratios, PRO.layer_ratios)


def vllm_figures(plan: VllmPlan) -> dict[str, Any]:
    """The contract's figures for vLLM."""
    return {
        "page_sizes": {
            name: {"block_size": page.block_size, "raw": page.raw, "padded": page.padded}
            for name, page in plan.page_sizes.items()
        },
        "groups": [
            {
                "kind": list(group.kind),
                "n_layers": group.n_layers,
                "block_size": group.block_size,
                "page_bytes": group.page_bytes,
                "pages_per_request": group.pages_per_request,
            }
            for group in plan.groups
        ],
        "bytes_per_block": plan.bytes_per_block,
        "num_blocks": plan.num_blocks,
        "blocks_per_request": plan.blocks_per_request,
        "max_concurrency": plan.max_concurrency,
        "capacity_tokens": plan.capacity_tokens,
        "allocated_bytes": plan.allocated_bytes,
    }
