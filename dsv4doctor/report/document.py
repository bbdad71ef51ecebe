"""What a report says, before anybody decides how it looks.

Every string in it is untrusted: it may have come from a model. Formats make text harmless and add
all styling; a report holds no markup of any kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Tone(StrEnum):
    """How a sentence is meant: good news, bad news, a caution, or neither."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    CAUTION = "caution"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A sentence or two."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names with their values, one a line."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A table's column; numbers stand at the right, verbatim text is shown as it was received."""

    title: str
    is_number: bool = False
    is_verbatim: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of as many cells as there are columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """One group and its rate, in the form of `rate.Rate` as JSON types."""

    group: str
    rate: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateTable:
    """A rate with its interval for each group; `of` names what is counted (`responses`)."""

    caption: str
    group_title: str
    of: str
    rows: tuple[RateRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verbatim:
    """Text as it was received, under a caption; shown as text, whatever it holds."""

    caption: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line to try, and what it would tell."""

    line: str
    why: str


Block = Note | Facts | Table | RateTable | Verbatim | Command


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A title and what stands under it; `level` 2 is a part of the section before.

    `key` names a section that a format may replace by something richer.
    """

    title: str
    blocks: tuple[Block, ...]
    level: int = 1
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One run, told. `verdict_sentence` can stand alone; `data` is the command's JSON object."""

    command: str
    title: str
    verdict: str
    verdict_sentence: str
    tone: Tone
    sections: tuple[Section, ...]
    data: Mapping[str, Any]
    findings: tuple[Mapping[str, Any], ...] = ()
    exit_code: int | None = None
