"""Latent pages of the main KV pool: what attention finds in a slot that the indexer selected.

A slot's 448 no-rope values carry its four token ids as signs (+1 or -1 in e4m3 with scale 1: what
the lab's attention copies is read back from these bytes); its 64 rope values carry the position.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dsv4doctor.lab.layouts import PAGE_SLOTS, TOKENS_PER_ENTRY, Bytes, to_bf16
from dsv4doctor.lab.tokens import TokenIds

C4_PAGE_BYTES = 37440
C128_PAGE_BYTES = 1728
MAIN_PAGE_BYTES = C4_PAGE_BYTES + C128_PAGE_BYTES

_NOPE = 448
_ROPE = 64
_SLOT_DATA = _NOPE + 2 * _ROPE
_SLOT_SCALES = 8
_ID_BITS = TOKENS_PER_ENTRY * 64
_PLUS_ONE, _MINUS_ONE = 0x38, 0xB8
_UNIT_SCALE = 127
_C128_STRIDE = 32
_C128_SLOTS = 2
# As in the model's own rotary embedding: wavelengths from 2*pi up to 2*pi*10000 positions.
_ROPE_BASE = 10000.0


@lru_cache(maxsize=2048)
def _rope(logical_page: int) -> Bytes:
    """[64, 128] bytes: cosine and sine of each slot's position as bf16."""
    positions = logical_page * PAGE_SLOTS + np.arange(PAGE_SLOTS)
    frequencies = _ROPE_BASE ** (-np.arange(_ROPE // 2) / (_ROPE // 2))
    angles = positions[:, None] * frequencies[None, :]
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    return to_bf16(waves).astype("<u2").view(np.uint8)


def _latents(tokens: TokenIds, rope: Bytes, page_bytes: int) -> Bytes:
    slots = len(tokens)
    bits = np.unpackbits(np.ascontiguousarray(tokens, dtype="<u8").view(np.uint8), axis=1)
    signs = np.where(bits == 1, np.uint8(_MINUS_ONE), np.uint8(_PLUS_ONE))
    page = np.zeros(page_bytes, dtype=np.uint8)
    data = page[: slots * _SLOT_DATA].reshape(slots, _SLOT_DATA)
    data[:, :_ID_BITS] = signs
    data[:, _ID_BITS:_NOPE] = signs[:, : _NOPE - _ID_BITS]
    data[:, _NOPE:] = rope
    scales = page[slots * _SLOT_DATA : slots * (_SLOT_DATA + _SLOT_SCALES)]
    scales.reshape(slots, _SLOT_SCALES)[:, : _SLOT_SCALES - 1] = _UNIT_SCALE
    return page


def encode_main_page(tokens: TokenIds, logical_page: int) -> Bytes:
    """The c4 page and, behind it, the c128 page of up to 256 tokens; missing ones are id 0."""
    padded = np.zeros(PAGE_SLOTS * TOKENS_PER_ENTRY, dtype=np.uint64)
    padded[: len(tokens)] = tokens
    entries = padded.reshape(PAGE_SLOTS, TOKENS_PER_ENTRY)
    rope = _rope(logical_page)
    c4 = _latents(entries, rope, C4_PAGE_BYTES)
    heads = np.arange(_C128_SLOTS) * _C128_STRIDE
    c128 = _latents(entries[heads], rope[heads], C128_PAGE_BYTES)
    return np.concatenate([c4, c128])


def main_slots(first: int, last: int) -> tuple[slice, ...]:
    """Where in a main page the entries from `first` up to `last` (not included) lie.

    The c128 rows among them are those whose 32 entries are complete at `last`.
    """
    c4_scales = PAGE_SLOTS * _SLOT_DATA
    c128_scales = C4_PAGE_BYTES + _C128_SLOTS * _SLOT_DATA
    begun, complete = first // _C128_STRIDE, last // _C128_STRIDE
    return (
        slice(first * _SLOT_DATA, last * _SLOT_DATA),
        slice(c4_scales + first * _SLOT_SCALES, c4_scales + last * _SLOT_SCALES),
        slice(C4_PAGE_BYTES + begun * _SLOT_DATA, C4_PAGE_BYTES + complete * _SLOT_DATA),
        slice(c128_scales + begun * _SLOT_SCALES, c128_scales + complete * _SLOT_SCALES),
    )


def decode_tokens(pages: Bytes) -> TokenIds:
    """The token ids that main pages [n, >= 37,440] hold, in order (n * 256 of them)."""
    data = pages[:, : PAGE_SLOTS * _SLOT_DATA].reshape(len(pages), PAGE_SLOTS, _SLOT_DATA)
    bits = data[:, :, :_ID_BITS] >> 7
    packed = np.packbits(bits, axis=2)
    ids: TokenIds = np.ascontiguousarray(packed).view("<u8").reshape(-1)
    return ids
