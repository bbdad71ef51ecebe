"""Reads tool-call blocks exactly as DeepSeek's encoders write them, and raises on anything else.

Blanks and line breaks between elements are free; all else is fixed: one block, at the end, closed;
invokes in it; parameters in those, each once, `string="true"` text verbatim, `string="false"` JSON.
Parsers in servers are lenient and guess (`{}`); re-reading with this one shows what was guessed.

Source: `deepseek-recipe` 0.2.0, against which the tests check this reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from dsv4doctor.dsml.generations import (
    DSML,
    GENERATIONS,
    TOOL_CALL_BEGIN,
    TOOL_CALL_END,
    TOOL_CALLS_BEGIN,
    TOOL_CALLS_END,
    TOOL_SEP,
    Generation,
)

END_OF_SENTENCE = "<｜end▁of▁sentence｜>"
_NAME = r"[^\"<>\n]{1,256}"
_V3_TYPE = "function"
_V3_ARGUMENTS = re.compile(r"(?P<name>[^\n]{1,256})\n```json\n(?P<json>.*)\n```\Z", re.DOTALL)


class DsmlError(ValueError):
    """Markup that breaks the grammar; `offset` is the character where it does."""

    def __init__(self, problem: str, offset: int) -> None:
        super().__init__(f"{problem} at character {offset}")
        self.problem = problem
        self.offset = offset


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictCall:
    """One call: its name and its arguments as an object."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictReply:
    """What a text says: the prose before the block and the calls in it, in order."""

    content: str
    calls: tuple[StrictCall, ...]


def read_strict(text: str, generation: Generation | None = None) -> StrictReply:
    """Read one reply; `generation` None takes whichever block opener stands first.

    Raises:
        DsmlError: on the first thing that the encoders would not have written.
    """
    body = text.removesuffix(END_OF_SENTENCE)
    if generation is None:
        if TOOL_CALLS_BEGIN in body or TOOL_CALL_BEGIN in body:
            return _read_v3(body)
        generation = _generation_of(body)
    if generation is None:
        _refuse_markup(body, 0, len(body))
        return StrictReply(content=body, calls=())
    opener = generation.opener(generation.block)
    start = body.find(opener)
    if start < 0:
        _refuse_markup(body, 0, len(body))
        return StrictReply(content=body, calls=())
    _refuse_markup(body, 0, start)
    return StrictReply(
        content=body[:start].strip("\n"),
        calls=_Block(body, start + len(opener), generation).calls(),
    )


def _generation_of(text: str) -> Generation | None:
    found = [(text.find(g.opener(g.block)), g) for g in GENERATIONS]
    return min(((at, g) for at, g in found if at >= 0), default=(0, None), key=lambda p: p[0])[1]


def _refuse_markup(text: str, start: int, end: int) -> None:
    at = text.find(DSML, start, end)
    if at >= 0:
        raise DsmlError("markup outside a block", at)


class _Block:
    """A cursor over one block; every method moves it forward or raises."""

    def __init__(self, text: str, at: int, generation: Generation) -> None:
        self._text = text
        self._at = at
        self._generation = generation
        invoke, parameter = generation.invoke, generation.parameter
        self._invoke = re.compile(re.escape(f'<{DSML}{invoke} name="') + rf"({_NAME})\">")
        self._parameter = re.compile(
            re.escape(f'<{DSML}{parameter} name="') + rf"({_NAME})\" string=\"(true|false)\">"
        )

    def calls(self) -> tuple[StrictCall, ...]:
        found: list[StrictCall] = []
        closer = self._generation.closer(self._generation.block)
        while not self._take(closer):
            found.append(self._call())
        if self._text[self._at :].strip():
            self._fail("text after the block")
        if not found:
            self._fail("a block without a call")
        return tuple(found)

    def _call(self) -> StrictCall:
        name = self._match(self._invoke, "an invoke")
        arguments: dict[str, Any] = {}
        closer = self._generation.closer(self._generation.invoke)
        while not self._take(closer):
            at = self._at
            key, kind = self._match_parameter()
            value = self._value(kind)
            if key in arguments:
                raise DsmlError(f"the parameter {key!r} is there twice", at)
            arguments[key] = value
        return StrictCall(name=name, arguments=arguments)

    def _match_parameter(self) -> tuple[str, str]:
        self._skip()
        match = self._parameter.match(self._text, self._at)
        if match is None:
            self._fail("a parameter or the invoke's end expected")
        self._at = match.end()
        return match[1], match[2]

    def _value(self, kind: str) -> Any:
        start = self._at
        closer = self._generation.closer(self._generation.parameter)
        end = self._text.find(closer, start)
        if end < 0:
            self._fail("a parameter that is never closed")
        _refuse_markup(self._text, start, end)
        self._at = end + len(closer)
        raw = self._text[start:end]
        if kind == "true":
            return raw
        try:
            return json.loads(raw, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise DsmlError(f'a value marked string="false" is no JSON ({error})', start) from error

    def _match(self, pattern: re.Pattern[str], what: str) -> str:
        self._skip()
        match = pattern.match(self._text, self._at)
        if match is None:
            self._fail(f"{what} expected")
        self._at = match.end()
        return match[1]

    def _take(self, literal: str) -> bool:
        self._skip()
        if self._text.startswith(literal, self._at):
            self._at += len(literal)
            return True
        if self._at >= len(self._text):
            self._fail(f"the text ends before {literal}")
        return False

    def _skip(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in " \t\r\n":
            self._at += 1

    def _fail(self, problem: str) -> NoReturn:
        raise DsmlError(problem, self._at)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _read_v3(text: str) -> StrictReply:
    """V3 (`function`, separator, name, JSON in a fence) and V3.1 (name, separator, JSON)."""
    start = text.find(TOOL_CALLS_BEGIN)
    if start < 0:
        raise DsmlError("a call outside a block", text.find(TOOL_CALL_BEGIN))
    at = start + len(TOOL_CALLS_BEGIN)
    calls: list[StrictCall] = []
    while text.startswith(TOOL_CALL_BEGIN, at):
        at += len(TOOL_CALL_BEGIN)
        end = text.find(TOOL_CALL_END, at)
        if end < 0:
            raise DsmlError("a call that is never closed", at)
        calls.append(_v3_call(text[at:end], at))
        at = end + len(TOOL_CALL_END)
        at += text[at : at + 1] == "\n"
    if text[at:].strip() != TOOL_CALLS_END:
        raise DsmlError("the block's end expected", at)
    if not calls:
        raise DsmlError("a block without a call", at)
    return StrictReply(content=text[:start].strip(), calls=tuple(calls))


def _v3_call(body: str, at: int) -> StrictCall:
    head, separator, rest = body.partition(TOOL_SEP)
    if not separator:
        raise DsmlError("no separator between name and arguments", at)
    name, raw = head, rest
    if head == _V3_TYPE and (match := _V3_ARGUMENTS.match(rest)):
        name, raw = match["name"], match["json"]
    try:
        arguments = json.loads(raw, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise DsmlError(f"arguments that are no JSON ({error})", at) from error
    if not isinstance(arguments, dict):
        raise DsmlError("arguments that are no object", at)
    return StrictCall(name=name.strip(), arguments=arguments)
