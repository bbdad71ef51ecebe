"""Canary codes prove their owner, and only with the right key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.canary import (
    MAX_SESSIONS,
    MAX_SLOTS,
    MAX_TURNS,
    CanaryOwner,
    decode_canary,
    encode_canary,
    find_canaries,
)

OWNERS = st.builds(
    CanaryOwner,
    session=st.integers(0, MAX_SESSIONS - 1),
    turn=st.integers(0, MAX_TURNS - 1),
    slot=st.integers(0, MAX_SLOTS - 1),
)
KEYS = st.integers(0, 2**64 - 1)
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@given(key=KEYS, owner=OWNERS)
def test_a_code_tells_its_owner(key: int, owner: CanaryOwner) -> None:
    assert decode_canary(key, encode_canary(key, owner)) == owner


@given(key=KEYS, owner=OWNERS, place=st.integers(0, 11), shift=st.integers(1, 31))
def test_a_code_with_one_character_changed_has_no_owner(
    key: int, owner: CanaryOwner, place: int, shift: int
) -> None:
    code = encode_canary(key, owner)
    at = place + place // 4
    other = ALPHABET[(ALPHABET.index(code[at]) + shift) % 32]
    # One in 4,194,304 damaged codes passes; the sample here never holds one.
    assert decode_canary(key, code[:at] + other + code[at + 1 :]) is None


@given(key=KEYS, owner=OWNERS)
def test_another_key_reads_nothing(key: int, owner: CanaryOwner) -> None:
    assert decode_canary(key ^ 1, encode_canary(key, owner)) is None


@given(before=st.text(), after=st.text(), owner=OWNERS)
def test_a_code_is_found_in_any_text(before: str, after: str, owner: CanaryOwner) -> None:
    code = encode_canary(7, owner)
    text = before + code + after
    spans = find_canaries(text)
    assert all(text[span.start : span.end] == span.code for span in spans)
    assert owner in {decode_canary(7, span.code) for span in spans}


def test_codes_glued_together_are_all_found() -> None:
    codes = [encode_canary(1, CanaryOwner(session=s, turn=0, slot=0)) for s in range(3)]
    found = [span.code for span in find_canaries("".join(codes)) if decode_canary(1, span.code)]
    assert found == codes


@pytest.mark.parametrize(
    "text", ["", "K7F3", "k7f3-qm2x-9dtw", "K7F3-QM2X-9DTW ", "ILOU-ILOU-ILOU"]
)
def test_what_is_no_code_has_no_owner(text: str) -> None:
    assert decode_canary(0, text) is None


@pytest.mark.parametrize(
    ("session", "turn", "slot"),
    [(-1, 0, 0), (MAX_SESSIONS, 0, 0), (0, MAX_TURNS, 0), (0, 0, MAX_SLOTS), (0, -1, 0)],
)
def test_owners_out_of_range_are_refused(session: int, turn: int, slot: int) -> None:
    with pytest.raises(ValueError, match="outside"):
        encode_canary(0, CanaryOwner(session=session, turn=turn, slot=slot))
