"""mix64, splitmix64's finaliser, as device code and in torch; a bijection of 64-bit integers.

z ← (z ⊕ z≫30)·MIX_1;  z ← (z ⊕ z≫27)·MIX_2;  z ⊕ z≫31        (logical shifts, modulo 2^64)
"""

# mypy: disable-error-code="no-untyped-def,untyped-decorator"
# Device code has no Python types; the launchers and references do.

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl

from dsv4doctor.kernels.coefficients import ALPHA, BETA, GOLDEN, MASK64, MIX_1, MIX_2


@triton.jit
def mix64_device(z):
    """mix64 of an integer block, as uint64."""
    z = z.to(tl.uint64)
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


def signed(value: int) -> int:
    """The int64 with the same 64 bits, as torch and kernel arguments want it."""
    value &= MASK64
    return value - (1 << 64) if value >> 63 else value


def shift_right(values: torch.Tensor, bits: int) -> torch.Tensor:
    """Logical shift of int64 elements: torch's own shift copies the sign bit."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def mix64_torch(z: torch.Tensor) -> torch.Tensor:
    """mix64 of int64 elements that hold unsigned 64-bit patterns."""
    z = (z ^ shift_right(z, 30)) * signed(MIX_1)
    z = (z ^ shift_right(z, 27)) * signed(MIX_2)
    return z ^ shift_right(z, 31)


@functools.cache
def coefficient_tensors(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """(α, β) as int64 tensors on `device`, copied there once: a launch must not wait for a copy."""
    alpha = torch.tensor([signed(a) for a in ALPHA], dtype=torch.int64)
    beta = torch.tensor([signed(b) for b in BETA], dtype=torch.int64)
    return alpha.to(device), beta.to(device)


def origin_tensor(tag: int, count: int, first_position: int, device: torch.device) -> torch.Tensor:
    """What is added to the accumulators of `count` pages from `first_position` on, as int64."""
    positions = torch.arange(1, count + 1, dtype=torch.int64, device=device) + first_position
    return positions * signed(GOLDEN) + signed(tag)
