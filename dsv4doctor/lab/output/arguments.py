"""The body of an invoke as the JSON text of its arguments: tolerantly (A, B) or strictly (C)."""

from __future__ import annotations

import json
from typing import NoReturn

from dsv4doctor.lab.output.markup import MARKER, PARAMETER, UNCLOSED_PARAMETER
from dsv4doctor.lab.output.partial_json import BrokenJson, NotJson, read_partial

# SGLang strips from the end of an unfinished text every CHARACTER of these pieces, so that half a
# closing tag is not taken for a value; letters of the value go with it for a while.
_PARAMETER_TAIL_PIECES = ("parameter", MARKER, "</")
_INVOKE_TAIL_PIECES = ("oke", "inv", MARKER, "</")


class MalformedInvoke(ValueError):
    """The body is neither one JSON object nor whole parameters (group C drops such an invoke)."""


class LeakingValue(ValueError):
    """An unfinished value is no beginning of JSON, where the release does not catch that (A)."""


def read_arguments(body: str) -> str:
    """The arguments of a closed invoke, read tolerantly: what does not match is left out."""
    stripped = body.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        return stripped
    return _dump(_closed_parameters(body)[0])


def read_unfinished_arguments(body: str, *, leaks_partial_values: bool) -> str:
    """The arguments as far as an unfinished invoke tells them.

    Raises:
        LeakingValue: as `leaks_partial_values` says.
    """
    stripped = body.strip()
    if stripped.startswith("{"):
        return _without_tail(stripped, _INVOKE_TAIL_PIECES)
    parameters, end = _closed_parameters(body)
    rest = _without_tail(body[end:], _PARAMETER_TAIL_PIECES)
    match = UNCLOSED_PARAMETER.search(rest)
    if match is not None and match["value"]:
        value = match["value"]
        if match["string"] == "true":
            parameters[match["key"]] = value.strip()
        else:
            parameters[match["key"]] = _unfinished_value(value, leaks=leaks_partial_values)
    return _dump(parameters)


def read_arguments_strictly(body: str) -> str:
    """The arguments of a closed invoke, or nothing: a parameter tag that does not match damns it.

    Raises:
        MalformedInvoke: if the body is not what the format says.
    """
    stripped = body.strip()
    if stripped.startswith("{"):
        try:
            json.loads(stripped, parse_constant=_refuse_constant)
        except ValueError as error:
            raise MalformedInvoke(str(error)) from error
        return stripped
    parameters: dict[str, object] = {}
    between: list[str] = []
    end = 0
    for match in PARAMETER.finditer(body):
        between.append(body[end : match.start()])
        end = match.end()
        parameters[match["key"]] = _closed_value(match["string"], match["value"], strict=True)
    between.append(body[end:])
    rest = "".join(between)
    if MARKER in rest or (not parameters and rest.strip()):
        raise MalformedInvoke("Malformed DeepSeek tool parameter")
    return _dump(parameters)


def _closed_parameters(body: str) -> tuple[dict[str, object], int]:
    """All whole parameters (of equal keys the last wins), and where the last one ends."""
    parameters: dict[str, object] = {}
    end = 0
    for match in PARAMETER.finditer(body):
        parameters[match["key"]] = _closed_value(match["string"], match["value"], strict=False)
        end = match.end()
    return parameters, end


def _closed_value(string: str, value: str, *, strict: bool) -> object:
    stripped = value.strip()
    if string == "true":
        return stripped
    try:
        if strict:
            return json.loads(stripped, parse_constant=_refuse_constant)
        return json.loads(stripped)
    except ValueError:
        return stripped


def _unfinished_value(value: str, *, leaks: bool) -> object:
    try:
        return read_partial(value)
    except BrokenJson:
        return value.strip()
    except NotJson as error:
        if leaks:
            raise LeakingValue(str(error)) from error
        return value.strip()


def _without_tail(text: str, pieces: tuple[str, ...]) -> str:
    for piece in pieces:
        text = text.rstrip(piece)
    return text


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedInvoke(f"Invalid JSON constant: {name}")


def _dump(parameters: dict[str, object]) -> str:
    return json.dumps(parameters, ensure_ascii=False)
