"""A call's arguments as received, decoded strictly: what JSON says, and what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Python literals where JSON wants true, false, null or double quotes.
_PYTHON_LITERAL = re.compile(r"^\s*\{\s*'|:\s*(?:True|False|None)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """`value` is what could be decoded (None if nothing), `fault` the first rule broken, or None.

    `is_empty` says that nothing at all was sent; `is_cut` that the text is the beginning of a JSON
    object that simply stops, as a cut stream leaves it.
    """

    value: Any = None
    fault: str | None = None
    is_empty: bool = False
    is_cut: bool = False


class _Duplicate(ValueError):
    """An object that names one key twice."""


def decode_arguments(raw: Any) -> Arguments:
    """Decode the `arguments` member of a call; never raises."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return Arguments(fault="the arguments are empty", is_empty=True)
    if isinstance(raw, Mapping):
        return Arguments(value=dict(raw), fault=_surrogate_fault(raw))
    if not isinstance(raw, str):
        return Arguments(fault=f"the arguments are a {type(raw).__name__}, not a string")
    return _decode_text(raw)


def _decode_text(raw: str) -> Arguments:
    value = _plain_object(raw)
    if value is not None:
        return Arguments(value=value)
    return _decode_carefully(raw)


def _plain_object(raw: str) -> dict[str, str] | None:
    """An object of strings alone, by the faster reader; None for anything else.

    That reader takes the last of two equal keys: the quotation marks tell that there are none. It
    refuses lone surrogates, and without numbers there is nothing on which the two differ.
    """
    if "\\\\" in raw:
        return None
    try:
        value = orjson.loads(raw)
    except ValueError:
        return None
    if type(value) is not dict:
        return None
    for member in value.values():
        if type(member) is not str:
            return None
    marks = raw.count('"') - raw.count('\\"')
    return value if marks == 4 * len(value) else None


def _decode_carefully(raw: str) -> Arguments:
    notes: list[str] = []
    try:
        value = json.loads(
            raw,
            object_pairs_hook=lambda pairs: _object(pairs, notes),
            parse_constant=lambda name: _constant(name, notes),
            parse_int=_integer,
        )
    except RecursionError:
        return Arguments(fault="nested too deeply to be read")
    except ValueError as error:
        return Arguments(fault=_syntax_fault(raw, error), is_cut=_is_cut(raw, error))
    if not isinstance(value, dict):
        return Arguments(value=value, fault=_not_an_object(value))
    if notes:
        return Arguments(value=value, fault=notes[0])
    return Arguments(
        value=value,
        fault=_surrogate_fault(value) if _may_hold_surrogate(raw) else None,
    )


def _object(pairs: list[tuple[str, Any]], notes: list[str]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in built if keys.count(key) > 1)
        notes.append(f"the key {twice!r} is there twice")
    return built


def _constant(name: str, notes: list[str]) -> float:
    # Its value is a number all the same: the schema has nothing to add.
    notes.append(f"{name} is not JSON")
    return float(name)


def _integer(digits: str) -> int | float:
    # Python refuses integers of more than 4,300 digits; JSON does not.
    return int(digits) if len(digits) < 4000 else float(digits)


def _not_an_object(value: Any) -> str:
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, dict):
            return "encoded twice: a JSON string that holds the object"
    kind = {str: "a string", list: "an array", bool: "a boolean", type(None): "null"}
    return f"{kind.get(type(value), 'a number')} instead of an object"


def _syntax_fault(raw: str, error: ValueError) -> str:
    if _PYTHON_LITERAL.search(raw):
        return f"Python literals instead of JSON ({error})"
    if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
        return f"text after the end of the object ({error})"
    return f"not JSON ({error})"


def _is_cut(raw: str, error: ValueError) -> bool:
    """True when the decoder ran off the end: the text so far could still have become JSON."""
    if not raw.lstrip().startswith("{") or not isinstance(error, json.JSONDecodeError):
        return False
    if error.msg.startswith("Unterminated string"):
        return True
    rest = raw[error.pos :].strip()
    # A literal or number may be cut in the middle: `tr`, `-`, `12.`.
    return rest == "" or bool(
        re.fullmatch(r"[a-z]{1,5}|-?\d*\.?\d*(?:[eE][+-]?)?|\\u?[0-9a-f]{0,3}", rest)
    )


def _may_hold_surrogate(raw: str) -> bool:
    return "\\u" in raw or (not raw.isascii() and _LONE_SURROGATE.search(raw) is not None)


def _surrogate_fault(value: Any) -> str | None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        return f"a lone surrogate, U+{ord(error.object[error.start]):04X}"
    except (ValueError, TypeError, RecursionError):
        return None
    return None
