"""Where the letters of texts may be unlikely: the cheap pass before `drawn_words.unlikely_row`.

Every run of letters is looked up as part of one array; thirty-two characters whose sum is low are
looked at word by word afterwards. Capitals and what is no letter say nothing here, so that code and
codes of mixed letters pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from dsv4doctor.detect.letters import ALPHABETS, LEVELS, ORDER, letter_of, table_of

# Characters that are summed up, half of a stretch; and the sum of a stretch, in half bits, from
# which on it is looked at: every row of 24 letters drawn evenly is lower but one in a hundred, and
# so are one in sixty of sound texts, half of them base64. Other alphabets are looked at in threes.
_BLOCK = 16
_LOW, _LOW_OF_THREES = -50, -45
# What parts words; it is 0, letters are 1 and more, and everything else comes after them.
_PARTS = " \n\r\t.,;:!?()\"'"
# Arrays of so many bytes stay in the processor's caches.
_CHUNK = 1 << 15
# The alphabets lie before it; what comes after is no letter of theirs.
_LAST = 0x1FFF


def latin_suspects(texts: Sequence[str], raws: Sequence[bytes]) -> list[list[int]]:
    """For each text, the characters from which on a stretch may hold an unlikely row in Latin;
    `raws` are the texts in UTF-8."""
    if not texts:
        return []
    # A block of blanks before each and a whole number of blocks: no stretch holds two texts.
    padded = [b" " * _BLOCK + raw + b" " * (2 * _BLOCK - len(raw) % _BLOCK) for raw in raws]
    low = _low_of_bytes(b"".join(padded))
    if not low:
        return [[] for _ in texts]
    places, begin = [], 0
    for raw in padded:
        end = begin + len(raw) - _BLOCK
        places.append([max(0, at - begin - _BLOCK) for at in low if begin <= at < end])
        begin = end + _BLOCK
    return [
        found if len(raw) == len(text) else list(_in_characters(raw, found))
        for text, raw, found in zip(texts, raws, places, strict=True)
    ]


def _in_characters(raw: bytes, places: Sequence[int]) -> Iterator[int]:
    """The whole characters before each place; the places ascend."""
    before = count = 0
    for place in places:
        at = place
        while at < len(raw) and raw[at] & 0xC0 == 0x80:
            at -= 1
        count += len(raw[before:at].decode("utf-8", "ignore"))
        before = at
        yield count


def suspects(text: str, script: str) -> list[int]:
    """The characters from which on a stretch may hold an unlikely row in another alphabet."""
    import numpy as np

    kinds, scores, size = _of_threes(script)
    padded = (text + " " * (2 * _BLOCK + 2 - len(text) % _BLOCK)).encode(
        "utf-32-le", "surrogatepass"
    )
    letters = kinds[np.minimum(np.frombuffer(padded, np.uint32), _LAST)]
    runs = (letters[:-2] * size + letters[1:-1]) * size + letters[2:]
    return _low(_sums(scores.take(runs)), _LOW_OF_THREES)


def _sums(scores: Any) -> Any:
    """The sum of each block; `sum` itself takes twice as long over rows so short."""
    import numpy as np

    return np.einsum("ij->i", scores.reshape(-1, _BLOCK), dtype=np.int16)


def _low(blocks: Any, bound: int) -> list[int]:
    stretches = blocks[:-1] + blocks[1:]
    return [at * _BLOCK for at in (stretches <= bound).nonzero()[0].tolist()]


def _low_of_bytes(joined: bytes) -> list[int]:
    import numpy as np

    numbers, scores, size = _of_fours()
    sums = []
    for at in range(0, len(joined), _CHUNK):
        # Three bytes more: every run begins in the chunk.
        chunk = joined[at : at + _CHUNK + 3].ljust(min(_CHUNK, len(joined) - at) + 3)
        letters = np.frombuffer(chunk.translate(numbers), np.uint8).astype(np.uint16)
        # Reckoned rather than looked up: only the scores need a table beyond the nearest cache.
        twos = (letters[:-1] * size + letters[1:]).astype(np.uint32)
        each: Any = scores.take(twos[:-2] * (size * size) + twos[2:])
        sums.append(_sums(each))
    return _low(np.concatenate(sums), _LOW)


@lru_cache(maxsize=1)
def _of_fours() -> tuple[bytes, Any, int]:
    """The number of every byte, the score of every four such numbers, and how many numbers there
    are."""
    scores, size = _scores("Latin")
    return bytes(_numbers("Latin", 256).tolist()), scores, size


@lru_cache(maxsize=len(ALPHABETS))
def _of_threes(script: str) -> tuple[Any, Any, Any]:
    """The number of every character, the score of every three numbers, how many numbers there
    are."""
    import numpy as np

    scores, size = _scores(script)
    return _numbers(script, _LAST + 1).astype(np.uint32), scores, np.uint32(size)


def _numbers(script: str, characters: int) -> Any:
    """The number of every character: of a letter, if it is a small one of the script."""
    import numpy as np

    numbers = np.full(characters, len(ALPHABETS[script]) + 1)
    numbers[[ord(part) for part in _PARTS]] = 0
    for code in range(characters):
        letter = letter_of(chr(code)) if chr(code).isalpha() and not chr(code).isupper() else None
        if letter and letter[0] == script and (script != "Latin" or code < 0x80):
            numbers[code] = letter[1]
    return numbers


def _scores(script: str) -> tuple[Any, int]:
    """The half bits of every run of numbers, in one row, and how many numbers there are."""
    import numpy as np

    order, letters = ORDER[script], len(ALPHABETS[script]) + 1
    known = np.array(LEVELS, np.int8)[np.frombuffer(table_of(script), np.uint8)]
    known = known.reshape((letters,) * order)
    # What stands before the beginning of a word says nothing of it.
    for before in range(order - 2, -1, -1):
        within: list[Any] = [slice(None)] * order
        within[before] = 0
        known[tuple(within)] = known[(0,) * (before + 1)]
    known[..., 0, 0] = 0
    scores = np.zeros((letters + 1,) * order, np.int8)
    scores[(slice(0, letters),) * order] = known
    return scores.reshape(-1), letters + 1
