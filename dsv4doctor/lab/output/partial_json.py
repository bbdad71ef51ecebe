"""The value that the beginning of a JSON text already determines, as SGLang's parser reads it.

SGLang reads unfinished arguments with the package `partial-json-parser`. What counts here is which
beginnings it refuses: a lone `-` and anything that cannot start a JSON value. On SGLang <= 0.5.17
that refusal escapes from the tool parser, and the raw markup reaches `content`.
"""

from __future__ import annotations

import json
import re

_NUMBER_CHARS = re.compile(r"[-0-9.eE+]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_SPACE = re.compile(r"\s*")
_ESCAPE_TAIL = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")
_WORDS: tuple[tuple[str, object], ...] = (
    ("null", None),
    ("true", True),
    ("false", False),
    ("NaN", float("nan")),
    ("Infinity", float("inf")),
    ("-Infinity", float("-inf")),
)


class NotJson(ValueError):
    """The text is not the beginning of a JSON value, or of none that has a value yet."""


class BrokenJson(ValueError):
    """An array, an object or a string is broken inside: every release takes the text as it is."""


class _Unfinished(Exception):
    """The text ended before this value had one; what encloses it leaves it out."""


def read_partial(text: str) -> object:
    """The value of the JSON text that begins with `text`; what follows a whole value is ignored.

    Raises:
        NotJson: if `text` begins no JSON value, or too little of one (`-`).
        BrokenJson: if it begins one that is broken inside.
    """
    text = text.strip()
    try:
        return _value(text, 0)[0]
    except _Unfinished as unfinished:
        raise NotJson(f"no value yet in {text!r}") from unfinished


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int) -> tuple[object, int, bool]:
    """The value at `at`, where it ends, and whether it is whole."""
    if at >= len(text):
        raise _Unfinished
    head = text[at]
    if head == '"':
        return _string(text, at)
    if head == "[":
        return _array(text, at)
    if head == "{":
        return _object(text, at)
    rest = text[at:]
    if rest == "-":
        raise _Unfinished
    for word, value in _WORDS:
        if rest.startswith(word):
            return value, at + len(word), True
        if word.startswith(rest):
            return value, len(text), False
    if head == "-" or head.isdigit():
        return _number(text, at)
    raise NotJson(f"{rest[:12]!r} begins no JSON value")


def _member(text: str, at: int) -> tuple[object, int, bool]:
    """A value inside an array or an object."""
    try:
        return _value(text, at)
    except NotJson as error:
        raise BrokenJson(str(error)) from error


def _string(text: str, at: int) -> tuple[object, int, bool]:
    end = at + 1
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    whole = end < len(text)
    raw = text[at + 1 : end] if whole else _ESCAPE_TAIL.sub("", text[at + 1 :])
    try:
        return json.loads(f'"{raw}"'), end + 1, whole
    except ValueError as error:
        raise BrokenJson(f"{raw!r} is no JSON string") from error


def _number(text: str, at: int) -> tuple[object, int, bool]:
    run = _NUMBER_CHARS.match(text, at)
    match = _NUMBER.match(text, at)
    if run is None or match is None:
        raise _Unfinished
    return json.loads(match.group()), run.end(), run.end() < len(text)


def _array(text: str, at: int) -> tuple[object, int, bool]:
    items: list[object] = []
    at = _skip_space(text, at + 1)
    while at < len(text) and text[at] != "]":
        try:
            value, at, whole = _member(text, at)
        except _Unfinished:
            return items, len(text), False
        items.append(value)
        at = _skip_space(text, at)
        if not whole or at >= len(text):
            return items, len(text), False
        if text[at] not in ",]":
            raise BrokenJson(f"{text[at]!r} where ',' or ']' has to stand")
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    return items, at + 1, at < len(text)


def _object(text: str, at: int) -> tuple[object, int, bool]:
    members: dict[str, object] = {}
    at = _skip_space(text, at + 1)
    while at < len(text) and text[at] != "}":
        if text[at] != '"':
            raise BrokenJson(f"{text[at]!r} where a key has to stand")
        key, at, whole = _string(text, at)
        at = _skip_space(text, at)
        if not whole or at >= len(text):
            return members, len(text), False
        if text[at] != ":":
            raise BrokenJson(f"{text[at]!r} where ':' has to stand")
        try:
            value, at, whole = _member(text, _skip_space(text, at + 1))
        except _Unfinished:
            return members, len(text), False
        members[str(key)] = value
        at = _skip_space(text, at)
        if not whole or at >= len(text):
            return members, len(text), False
        if text[at] not in ",}":
            raise BrokenJson(f"{text[at]!r} where ',' or '}}' has to stand")
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    return members, at + 1, at < len(text)
