"""Where the pages of one pool lie: a layer's tensors on the device, or their mirror on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dsv4doctor.kernels.layouts import EVERY_LAYOUT, LATENT_ROWS, PageLayout, latent_layout
from dsv4doctor.probe_protocol import INDEX_K, POOLS

# How SGLang 0.5.12 to 0.5.23 name the latent pools inside a DeepSeekV4TokenToKVPool.
LATENT_ATTRIBUTES = {"c4": "c4_kv_pool", "c128": "c128_kv_pool"}
LATENT_RATIOS = {"c4": 4, "c128": 128}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bank:
    """Pages of one pool in all its layers: uint8 tensors [pages, bytes] of one shape and stride."""

    pool: str
    layout: PageLayout
    layers: tuple[int, ...]  # the model's ids, in the order of the tensors
    values: tuple[torch.Tensor, ...]
    scales: tuple[torch.Tensor, ...] | None
    page_tokens: int

    def __post_init__(self) -> None:
        if len(self.values) != len(self.layers):
            raise ValueError(f"{len(self.values)} tensors for {len(self.layers)} layers")

    @property
    def pages(self) -> int:
        return len(self.values[0])

    @property
    def device(self) -> torch.device:
        return self.values[0].device

    @property
    def stride_bytes(self) -> int:
        """Bytes from page to page: more than a page where layers of a page lie together."""
        return int(self.values[0].stride(0))

    def begins_at(self, buffers: Sequence[Any]) -> bool:
        """Whether `buffers` are this bank's tensors."""
        return (
            len(buffers) == len(self.values) and buffers[0].data_ptr() == self.values[0].data_ptr()
        )


def find_banks(pool: Any) -> tuple[dict[str, Bank], dict[str, str]]:
    """The banks of a `DeepSeekV4TokenToKVPool` by name, and why others of it cannot be read."""
    banks: dict[str, Bank] = {}
    problems: dict[str, str] = {}
    for name in POOLS:
        try:
            bank = _index_bank(pool) if name == INDEX_K else _latent_bank(pool, name)
        except (AttributeError, TypeError, ValueError, IndexError) as error:
            problems[name] = f"{type(error).__name__}: {error}"
            continue
        if bank is not None:
            banks[name] = bank
    return banks, problems


def _layers_of(pool: Any, ratio: int) -> tuple[int, ...]:
    """The model layers whose cache is compressed by `ratio`, in the order of the pool's buffers."""
    found = [
        (item.compress_layer_id, layer)
        for layer, item in enumerate(pool.layer_mapping)
        if item is not None and item.compress_ratio == ratio
    ]
    return tuple(layer for _, layer in sorted(found))


def _index_bank(pool: Any) -> Bank | None:
    indexer, layers = pool.c4_indexer_kv_pool, _layers_of(pool, 4)
    if indexer is None or not layers:
        return None
    values = indexer.index_k_with_scale_buffer
    scales = None
    if values is None:  # ROCm's fp4 form
        values, scales = indexer.index_k_payload_buffer, indexer.index_k_scale_buffer
        scales = tuple(each.reshape(len(each), -1) for each in scales)
    values = tuple(each.reshape(len(each), -1) for each in values)
    slots = pool.page_size // 4
    layout = layout_of(values[0].shape[1], slots, two_tensors=scales is not None)
    return Bank(
        pool=INDEX_K, layout=layout, layers=layers, values=values, scales=scales,
        page_tokens=pool.page_size,
    )  # fmt: skip


def _latent_bank(pool: Any, name: str) -> Bank | None:
    inner, layers = getattr(pool, LATENT_ATTRIBUTES[name]), _layers_of(pool, LATENT_RATIOS[name])
    if inner is None or not layers:
        return None
    if hasattr(inner, "translate_loc_to_hisparse_device"):
        raise ValueError("HiSparse keeps its tokens by ids of their own")
    layout, values = latent_layout(name), tuple(inner.kv_buffer)
    slots = pool.page_size // LATENT_RATIOS[name]
    if slots != LATENT_ROWS[name] or values[0].shape[1] != layout.page_bytes:
        raise ValueError(f"a page of {values[0].shape[1]} bytes and {slots} slots is not known")
    return Bank(
        pool=name, layout=layout, layers=layers, values=values, scales=None,
        page_tokens=pool.page_size,
    )  # fmt: skip


def layout_of(page_bytes: int, slots: int, *, two_tensors: bool = False) -> PageLayout:
    """The index-K layout with pages of that many bytes and slots.

    Raises:
        ValueError: if there is none.
    """
    for layout in EVERY_LAYOUT:
        fits = (layout.page_bytes, layout.rows, layout.two_tensors)
        if layout.name not in LATENT_ROWS and fits == (page_bytes, slots, two_tensors):
            return layout
    raise ValueError(f"an index page of {page_bytes} bytes and {slots} slots is not known")


def host_bank(bank: Bank, host_pool: Any) -> Bank:
    """The mirror of `bank` in a `DeepSeekV4PagedHostPool`, in any of its three layouts.

    Raises:
        ValueError: if the mirror has another form.
    """
    buffer, size = host_pool.kv_buffer, bank.layout.page_bytes
    if isinstance(buffer, list | tuple):
        values = tuple(each.reshape(len(each), -1) for each in buffer)
    else:  # page_first [pages, layers, bytes], page_first_direct [pages, layers, 1, bytes]
        flat = buffer.reshape(buffer.shape[0], buffer.shape[1], -1)
        values = tuple(flat[:, layer] for layer in range(flat.shape[1]))
    if len(values) != len(bank.values) or any(each.shape[1] != size for each in values):
        raise ValueError(f"host pages are not {len(bank.values)} layers of {size} bytes")
    return Bank(
        pool=bank.pool, layout=bank.layout, layers=bank.layers, values=values, scales=None,
        page_tokens=bank.page_tokens,
    )  # fmt: skip


def bank_of(banks: Mapping[str, Bank], host_pool: Any) -> Bank | None:
    """The bank that `host_pool` mirrors; None for pools that are not watched."""
    buffers = getattr(host_pool, "device_buffers", None)
    if not buffers:
        return None
    return next((bank for bank in banks.values() if bank.begins_at(buffers)), None)
