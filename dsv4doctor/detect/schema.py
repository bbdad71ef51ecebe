"""JSON Schema for tool arguments: the first rule that a value breaks, in one line.

Validators are kept, since a log repeats its tools in every record. No reference is ever fetched,
and a schema's own regular expressions run under a time limit: schemas come from the log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from dsv4doctor.detect.plain_schema import PlainSchema, plain_schema

# Distinct tool schemas in one log; past this the oldest are compiled again.
_KEPT = 512
_PATTERN_TIMEOUT_S = 0.05
_SHOWN = 120
# Types as tools written by hand name them, and words whose members are data, not schemas.
_TYPE_NAMES = {
    "str": "string", "text": "string", "int": "integer", "long": "integer", "float": "number",
    "double": "number", "bool": "boolean", "list": "array", "tuple": "array", "dict": "object",
    "map": "object", "none": "null",
}  # fmt: skip
_ANY_TYPE = frozenset(["any", "mixed", "unknown"])
_DATA_WORDS = frozenset(["enum", "const", "default", "examples"])
_PLAIN: dict[str, PlainSchema | None] = {}


def first_error(schema: Mapping[str, Any], value: dict[str, Any]) -> str | None:
    """What `value` breaks first, with its path; None when it is valid or the schema is unusable."""
    if not schema:
        return None
    try:
        # Written out in C, and two schemas of JSON that are written alike are the same.
        plain = _plain(repr(schema), schema)
        if plain is not None and plain.passes(value):
            return None
        key = json.dumps(schema, sort_keys=True)
        validator = _validator(key)
    except (TypeError, ValueError, RecursionError):
        return None
    return None if validator is None else _first(validator, value)


def _plain(key: str, schema: Mapping[str, Any]) -> PlainSchema | None:
    try:
        return _PLAIN[key]
    except KeyError:
        if len(_PLAIN) >= _KEPT:
            _PLAIN.clear()
        return _PLAIN.setdefault(key, plain_schema(schema))


def _first(validator: Any, value: dict[str, Any]) -> str | None:
    from jsonschema.exceptions import _WrappedReferencingError, best_match

    try:
        error = best_match(validator.iter_errors(value))
    except (_WrappedReferencingError, RecursionError, ArithmeticError, ValueError, TypeError):
        # A reference that leads nowhere or a broken schema says nothing about the reply.
        return None
    if error is None:
        return None
    text = error.message if len(error.message) <= _SHOWN else error.message[: _SHOWN - 1] + "…"
    return f"{error.json_path}: {text}"


@lru_cache(maxsize=_KEPT)
def _validator(key: str) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    schema = _with_null(json.loads(key)) if '"nullable"' in key else json.loads(key)
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        if not kind(kind.META_SCHEMA).is_valid(schema):
            schema = _with_json_types(schema)
        kind.check_schema(schema)
    except SchemaError:
        return None
    except (RecursionError, ValueError, TypeError):
        return None
    timed = extend(kind, {"pattern": _pattern, "multipleOf": _multiple_of})
    return timed(schema, registry=Registry())


def _with_null(schema: Any) -> Any:
    """The schema with OpenAPI's `nullable: true`, which many tools have, in JSON Schema's words."""
    if isinstance(schema, list):
        return [_with_null(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    said = {name: _with_null(member) for name, member in schema.items()}
    if schema.get("nullable") is True and isinstance(said.get("type"), str):
        said["type"] = [said["type"], "null"]
        if isinstance(said.get("enum"), list):
            said["enum"] = [*said["enum"], None]
    return said


def _with_json_types(schema: Any) -> Any:
    """The schema with Python's and Gemini's names of types (`str`, `OBJECT`) in JSON Schema's."""
    if isinstance(schema, list):
        return [_with_json_types(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    said = {
        word: member if word in _DATA_WORDS else _with_json_types(member)
        for word, member in schema.items()
    }
    if isinstance(kind := said.get("type"), str):
        said["type"] = _TYPE_NAMES.get(kind.lower(), kind.lower())
        if said["type"] in _ANY_TYPE:
            del said["type"]
    return said


def _multiple_of(_validator: Any, divisor: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, bool) or not isinstance(instance, int | float):
        return
    # In decimals, as both were written: 19.99 is a multiple of 0.01.
    try:
        rest = Decimal(str(instance)) % Decimal(str(divisor))
    except ArithmeticError:
        # Too many digits to divide: nothing is said of this rule, and others are asked.
        return
    if rest:
        yield ValidationError(f"{instance!r} is not a multiple of {divisor!r}")


def _pattern(_validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    import regex
    from jsonschema import ValidationError

    if not isinstance(instance, str) or not isinstance(pattern, str):
        return
    if pattern.startswith("/^"):
        # Written as JavaScript's literal it would match nothing.
        return
    try:
        found = regex.search(pattern, instance, timeout=_PATTERN_TIMEOUT_S)
    except (regex.error, TimeoutError):
        return
    if found is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")
