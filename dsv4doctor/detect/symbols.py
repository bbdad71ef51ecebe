"""Runs of symbols that have nothing to do with each other, as a broken decoder emits them."""

from __future__ import annotations

import re

# Symbols of prose and mathematics come alone or in families; boxes, arrows, operators, emoji,
# Braille and block elements are drawn with. What is left is what keyboards and code pages have at
# their edges.
ODD = frozenset("¶§°¬µ¤¦¨¯´¸ªº†‡※⌂⌐◊✱ﬀﬁﬂﬃﬄﬅﬆ⁂⁎℮℗℠™®©¿¡‰‱₪₫₭₮₯₰₱₲₳₴₵‹›‚„ˆ˜ƒ∂∆∏∑√∞∫≈≠≤≥⌠⌡╪╫╬")
_ODD = re.compile(f"[{''.join(sorted(ODD))}]")
_RUN = re.compile(r"(?:[^\w\s]|[ﬀ-ﬆµªºƒ]|[ \t])+")
MIN_SYMBOLS = 8
MIN_DISTINCT = 5


def symbol_noise(text: str) -> tuple[int, int] | None:
    """The first run of at least eight odd symbols of five or more kinds; None if there is none."""
    if len(_ODD.findall(text)) < MIN_SYMBOLS:
        return None
    for match in _RUN.finditer(text):
        if match.end() - match.start() < MIN_SYMBOLS:
            continue
        odd = _ODD.findall(match.group())
        visible = len(match.group().replace(" ", "").replace("\t", ""))
        if len(odd) >= MIN_SYMBOLS and len(set(odd)) >= MIN_DISTINCT and len(odd) >= 0.7 * visible:
            return match.span()
    return None
