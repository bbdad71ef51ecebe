"""The reader: what a healthy model replies to a request, as a plan of where it copies from.

Calls that were asked for in the scenarios' wording repeat the values planted under the labels;
calls that have to be made without such wording get arguments made from the user's words; passages
are written out word for word; anything else is answered with the beginning of what the user wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dsv4doctor.lab import rendering
from dsv4doctor.lab.asks import (
    AskedCall,
    last_user_text,
    planted_passage,
    planted_value,
    read_ask,
)
from dsv4doctor.lab.constructing import construct
from dsv4doctor.lab.plan import Copier, Piece, Plan
from dsv4doctor.lab.rendering import RenderedPrompt
from dsv4doctor.lab.requests import EngineRequest
from dsv4doctor.lab.tokens import DSML, EOS_ID, decode, encode

# A free prompt is answered with this many of its own tokens at most.
_ECHO_TOKENS = 48
_ECHO_BEFORE = "You wrote: "

# A call of the reply: the tool's name, and each argument's marker and value.
Call = tuple[str, dict[str, tuple[str, Piece]]]


def _functions(request: EngineRequest) -> dict[str, Mapping[str, Any]]:
    functions = (tool.get("function", tool) for tool in request.tools)
    return {str(function.get("name", "")): function for function in functions}


def _properties(function: Mapping[str, Any]) -> Mapping[str, Any]:
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _argument(value: Any, after: str | None = None) -> tuple[str, Piece]:
    marker, text = rendering.dsml_value(value)
    return marker, Piece(text=text, after=after)


def _asked_arguments(
    call: AskedCall, request: EngineRequest, function: Mapping[str, Any]
) -> dict[str, tuple[str, Piece]]:
    """Marker and value of each argument that the user asked for."""
    text = last_user_text(request.messages)
    arguments = {}
    for asked in call.arguments:
        schema = _properties(function).get(asked.name, {})
        planted = planted_value(asked.label, request.messages)
        if planted is None:
            arguments[asked.name] = _argument(construct(schema, text))
            continue
        kind = schema.get("type") if isinstance(schema, Mapping) else None
        is_json = asked.noun == "number" if kind is None else kind != "string"
        after = f"{asked.label}` is `"
        value = _as_json(planted) if is_json else planted
        if is_json and not isinstance(value, str):
            # As planted: the model copies the digits, it does not reformat a number.
            arguments[asked.name] = (
                rendering.PARAMETER_JSON,
                Piece(text=planted, after=after),
            )
        else:
            arguments[asked.name] = _argument(planted, after)
    return arguments


def _calls(request: EngineRequest) -> list[Call]:
    """Every call of the reply: tool name and arguments. Empty where the reply is text."""
    functions = _functions(request)
    if not functions or request.tool_choice == "none":
        return []
    text = last_user_text(request.messages)
    named = None
    if isinstance(request.tool_choice, Mapping):
        named = str(request.tool_choice.get("function", {}).get("name", ""))
    asked = [
        call
        for call in read_ask(text).calls
        if call.tool in functions and (named is None or call.tool == named)
    ]
    if asked:
        calls = []
        for call in asked:
            function = functions[call.tool]
            arguments = _asked_arguments(call, request, function)
            calls.append((call.tool, arguments or _constructed(function, text)))
        return calls
    if named is None and request.tool_choice != "required":
        return []
    mentioned = [name for name in functions if name in text]
    name = named if named in functions else (mentioned or list(functions))[0]
    return [(name, _constructed(functions[name], text))]


def _constructed(function: Mapping[str, Any], text: str) -> dict[str, tuple[str, Piece]]:
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    made = construct({**parameters, "type": "object"}, text)
    return {name: _argument(value) for name, value in made.items()}


def _call_pieces(calls: list[Call]) -> list[Piece]:
    """The reply's stretches: tags, and between them names and values."""
    pieces: list[Piece] = []
    tag = rendering.BLOCK_OPEN
    for name, arguments in calls:
        pieces += [Piece(text=tag + rendering.INVOKE_OPEN, is_tag=True), Piece(text=name)]
        tag = rendering.INVOKE_OPEN_END
        for key, (marker, value) in arguments.items():
            pieces += [Piece(text=tag + rendering.PARAMETER_OPEN, is_tag=True), Piece(text=key)]
            pieces += [Piece(text=marker, is_tag=True), value]
            tag = rendering.PARAMETER_CLOSE
        tag += rendering.INVOKE_CLOSE
    return [*pieces, Piece(text=tag + rendering.BLOCK_CLOSE, is_tag=True)]


def _text_pieces(request: EngineRequest) -> list[Piece]:
    """A planted passage word for word, or the beginning of what the user wrote."""
    text = last_user_text(request.messages)
    label = read_ask(text).passage
    passage = planted_passage(label, request.messages) if label else None
    if passage is not None:
        # The space belongs to the first piece where it was planted, so it is split off here.
        head, _, rest = passage.partition(" ")
        pieces = [Piece(text=head)]
        if rest:
            pieces.append(Piece(text=f" {rest}", after=f"{label}`: {head}"))
        return pieces
    # An echo must not look like a call, whatever the user wrote.
    plain = [token for token in encode(text.replace(DSML, "")) if token != EOS_ID][:_ECHO_TOKENS]

    return [Piece(text=_ECHO_BEFORE), Piece(text=decode(plain))]


def read(request: EngineRequest, prompt: RenderedPrompt) -> Plan:
    """The plan of the healthy reply to `request`."""
    copier = Copier(prompt)
    calls = _calls(request)
    for piece in _call_pieces(calls) if calls else _text_pieces(request):
        copier.add(piece)
    return copier.finish()
