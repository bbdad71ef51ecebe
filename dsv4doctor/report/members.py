"""Members of JSON that may be anything: what is not of the wanted kind reads as absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def number(value: Any) -> float | None:
    """`value` if it is a number, else None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def integer(summary: Mapping[str, Any], key: str) -> int:
    """The count under `key`; 0 where there is none, which for a count is the truth."""
    value = summary.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
