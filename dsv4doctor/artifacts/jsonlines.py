"""JSON text of anything a run holds, and line files that survive what a killed writer leaves."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path, PurePath
from typing import Any

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


def encode(value: Any, *, indent: int | None = None) -> bytes:
    """`value` as JSON. Lone surrogates are written as escapes, so that they read back as they were;
    NaN and infinities, which JSON lacks, become null; dataclasses become objects.
    """
    try:
        text = _dumps(value, indent=indent, ascii_only=False)
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return _dumps(value, indent=indent, ascii_only=True).encode("ascii")


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


def _loads(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _dumps(value: Any, *, indent: int | None, ascii_only: bool) -> str:
    try:
        return json.dumps(
            value, indent=indent, ensure_ascii=ascii_only, allow_nan=False, default=_plain
        )
    except ValueError as error:
        if isinstance(error, UnicodeEncodeError):
            raise
        return json.dumps(_finite(value), indent=indent, ensure_ascii=ascii_only, default=_plain)


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
