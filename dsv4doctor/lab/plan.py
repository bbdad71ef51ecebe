"""The reader: which earlier tokens a healthy reply is copied from, a place for each of its tokens.

Tags are copied from the system prompt's example or from an earlier call, which of them is fixed by
a hash (half of them from the example): replies then depend on many pages, old and young. Values and
passages are copied from where they were planted. What stands nowhere in the prompt the model knows
by heart, and no page can take that from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from dsv4doctor.lab import rendering
from dsv4doctor.lab.asks import (
    AskedCall,
    last_user_text,
    planted_passage,
    planted_value,
    read_ask,
)
from dsv4doctor.lab.constructing import construct
from dsv4doctor.lab.rendering import RenderedPrompt
from dsv4doctor.lab.requests import EngineRequest
from dsv4doctor.lab.tokens import DSML, EOS_ID, TokenIds, decode, encode

# Where a token known by heart "stands".
BY_HEART = -1
_ID_BYTES = 8
# A free prompt is answered with this many of its own tokens at most.
_ECHO_TOKENS = 48
_ECHO_BEFORE = "You wrote: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A healthy reply: its tokens (the last is EOS) and the place of each in the prompt."""

    tokens: TokenIds
    places: npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A stretch of the reply; `after` is the text that precedes it where it was planted."""

    text: str
    is_tag: bool = False
    after: str | None = None


class _Copier:
    """Finds stretches of tokens in one prompt and strings their places together."""

    def __init__(self, prompt: RenderedPrompt) -> None:
        self._prompt = prompt
        self._haystack = prompt.tokens.tobytes()
        self._digest = blake2b(self._haystack, digest_size=16).digest()
        self._tokens: list[TokenIds] = []
        self._places: list[npt.NDArray[np.intp]] = []
        self._chosen = 0

    def _choice(self, count: int) -> int:
        self._chosen += 1
        seed = self._digest + self._chosen.to_bytes(4, "little")
        return int.from_bytes(blake2b(seed, digest_size=4).digest(), "little") % count

    def _found(self, tokens: TokenIds, start: int = 0, end: int | None = None) -> Iterator[int]:
        needle = tokens.tobytes()
        stop = len(self._haystack) if end is None else end * _ID_BYTES
        at = self._haystack.find(needle, start * _ID_BYTES, stop)
        while at >= 0:
            if at % _ID_BYTES == 0:
                yield at // _ID_BYTES
            at = self._haystack.find(needle, at + 1, stop)

    def _tag_place(self, tokens: TokenIds) -> int | None:
        """In the example for one half of the tags, in any earlier call for the other."""
        in_calls = [place for span in self._prompt.calls for place in self._found(tokens, *span)]
        example = self._prompt.example
        if example and (not in_calls or self._choice(2) == 0):
            place = next(self._found(tokens, *example), None)
            if place is not None:
                return place
        return in_calls[self._choice(len(in_calls))] if in_calls else None

    def _place(self, piece: _Piece, tokens: TokenIds) -> int | None:
        if piece.is_tag:
            return self._tag_place(tokens)
        if piece.after is not None:
            before = encode(piece.after)
            place = next(self._found(np.concatenate([before, tokens])), None)
            if place is not None:
                return place + len(before)
        places = list(self._found(tokens))
        return places[self._choice(len(places))] if places else None

    def add(self, piece: _Piece) -> None:
        """Append a stretch, copied whole where it can be, else token by token."""
        tokens = encode(piece.text)
        if len(tokens) == 0:
            return
        place = self._place(piece, tokens)
        if place is not None:
            places = place + np.arange(len(tokens))
        else:
            singles = (next(self._found(tokens[i : i + 1]), BY_HEART) for i in range(len(tokens)))
            places = np.fromiter(singles, dtype=np.intp, count=len(tokens))
        self._tokens.append(tokens)
        self._places.append(places.astype(np.intp))

    def finish(self) -> Plan:
        """End with EOS, copied along when it follows what was copied last."""
        end = int(self._places[-1][-1]) + 1 if self._places else 0
        follows = 0 < end < len(self._prompt.tokens) and self._prompt.tokens[end] == EOS_ID
        eos = np.array([EOS_ID], dtype=np.uint64)
        place = np.array([end if follows else BY_HEART], dtype=np.intp)
        return Plan(
            tokens=np.concatenate([*self._tokens, eos]),
            places=np.concatenate([*self._places, place]),
        )


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


def _argument(value: Any, after: str | None = None) -> tuple[str, _Piece]:
    marker, text = rendering.dsml_value(value)
    return marker, _Piece(text=text, after=after)


def _asked_arguments(
    call: AskedCall, request: EngineRequest, function: Mapping[str, Any]
) -> dict[str, tuple[str, _Piece]]:
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
                _Piece(text=planted, after=after),
            )
        else:
            arguments[asked.name] = _argument(planted, after)
    return arguments


def _calls(request: EngineRequest) -> list[tuple[str, dict[str, tuple[str, _Piece]]]]:
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


def _constructed(function: Mapping[str, Any], text: str) -> dict[str, tuple[str, _Piece]]:
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    made = construct({**parameters, "type": "object"}, text)
    return {name: _argument(value) for name, value in made.items()}


def _call_pieces(calls: list[tuple[str, dict[str, tuple[str, _Piece]]]]) -> list[_Piece]:
    """The reply's stretches: tags, and between them names and values."""
    pieces: list[_Piece] = []
    tag = rendering.BLOCK_OPEN
    for name, arguments in calls:
        pieces += [_Piece(text=tag + rendering.INVOKE_OPEN, is_tag=True), _Piece(text=name)]
        tag = rendering.INVOKE_OPEN_END
        for key, (marker, value) in arguments.items():
            pieces += [_Piece(text=tag + rendering.PARAMETER_OPEN, is_tag=True), _Piece(text=key)]
            pieces += [_Piece(text=marker, is_tag=True), value]
            tag = rendering.PARAMETER_CLOSE
        tag += rendering.INVOKE_CLOSE
    return [*pieces, _Piece(text=tag + rendering.BLOCK_CLOSE, is_tag=True)]


def _text_pieces(request: EngineRequest) -> list[_Piece]:
    """A planted passage word for word, or the beginning of what the user wrote."""
    text = last_user_text(request.messages)
    label = read_ask(text).passage
    passage = planted_passage(label, request.messages) if label else None
    if passage is not None:
        # The space belongs to the first piece where it was planted, so it is split off here.
        head, _, rest = passage.partition(" ")
        pieces = [_Piece(text=head)]
        if rest:
            pieces.append(_Piece(text=f" {rest}", after=f"{label}`: {head}"))
        return pieces
    # An echo must not look like a call, whatever the user wrote.
    plain = [token for token in encode(text.replace(DSML, "")) if token != EOS_ID][:_ECHO_TOKENS]

    return [_Piece(text=_ECHO_BEFORE), _Piece(text=decode(plain))]


def read(request: EngineRequest, prompt: RenderedPrompt) -> Plan:
    """The plan of the healthy reply to `request`."""
    copier = _Copier(prompt)
    calls = _calls(request)
    for piece in _call_pieces(calls) if calls else _text_pieces(request):
        copier.add(piece)
    return copier.finish()
