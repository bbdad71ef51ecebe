"""Canary values: strings planted in a prompt that say who owns them.

A reply that must repeat a canary proves by it which bytes the model really attended to: its own
(right), its own of an earlier turn (stale), another session's (foreign), or nobody's (damaged).

A code is twelve characters of Crockford's base32 in three groups, `K7F3-QM2X-9DTW`: 60 bits that
hold session (24), turn (8), slot (6) and 22 zero bits, passed through a keyed permutation. Whoever
holds the key reads the owner off the code alone, with no table of what was planted; a code that was
damaged or made with another key decodes with probability 2**-22.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

SESSION_BITS = 24
TURN_BITS = 8
SLOT_BITS = 6
CHECK_BITS = 22
MAX_SESSIONS = 1 << SESSION_BITS
MAX_TURNS = 1 << TURN_BITS
MAX_SLOTS = 1 << SLOT_BITS

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_DIGIT = {character: value for value, character in enumerate(_ALPHABET)}
_GROUPS = 3
_GROUP_LENGTH = 4
_HALF_BITS = (SESSION_BITS + TURN_BITS + SLOT_BITS + CHECK_BITS) // 2
_HALF_MASK = (1 << _HALF_BITS) - 1
# Four rounds make a Feistel network with a keyed pseudo-random function a strong permutation.
_ROUNDS = 4
_GROUP = f"[{_ALPHABET}]{{{_GROUP_LENGTH}}}"
# A look-ahead, so that a code glued to the tail of another is found too.
_CODE = re.compile(f"(?=({'-'.join([_GROUP] * _GROUPS)}))")


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryOwner:
    """Who a canary value was made for; `slot` numbers the canaries of one turn."""

    session: int
    turn: int
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """One value that the reply has to repeat.

    With `tool` set, the `call_index`-th call has to be to `tool` and its argument `argument` has to
    equal `value` exactly (any JSON value). Without, `content` has to contain `value` (a string).
    `label` is the name under which the prompt planted it, `planted_turn` where.
    """

    label: str
    value: object
    planted_turn: int
    tool: str | None = None
    call_index: int = 0
    argument: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CanarySpan:
    """Where something spelt like a canary code stands in a text: `text[start:end] == code`."""

    start: int
    end: int
    code: str


def encode_canary(key: int, owner: CanaryOwner) -> str:
    """The code of `owner`, like `K7F3-QM2X-9DTW`; no two owners share one under the same key.

    Raises:
        ValueError: if the owner does not fit 24 bits of session, 8 of turn and 6 of slot, or the
            key is no unsigned 64-bit number.
    """
    if not (0 <= owner.session < MAX_SESSIONS):
        raise ValueError(f"session {owner.session} is outside 0..{MAX_SESSIONS - 1}")
    if not (0 <= owner.turn < MAX_TURNS):
        raise ValueError(f"turn {owner.turn} is outside 0..{MAX_TURNS - 1}")
    if not (0 <= owner.slot < MAX_SLOTS):
        raise ValueError(f"slot {owner.slot} is outside 0..{MAX_SLOTS - 1}")
    packed = (owner.session << TURN_BITS | owner.turn) << SLOT_BITS | owner.slot
    return _spell(_permute(key, packed << CHECK_BITS))


def find_canaries(text: str) -> tuple[CanarySpan, ...]:
    """What in `text` is spelt like a code, in order, whoever made it; spans may overlap."""
    return tuple(
        CanarySpan(start=match.start(1), end=match.end(1), code=match.group(1))
        for match in _CODE.finditer(text)
    )


def decode_canary(key: int, text: str) -> CanaryOwner | None:
    """Who the code `text` was made for, or None if it was not made with `key` or is damaged."""
    if _CODE.match(text) is None or len(text) != _GROUPS * (_GROUP_LENGTH + 1) - 1:
        return None
    number = 0
    for character in text.replace("-", ""):
        number = number << 5 | _DIGIT[character]
    packed, check = divmod(_unpermute(key, number), 1 << CHECK_BITS)
    if check:
        return None
    rest, slot = divmod(packed, MAX_SLOTS)
    session, turn = divmod(rest, MAX_TURNS)
    return CanaryOwner(session=session, turn=turn, slot=slot)


def _spell(number: int) -> str:
    count = _GROUPS * _GROUP_LENGTH
    characters = [_ALPHABET[number >> 5 * (count - 1 - place) & 31] for place in range(count)]
    return "-".join(
        "".join(characters[start : start + _GROUP_LENGTH])
        for start in range(0, count, _GROUP_LENGTH)
    )


def _permute(key: int, number: int) -> int:
    left, right = number >> _HALF_BITS, number & _HALF_MASK
    for step in range(_ROUNDS):
        left, right = right, left ^ _round(key, step, right)
    return left << _HALF_BITS | right


def _unpermute(key: int, number: int) -> int:
    left, right = number >> _HALF_BITS, number & _HALF_MASK
    for step in reversed(range(_ROUNDS)):
        left, right = right ^ _round(key, step, left), left
    return left << _HALF_BITS | right


def _round(key: int, step: int, half: int) -> int:
    if not (0 <= key < 1 << 64):
        raise ValueError(f"canary key {key} is no unsigned 64-bit number")
    digest = blake2b(
        half.to_bytes(4, "big") + bytes((step,)), digest_size=4, key=key.to_bytes(8, "big")
    )
    return int.from_bytes(digest.digest(), "big") & _HALF_MASK
