"""Plans: where in the prompt each token of a healthy reply is copied from.

Markup is copied from the system prompt's example or, in two replies of five and tag by tag, from
earlier calls; a hash decides. Replies then depend on many pages, old and young. Values and passages
are copied from where they were planted. What stands nowhere in the prompt the model knows by heart,
and no page can take that from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from dsv4doctor.lab.rendering import RenderedPrompt
from dsv4doctor.lab.tokens import EOS_ID, TokenIds, encode

# Where a token known by heart "stands".
BY_HEART = -1
_ID_BYTES = 8
# So many of five replies take their markup from the system prompt, the others from earlier calls.
_FROM_EXAMPLE_OF_FIVE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A healthy reply: its tokens (the last is EOS) and the place of each in the prompt.

    `stretches` are the steps at which a tag, a name or a value begins, and the number of steps.
    """

    tokens: TokenIds
    places: npt.NDArray[np.intp]
    stretches: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of the reply; `after` is the text that precedes it where it was planted."""

    text: str
    is_tag: bool = False
    after: str | None = None


class Copier:
    """Finds stretches of tokens in one prompt and strings their places together."""

    def __init__(self, prompt: RenderedPrompt) -> None:
        self._prompt = prompt
        self._haystack = prompt.tokens.tobytes()
        self._digest = blake2b(self._haystack, digest_size=16).digest()
        self._tokens: list[TokenIds] = []
        self._places: list[npt.NDArray[np.intp]] = []
        self._chosen = 0
        self._from_example = self._choice(5) < _FROM_EXAMPLE_OF_FIVE

    def _choice(self, count: int) -> int:
        self._chosen += 1
        seed = self._digest + self._chosen.to_bytes(4, "little")
        return int.from_bytes(blake2b(seed, digest_size=4).digest(), "little") % count

    def _found(self, tokens: TokenIds, start: int = 0, end: int | None = None) -> Iterator[int]:
        needle = tokens.tobytes()
        stop = len(self._haystack) if end is None else end * _ID_BYTES
        at = self._haystack.find(needle, start * _ID_BYTES, stop)
        while at >= 0:
            if at % _ID_BYTES == 0:
                yield at // _ID_BYTES
            at = self._haystack.find(needle, at + 1, stop)

    def _tag_place(self, tokens: TokenIds) -> int | None:
        """In the example or in any earlier call."""
        in_calls = [place for span in self._prompt.calls for place in self._found(tokens, *span)]
        example = self._prompt.example
        if example and (not in_calls or self._from_example):
            place = next(self._found(tokens, *example), None)
            if place is not None:
                return place
        return in_calls[self._choice(len(in_calls))] if in_calls else None

    def _place(self, piece: Piece, tokens: TokenIds) -> int | None:
        if piece.is_tag:
            return self._tag_place(tokens)
        if piece.after is not None:
            before = encode(piece.after)
            place = next(self._found(np.concatenate([before, tokens])), None)
            if place is not None:
                return place + len(before)
        places = list(self._found(tokens))
        if places and self._from_example:
            # Names: the tools' own schemas come first in a prompt.
            return places[0]
        return places[self._choice(len(places))] if places else None

    def add(self, piece: Piece) -> None:
        """Append a stretch, copied whole where it can be, else token by token."""
        tokens = encode(piece.text)
        if len(tokens) == 0:
            return
        place = self._place(piece, tokens)
        if place is not None:
            places = place + np.arange(len(tokens))
        else:
            singles = (next(self._found(tokens[i : i + 1]), BY_HEART) for i in range(len(tokens)))
            places = np.fromiter(singles, dtype=np.intp, count=len(tokens))
        self._tokens.append(tokens)
        self._places.append(places.astype(np.intp))

    def finish(self) -> Plan:
        """End with EOS, copied along when it follows what was copied last."""
        end = int(self._places[-1][-1]) + 1 if self._places else 0
        follows = 0 < end < len(self._prompt.tokens) and self._prompt.tokens[end] == EOS_ID
        eos = np.array([EOS_ID], dtype=np.uint64)
        place = np.array([end if follows else BY_HEART], dtype=np.intp)
        lengths = [len(tokens) for tokens in self._tokens]
        return Plan(
            stretches=tuple(accumulate([*lengths, 1], initial=0)),
            tokens=np.concatenate([*self._tokens, eos]),
            places=np.concatenate([*self._places, place]),
        )
