"""Arguments for a call that nobody planted: valid against the tool's schema, and always the same.

Strings are words of the user's own message, numbers the first one in it that fits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]{4,}")
_DEEPEST = 6


def _string(schema: Mapping[str, Any], text: str) -> str:
    words = _WORD.findall(text)
    made = max(words, key=len) if words else "text"
    shortest = int(schema.get("minLength", 0))
    while len(made) < shortest:
        made = f"{made} {made}"
    longest = schema.get("maxLength")
    return made if longest is None else made[: int(longest)]


def _number(schema: Mapping[str, Any], text: str, *, whole: bool) -> int | float:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    for found in _NUMBER.findall(text):
        value = float(found)
        fits = (low is None or value > low) and (high is None or value < high)
        if fits and (not whole or value.is_integer()):
            return int(value) if value.is_integer() else value
    if low is not None:
        number = float(low)
        lowest = int(number) if number.is_integer() else number
        return lowest + 1 if "exclusiveMinimum" in schema else lowest
    if high is not None:
        return int(high) - 1
    return 1


def _object(schema: Mapping[str, Any], text: str, depth: int) -> dict[str, Any]:
    properties = schema.get("properties") or {}
    names = [*schema.get("required", ())] or list(properties)[:1]
    return {name: construct(properties.get(name, {}), text, depth + 1) for name in names}


def construct(schema: Any, text: str, depth: int = 0) -> Any:
    """A JSON value that `schema` accepts, made from `text`."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return _string({}, text)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return construct(schema[key][0], text, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0] if kind else "string"
    if kind in ("integer", "number"):
        return _number(schema, text, whole=kind == "integer")
    if kind == "array":
        count = max(1, int(schema.get("minItems", 0)))
        return [construct(schema.get("items", {}), text, depth + 1) for _ in range(count)]
    simple = {"boolean": True, "null": None}
    if kind in simple:
        return simple[kind]
    return _object(schema, text, depth) if kind == "object" else _string(schema, text)
