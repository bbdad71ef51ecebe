"""The tokenizer loses nothing, keeps markers whole, and is about as fine as a real one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.lab.tokens import EOS, EOS_ID, MARKERS, decode, encode, piece_of
from dsv4doctor.load.dice import Dice
from dsv4doctor.load.prose import sentences

_ANY = st.text(st.characters(), max_size=60)


@given(_ANY)
def test_every_text_comes_back(text: str) -> None:
    assert decode(encode(text)) == text


@given(st.lists(st.one_of(_ANY, st.sampled_from(MARKERS)), max_size=8))
def test_every_text_with_markers_comes_back(parts: list[str]) -> None:
    assert decode(encode("".join(parts))) == "".join(parts)


def test_markers_are_one_token() -> None:
    for marker in MARKERS:
        assert [piece_of(int(token)) for token in encode(f"a{marker}b")] == ["a", marker, "b"]
    assert int(encode(EOS)[0]) == EOS_ID


def test_ids_do_not_depend_on_what_stands_around() -> None:
    inside = encode('">K7F3-QM2X-9DTW</')[2:-2]
    planted = encode("is `K7F3-QM2X-9DTW`.")[2:-2]
    assert inside.tolist() == planted.tolist()


def test_prose_has_about_four_characters_a_token() -> None:
    text = " ".join(sentences(Dice("tokens"), 20_000))
    assert 3.5 <= len(text) / len(encode(text)) <= 4.5


def test_long_and_odd_scripts_split_into_characters() -> None:
    assert [piece_of(int(token)) for token in encode("北の港🌊")] == ["北", "の", "港", "🌊"]
