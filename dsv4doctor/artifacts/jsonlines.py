"""JSON text of anything a run holds, and line files that survive what a killed writer leaves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path, PurePath
from typing import Any

import orjson

# Enough line numbers to find the damage; the count says how much more there is.
_NAMED_LINES = 20


@dataclass(slots=True, kw_only=True)
class Damage:
    """What a line file has lost: a torn last line, and lines in it that are no JSON object."""

    torn_lines: int = 0
    unreadable_lines: int = 0
    line_numbers: list[int] = field(default_factory=list)

    def note_unreadable(self, number: int) -> None:
        self.unreadable_lines += 1
        if len(self.line_numbers) < _NAMED_LINES:
            self.line_numbers.append(number)

    def __str__(self) -> str:
        parts = []
        if self.torn_lines:
            parts.append("a torn last line was dropped")
        if self.unreadable_lines:
            named = ", ".join(map(str, self.line_numbers))
            more = ", ..." if self.unreadable_lines > len(self.line_numbers) else ""
            parts.append(f"{self.unreadable_lines} unreadable (line {named}{more})")
        return "; ".join(parts)


def encode(value: Any, *, indent: bool = False) -> bytes:
    """`value` as JSON. Lone surrogates are written as escapes, so that they read back as they were;
    NaN and infinities, which JSON lacks, become null; dataclasses become objects.
    """
    try:
        return orjson.dumps(value, _plain, orjson.OPT_INDENT_2 if indent else None)
    except orjson.JSONEncodeError:
        # orjson refuses lone surrogates and integers beyond 64 bits; the standard library does not.
        width = 2 if indent else None
        return json.dumps(_finite(value), indent=width, default=_plain).encode("ascii")


def read_objects(path: Path, damage: Damage) -> Iterator[dict[str, Any]]:
    """The objects in a line file, in order; what is no object is counted in `damage`, not raised.

    A last line without its newline counts as torn unless it is whole.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            value = _loads(line)
            if isinstance(value, dict):
                yield value
            elif line.endswith(b"\n"):
                damage.note_unreadable(number)
            else:
                damage.torn_lines += 1


def whole_length(path: Path) -> int:
    """Bytes of a line file up to the end of its last whole line; a torn tail lies beyond."""
    size = path.stat().st_size
    with path.open("rb") as file:
        end = size
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            block = file.read(end - start)
            newline = block.rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
    return 0


def loads(text: bytes) -> Any:
    """The JSON value of `text`, lone surrogates and large integers included.

    Raises:
        ValueError: if it is no JSON, or nested beyond what can be read.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        try:
            return json.loads(text)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _loads(line: bytes) -> Any:
    try:
        return loads(line)
    except ValueError:
        return None


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if hasattr(value, "item"):  # a numpy scalar
        return value.item()
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _finite(_plain(value))
    return value
