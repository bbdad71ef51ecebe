"""The schemas that most tools have: an object of plain properties. Valid values pass at once.

Only says yes: a value that passes here is valid by JSON Schema, and whatever does not pass, or a
schema with any other keyword, is for the real validator to judge and to explain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_NOTES = frozenset({"title", "description", "default", "examples"})
_OBJECT_WORDS = _NOTES | {"type", "properties", "required", "additionalProperties"}
_PROPERTY_WORDS = _NOTES | {"type", "enum"}


def _is_integer(value: Any) -> bool:
    # 1.0 is an integer to newer drafts only: left to the validator.
    return isinstance(value, int) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": _is_integer,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainSchema:
    """What a plain schema asks for."""

    required: frozenset[str]
    checks: Mapping[str, Callable[[Any], bool]]
    open: bool

    def passes(self, value: Mapping[str, Any]) -> bool:
        """True only where `value` is valid."""
        if not self.required <= value.keys():
            return False
        for key, member in value.items():
            check = self.checks.get(key)
            if not self.open if check is None else not check(member):
                return False
        return True


def plain_schema(schema: Mapping[str, Any]) -> PlainSchema | None:
    """The schema in plain form; None where it uses anything beyond that."""
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    extra = schema.get("additionalProperties", True)
    if (
        not schema.keys() <= _OBJECT_WORDS
        or schema.get("type") != "object"
        or not isinstance(properties, dict)
        or not isinstance(required, list)
        or not all(isinstance(name, str) for name in required)
        or not isinstance(extra, bool)
    ):
        return None
    checks: dict[str, Callable[[Any], bool]] = {}
    for name, member in properties.items():
        check = _check_of(member)
        if check is None:
            return None
        checks[name] = check
    return PlainSchema(required=frozenset(required), checks=checks, open=extra)


def _check_of(member: Any) -> Callable[[Any], bool] | None:
    if not isinstance(member, dict) or not member.keys() <= _PROPERTY_WORDS:
        return None
    kind = member.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        return None
    if "enum" not in member:
        return _TYPES[kind]
    allowed = member["enum"]
    if kind != "string" or not isinstance(allowed, list):
        return None
    return lambda value: isinstance(value, str) and value in allowed
