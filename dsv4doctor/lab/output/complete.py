"""A whole generated text into content and tool calls (`stream: false`, `/parse_function_call`)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dsv4doctor.lab.output.arguments import (
    MalformedInvoke,
    read_arguments,
    read_arguments_strictly,
)
from dsv4doctor.lab.output.behaviour import Behaviour
from dsv4doctor.lab.output.markup import (
    BLANK_LINE,
    BLOCK,
    BLOCK_OPEN,
    INVOKE_OPEN,
    CallPiece,
    Parsed,
    invokes,
)
from dsv4doctor.lab.output.streaming import before_markup


def parse_complete(text: str, tool_names: Sequence[str], behaviour: Behaviour) -> Parsed:
    """Content and calls of `text`; a call's `index` is the position of its tool in `tool_names`.

    That index is what SGLang puts there without streaming, so two calls to one tool share it.
    Calls to undeclared tools are dropped.
    """
    if behaviour.fails_closed:
        return _parse_closed(text, tool_names)
    opener = text.find(BLOCK_OPEN)
    if opener == -1:
        return Parsed(text)
    blocks = [match["body"] for match in BLOCK.finditer(text)]
    if not behaviour.reads_every_block:
        blocks = blocks[:1]
    calls: list[CallPiece] = []
    for block in blocks:
        for invoke in invokes(block):
            try:
                calls.extend(_declared(invoke.name, read_arguments(invoke.body), tool_names))
            except ValueError:
                # A body that looks like an object and is not JSON: everything becomes content.
                return Parsed(text)
    return Parsed(text[:opener].removesuffix(BLANK_LINE), tuple(calls))


def _parse_closed(text: str, tool_names: Sequence[str]) -> Parsed:
    opener = text.find(BLOCK_OPEN)
    if opener != -1:
        prose = text[:opener].removesuffix(BLANK_LINE)
        blocks = [match["body"] for match in BLOCK.finditer(text)]
    else:
        bare = text.find(INVOKE_OPEN)
        if bare == -1:
            return Parsed(text)
        prose = before_markup(text)
        blocks = [text[bare:]]
    calls: list[CallPiece] = []
    for block in blocks:
        for invoke in invokes(block):
            if not invoke.closed:
                continue
            try:
                arguments = read_arguments_strictly(invoke.body)
            except MalformedInvoke:
                continue
            calls.extend(_declared(invoke.name, arguments, tool_names))
    return Parsed(prose, tuple(calls))


def _declared(name: str, arguments: str, tool_names: Sequence[str]) -> list[CallPiece]:
    """The call with its arguments written anew, or nothing when the tool is not declared.

    Raises:
        ValueError: if `arguments` is not JSON.
    """
    value = json.loads(arguments)
    if name not in tool_names:
        return []
    return [CallPiece(tool_names.index(name), name, json.dumps(value, ensure_ascii=False))]
