"""Sizes and counts as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4doctor.errors import UsageError
from dsv4doctor.units import format_bytes, format_tokens, many, parse_bytes, parse_tokens


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("26.9GiB", 28_883_655_065),
        ("26.9 gib", 28_883_655_065),
        ("10G", 10 << 30),
        ("80GB", 80 * 10**9),
        ("512", 512),
        ("1_000", 1000),
        ("9007199254740993", 9_007_199_254_740_993),
    ],
)
def test_bytes(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize(("text", "count"), [("32K", 32768), ("1M", 1 << 20), ("4096", 4096)])
def test_tokens(text: str, count: int) -> None:
    assert parse_tokens(text) == count


@pytest.mark.parametrize("text", ["", "abc", "-1", "1.2.3", "5 parsecs", "1e9"])
def test_no_size(text: str) -> None:
    with pytest.raises(UsageError, match=r"no size"):
        parse_bytes(text)


@given(st.integers(0, 1 << 60))
def test_plain_numbers_are_exact(count: int) -> None:
    assert parse_bytes(str(count)) == count


def test_printed() -> None:
    assert format_bytes(28_883_655_065) == "26.90 GiB"
    assert format_bytes(-1_288_495_847) == "-1.20 GiB"
    assert format_bytes(13_329_191) == "12.7 MiB"
    assert format_bytes(512) == "512 B"
    assert format_tokens(3_692_288) == "3,692,288"


@pytest.mark.parametrize(
    ("number", "words", "said"),
    [
        (1, ("pulse",), "1 pulse"),
        (0, ("pulse",), "0 pulses"),
        (2000, ("pulse",), "2,000 pulses"),
        (1, ("reply", "replies"), "1 reply"),
        (2, ("reply", "replies"), "2 replies"),
    ],
)
def test_one_is_one_and_more_are_many(number: int, words: tuple[str, ...], said: str) -> None:
    assert many(number, *words) == said
