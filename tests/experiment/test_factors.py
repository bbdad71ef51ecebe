"""Settings as people write them, and every refusal by name."""

from __future__ import annotations

import pytest

from dsv4doctor.errors import UsageError
from dsv4doctor.experiment.factors import BY_NAME, FACTORS, Setting, Side, parse_setting


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("concurrency=60", Side.CLIENT),
        ("cache=miss", Side.CLIENT),
        ("context=long", Side.CLIENT),
        ("temperature=0.6", Side.CLIENT),
        ("index_k=bf16", Side.SERVER),
        ("hicache=off", Side.SERVER),
        ("war_barrier=coarse", Side.SERVER),
        ("--mem-fraction-static=0.8", Side.SERVER),
        ("SGLANG_RADIX_FORCE_MISS=1", Side.SERVER),
    ],
)
def test_settings_are_read(text: str, side: Side) -> None:
    found = parse_setting(text)
    assert str(found) == text
    assert found.side is side


def test_spaces_and_leading_zeros_do_not_matter() -> None:
    assert parse_setting(" concurrency = 060 ") == parse_setting("concurrency=60")


def test_flags_and_variables_are_told_apart() -> None:
    assert parse_setting("--page-size=256").is_flag
    assert parse_setting("SGLANG_X=1").is_variable
    assert not parse_setting("hicache=on").is_flag
    assert not parse_setting("hicache=on").is_variable


def test_a_value_may_hold_an_equals_sign() -> None:
    found = Setting(factor="SGLANG_X", value="a=b", side=Side.SERVER)
    assert parse_setting("SGLANG_X=a=b") == found


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("hicache", "no factor=value"),
        ("hicache=", "no factor=value"),
        ("=on", "no factor=value"),
        ("", "no factor=value"),
        ("hicach=on", "hicach"),
        ("hicache=maybe", "hicache cannot be 'maybe'"),
        ("index_k=int8", "index_k cannot be 'int8'"),
        ("concurrency=0", "concurrency"),
        ("concurrency=-3", "concurrency"),
        ("concurrency=²", "concurrency"),
        ("temperature=hot", "temperature"),
        ("temperature=nan", "temperature"),
        ("-x=1", "-x"),
    ],
)
def test_what_does_not_exist_is_named(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        parse_setting(text)
    assert caught.value.hint


def test_every_factor_has_one_name_and_a_summary() -> None:
    assert len(BY_NAME) == len(FACTORS)
    assert all(factor.summary for factor in FACTORS)
