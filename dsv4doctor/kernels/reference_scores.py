"""The indexer's scores and selection in plain numpy; equals `index_topk.py` bit for bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsv4doctor.kernels.layouts import HEAD_DIM, PageLayout
from dsv4doctor.kernels.reference import Bytes, split_rows
from dsv4doctor.kernels.score_tables import E2M1_VALUES, e4m3_values

CANONICAL_NAN = np.array([0x7FC00000], dtype=np.uint32).view(np.float32)[0]

Scores = NDArray[np.float32]


def decode_keys(
    layout: PageLayout, pages: Bytes, scales: Bytes | None = None
) -> tuple[NDArray[np.float64], Scores]:
    """(keys float64 [pages, rows, 128], s_k float32 [pages, rows])."""
    values, tails = split_rows(layout, pages, scales)
    ones = np.ones(values.shape[:2], dtype=np.float32)
    bits = 32 * layout.row_words // HEAD_DIM
    steps = np.arange(0, 32, bits, dtype=np.uint32)
    codes = (values[..., None] >> steps) & np.uint32((1 << bits) - 1)
    codes = codes.reshape(*values.shape[:2], HEAD_DIM)
    if bits == 16:
        return (codes << np.uint32(16)).view(np.float32).astype(np.float64), ones
    if bits == 8:
        return np.array(e4m3_values())[codes], tails[..., 0].view(np.float32)
    exponents = (tails >> np.arange(0, 32, 8, dtype=np.uint32)) & np.uint32(255)
    powers = np.ldexp(1.0, exponents.astype(np.int32) - 127)
    powers[exponents == 255] = np.nan
    return np.array(E2M1_VALUES)[codes] * np.repeat(powers, 32, axis=2), ones


def index_scores(
    keys: NDArray[np.float64],
    key_scale: Scores,
    queries: NDArray[np.float32],
    weights: NDArray[np.float32],
) -> Scores:
    """Scores float32 [queries, pages · rows] of decoded keys, pages in order."""
    keys = keys.reshape(-1, HEAD_DIM)
    total = np.zeros((len(queries), len(keys)))
    # Garbage bytes are welcome here: what overflows or is no number is the answer.
    with np.errstate(all="ignore"):
        for head in range(queries.shape[1]):
            part = keys[None] * queries[:, head, None, :].astype(np.float64)
            while part.shape[-1] > 1:
                part = part[..., 0::2] + part[..., 1::2]
            dot = part[..., 0].astype(np.float32)
            positive = np.where(np.isnan(dot), dot, np.maximum(dot, np.float32(0)))
            total += positive.astype(np.float64) * weights[:, head, None].astype(np.float64)
        score: Scores = total.astype(np.float32) * key_scale.reshape(1, -1) + np.float32(0)
    score[np.isnan(score)] = CANONICAL_NAN
    return score


def select_topk(scores: Scores, topk: int) -> NDArray[np.int64]:
    """Slots of the `topk` greatest scores of each row, ascending; -1 fills what is missing."""
    bits = scores.view(np.int32).astype(np.int64)
    ordered = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    best = np.argsort(-ordered, axis=1, kind="stable")[:, :topk]
    found = np.full((len(scores), topk), -1, dtype=np.int64)
    found[:, : best.shape[1]] = np.sort(best, axis=1)
    return found


def overlap(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """The share of slots that two selections [queries, topk] have in common, a row each."""
    shares = [
        len(np.intersect1d(a[a >= 0], b[b >= 0])) / max(1, int((a >= 0).sum()))
        for a, b in zip(left, right, strict=True)
    ]
    return np.array(shares)
