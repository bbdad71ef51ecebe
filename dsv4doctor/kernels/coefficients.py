"""The constants of the page digest, and the bijection that finishes it.

Over little-endian 32-bit words `w[r, c]` of token row `r`, with the row's scale words `s[r, k]`:

    R[r] = Σ_c β[c]·w[r, c] + Σ_k β[SCALE + k]·s[r, k]      token digest
    P    = Σ_r α[r]·R[r]                                     page accumulator
    D    = mix64(P + tag(layout) + (position + 1)·φ)         page digest

all modulo 2^64. α and β are odd and drawn by splitmix64 from `SEED`, the first seed for which every
product a = α[r]·β[c] satisfies: a_i ± a_j is divisible by at most 2^32 for i ≠ j. From that follows
with certainty that any change inside one word, any two flipped bits and any swap of two different
words change the digest. `tests/kernels/test_digest_coefficients.py` checks the condition.

Because mix64 is a bijection, P is recoverable from D, so a digest salted by position still answers
"whose bytes are these?".
"""

from __future__ import annotations

MASK64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, splitmix64's increment
MIX_1 = 0xBF58476D1CE4E5B9  # splitmix64's two multipliers (Steele, Lea, Flood 2014)
MIX_2 = 0x94D049BB133111EB
UNMIX_1 = pow(MIX_1, -1, 1 << 64)
UNMIX_2 = pow(MIX_2, -1, 1 << 64)

MAX_ROWS = 256  # token rows of the largest page (sliding window, 256 slots)
MAX_COLUMNS = 144  # words of the widest row (576 latent bytes)
SCALE_COLUMN = MAX_COLUMNS  # β's index of the first scale word
MAX_SCALE_WORDS = 2  # a latent row has 8 scale bytes
SEED = 0


def mix64(value: int) -> int:
    """splitmix64's finaliser, a bijection of the 64-bit integers."""
    value &= MASK64
    value = ((value ^ (value >> 30)) * MIX_1) & MASK64
    value = ((value ^ (value >> 27)) * MIX_2) & MASK64
    return value ^ (value >> 31)


def unmix64(value: int) -> int:
    """The inverse of `mix64`."""
    value &= MASK64
    value = value ^ (value >> 31) ^ (value >> 62)
    value = (value * UNMIX_2) & MASK64
    value = value ^ (value >> 27) ^ (value >> 54)
    value = (value * UNMIX_1) & MASK64
    return value ^ (value >> 30) ^ (value >> 60)


def odd_stream(seed: int, count: int) -> tuple[int, ...]:
    """`count` odd 64-bit numbers: splitmix64 from `seed`, lowest bit set."""
    return tuple(mix64(seed + (i + 1) * GOLDEN) | 1 for i in range(count))


def draw(seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(α, β) of `seed`: one α a row, one β a value column, then one β a scale word."""
    stream = odd_stream(seed, MAX_ROWS + MAX_COLUMNS + MAX_SCALE_WORDS)
    return stream[:MAX_ROWS], stream[MAX_ROWS:]


ALPHA, BETA = draw(SEED)


def layout_tag(code: int) -> int:
    """The constant that keeps digests of different layouts apart; `code` is never reused."""
    return mix64(code * GOLDEN)


def page_origin(tag: int, position: int) -> int:
    """What is added to a page's accumulator before mixing, for the page at `position`."""
    return (tag + (position + 1) * GOLDEN) & MASK64


def accumulator_of(digest: int, tag: int, position: int) -> int:
    """The page accumulator P that yields `digest` at `position`."""
    return (unmix64(digest) - page_origin(tag, position)) & MASK64
