"""Three of vLLM's operators in plain torch, with its signatures: all write into what they get."""

from __future__ import annotations

import torch


def rotary_embedding(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor | None,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
) -> None:
    """Rotate `query` and `key`, [tokens, heads * head_size], by their positions, in place.

    `cos_sin_cache` is [positions, rotary width]: the cosines, then the sines.
    """
    cosines, sines = cos_sin_cache[positions.flatten()].chunk(2, dim=-1)
    cosines, sines = cosines.unsqueeze(1), sines.unsqueeze(1)
    for rows in (query, key):
        if rows is not None:
            heads = rows.view(positions.numel(), -1, head_size)
            _rotate(heads[..., : 2 * cosines.shape[-1]], cosines, sines, is_neox)


def _rotate(heads: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, is_neox: bool) -> None:
    """Pairs are (i, i + half) as GPT-NeoX has them, or neighbours as GPT-J has them."""
    half = heads.shape[-1] // 2
    if is_neox:
        first, second = heads[..., :half], heads[..., half:]
    else:
        first, second = heads[..., 0::2], heads[..., 1::2]
    turned_first = first * cosines - second * sines
    turned_second = second * cosines + first * sines
    first.copy_(turned_first)
    second.copy_(turned_second)


def rms_norm(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    """`out` becomes `x` over its root mean square, times `weight`."""
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + epsilon)
    out.copy_((wide * scale).to(x.dtype) * weight)


def fused_add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> None:
    """`residual` becomes the sum of both, `x` its norm."""
    residual.add_(x)
    rms_norm(x, residual, weight, epsilon)
