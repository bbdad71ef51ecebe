"""Index keys: one 128-dimensional unit vector for every four tokens, made from what they say.

The key of an entry is the sum of hashed embeddings over its own four tokens and the four before
(the c4 compressor overlaps likewise), each rolled by its place in the window. Equal text at equal
alignment has an equal key; unrelated text is nearly orthogonal. Layers differ by sign flips.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsv4doctor.lab.layouts import HEAD_DIM, TOKENS_PER_ENTRY, Floats
from dsv4doctor.lab.tokens import TokenIds

WINDOW = 2 * TOKENS_PER_ENTRY
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LAYER_SALT = 0x6C61796572
_NOISE_SALT = 0x6E6F697365
# A key of nothing stays zero.
_SHORTEST = np.float32(1e-6)


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """splitmix64's finaliser, as published by Steele, Lea and Flood (2014)."""
    with np.errstate(over="ignore"):
        z = values + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _signs(seeds: npt.NDArray[np.uint64]) -> Floats:
    """[n, 128] of +1 and -1 for n seeds."""
    lanes = np.stack([_mixed(seeds), _mixed(~seeds)], axis=1)
    bits = np.unpackbits(lanes.astype("<u8").view(np.uint8), axis=1)
    signs: Floats = (bits.astype(np.float32) * 2 - 1).astype(np.float32, copy=False)
    return signs


def layer_signs(layer: int) -> Floats:
    """[128] of +1 and -1: how this layer's keys differ from another's."""
    signs: Floats = _signs(_mixed(np.array([_LAYER_SALT + layer], dtype=np.uint64)))[0]
    return signs


def head_noise(layer: int, heads: int, scale: float) -> Floats:
    """[heads, 128]: what each head adds to the query, of length `scale`."""
    seeds = _mixed(np.arange(heads, dtype=np.uint64) + np.uint64(_NOISE_SALT + layer * 1024))
    noise: Floats = (_signs(seeds) * (scale / HEAD_DIM**0.5)).astype(np.float32)
    return noise


def entry_keys(tokens: TokenIds, entries: npt.NDArray[np.intp]) -> Floats:
    """[len(entries), 128]: unit keys of the chosen entries of a token sequence.

    Tokens before the sequence's start count as nothing; every entry must be complete.
    """
    places = entries[:, None] * TOKENS_PER_ENTRY + np.arange(-TOKENS_PER_ENTRY, TOKENS_PER_ENTRY)
    window = np.where(places < 0, np.uint64(0), tokens[np.maximum(places, 0)])
    unique, inverse = np.unique(window, return_inverse=True)
    embeddings = _signs(unique)
    embeddings[unique == 0] = 0
    inverse = inverse.reshape(window.shape)
    keys = np.zeros((len(entries), HEAD_DIM), dtype=np.float32)
    for offset in range(WINDOW):
        keys += np.roll(embeddings, offset, axis=1)[inverse[:, offset]]
    lengths = np.linalg.norm(keys, axis=1, keepdims=True)
    unit: Floats = (keys / np.maximum(lengths, _SHORTEST)).astype(np.float32, copy=False)
    return unit
