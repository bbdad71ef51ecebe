"""The prefix of every SGLang log line: when, and which rank said it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PREFIX = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)((?: [A-Z_]+\d+)*)\]\s?(.*)", re.DOTALL)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One log line: `when` and `rank` are empty where the line has no prefix of SGLang's."""

    when: str
    rank: str
    message: str


def split_prefix(text: str) -> Line:
    """`text` apart: the last prefix in it counts, so container and journal prefixes fall away."""
    text = _ANSI.sub("", text.rstrip("\r\n"))
    match = _PREFIX.search(text)
    if match is None:
        return Line(when="", rank="", message=text)
    return Line(when=match[1], rank=match[2].strip(), message=match[3])
