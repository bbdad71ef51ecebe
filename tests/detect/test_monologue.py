"""Monologues about the user, as far as a table of replies cannot show it."""

from __future__ import annotations

import pytest
from builders_detect import labels, reply

LONG = 20_000


@pytest.mark.parametrize("unit", ["用户想", "kullanıcı istiyor"])
def test_a_long_unbroken_text_is_read_in_linear_time(unit: str) -> None:
    # Quadratic work would take minutes here.
    text = "用户想要" + unit.replace(" ", "") * LONG
    assert "malformed_arguments" not in labels(reply(text, prompt="Hi"))
