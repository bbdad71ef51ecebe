"""Text to token ids and back, without loss and without a vocabulary: an id *is* its piece.

Pieces are short on purpose (about 4 characters in English prose, as a real tokenizer's): a word
with the space before it, in chunks; up to four digits; a DeepSeek marker whole; anything else one
character. The low 7 bytes of an id are the piece in UTF-8, the top byte its length, so ids are the
same in every process and whatever page they are read from. Markers set the top bit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

TokenIds = npt.NDArray[np.uint64]

BOS = "<｜begin▁of▁sentence｜>"
EOS = "<｜end▁of▁sentence｜>"
USER = "<｜User｜>"
ASSISTANT = "<｜Assistant｜>"
DSML = "｜DSML｜"
THINK = "<think>"
END_OF_THINKING = "</think>"
MARKERS = (BOS, EOS, USER, ASSISTANT, DSML, THINK, END_OF_THINKING)

_MAX_PIECE_BYTES = 7
_LENGTH_SHIFT = 56
_MARKER_BIT = 1 << 63
_MARKER_IDS = {marker: _MARKER_BIT | index for index, marker in enumerate(MARKERS)}
EOS_ID = _MARKER_IDS[EOS]

# Five letters and the space before them: 4 characters a token over the scenarios' prose.
_PIECES = re.compile(
    "|".join(re.escape(marker) for marker in MARKERS) + r"| ?[^\W_]{1,5}| ?[^\w\s]|[\s\S]"
)


@lru_cache(maxsize=1 << 17)
def _ids_of_piece(piece: str) -> tuple[int, ...]:
    marker = _MARKER_IDS.get(piece)
    if marker is not None:
        return (marker,)
    encoded = piece.encode("utf-8", "surrogatepass")
    if len(encoded) <= _MAX_PIECE_BYTES:
        return (len(encoded) << _LENGTH_SHIFT | int.from_bytes(encoded, "little"),)
    return tuple(token for character in piece for token in _ids_of_piece(character))


# A conversation is sent anew with every turn: its older messages are encoded once.
@lru_cache(maxsize=4096)
def encode(text: str) -> TokenIds:
    """The ids of `text`; `decode` of them is `text` again. The array is read-only."""
    ids = [token for piece in _PIECES.findall(text) for token in _ids_of_piece(piece)]
    array = np.array(ids, dtype=np.uint64)
    array.flags.writeable = False
    return array


def piece_of(token: int) -> str:
    """The text of one id."""
    if token & _MARKER_BIT:
        return MARKERS[token ^ _MARKER_BIT]
    length = token >> _LENGTH_SHIFT
    return token.to_bytes(8, "little")[:length].decode("utf-8", "surrogatepass")


def decode(tokens: Iterable[int]) -> str:
    """The text of many ids."""
    return "".join(piece_of(int(token)) for token in tokens)
