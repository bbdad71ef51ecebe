"""Choices fixed by a seed: a stream of bytes that is the same on every machine and Python version.

`random.Random` promises that only for `random()`; a scenario promises it for every byte it sends.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b, shake_128
from typing import TypeVar

Choice = TypeVar("Choice")

# One squeeze of the hash per this many bytes: prose takes one byte a word.
_BLOCK_BYTES = 4096


def derive(*parts: object) -> bytes:
    """32 bytes that depend on every part and on their order; parts differ if their `repr` does."""
    digest = blake2b(digest_size=32)
    for part in parts:
        encoded = repr(part).encode()
        digest.update(len(encoded).to_bytes(4, "big") + encoded)
    return digest.digest()


class Dice:
    """A stream of choices; two dice made from equal parts choose alike."""

    __slots__ = ("_block", "_blocks", "_place", "_seed")

    def __init__(self, *parts: object) -> None:
        self._seed = derive(*parts)
        self._blocks = 0
        self._block = b""
        self._place = 0

    def byte(self) -> int:
        """The next byte, 0 to 255."""
        if self._place == len(self._block):
            self._block = shake_128(self._seed + self._blocks.to_bytes(8, "big")).digest(
                _BLOCK_BYTES
            )
            self._blocks += 1
            self._place = 0
        value = self._block[self._place]
        self._place += 1
        return value

    def below(self, count: int) -> int:
        """A number from 0 to `count` - 1, as good as even for counts up to 2**32."""
        number = 0
        for _ in range(6):
            number = number << 8 | self.byte()
        return number % count

    def share(self) -> float:
        """A number in [0, 1)."""
        return self.below(1 << 32) / (1 << 32)

    def pick(self, choices: Sequence[Choice]) -> Choice:
        """One of at most 256 choices, for one byte of the stream."""
        return choices[self.byte() % len(choices)]
