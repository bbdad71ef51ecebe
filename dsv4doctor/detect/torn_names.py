"""Ideographs inside names of code: `ab极ort`, `sign极al`.

A name may be written in Chinese, or begin or end so; nobody puts one ideograph between the letters
of a word. In prose such a word is told as a wedge; code is no prose.
Source: https://github.com/deepseek-ai/DeepSeek-V3/issues/849.
"""

from __future__ import annotations

import re

from dsv4doctor.detect.hints import hint
from dsv4doctor.detect.scripts import families_in, letters_of
from dsv4doctor.detect.subject import Text

TORN_NAME = hint(rb"[a-z][\xe3-\xe9][\x80-\xbf][\x80-\xbf][a-z]")
_TORN = re.compile(r"[A-Za-z]{2,}[\u3400-\u9fff][a-z]{2,}")
_LEAST = 2
# Ideographs beside them, comments' mostly: a text with more is written in them too.
_OTHERS = 6


def torn_names(text: Text, prompt: str) -> tuple[int, int] | None:
    """Where in the code of a text the first of several such names stands."""
    found = [m.span() for m in _TORN.finditer(text.text) if text.code.covers(m.start())]
    if len(found) < _LEAST or "CJK" in families_in(prompt):
        return None
    return found[0] if letters_of({"CJK"}, text.text) <= len(found) + _OTHERS else None
