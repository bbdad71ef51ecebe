"""A call that JSON accepts and the request does not.

Seen: arguments that break the tool's JSON Schema (a required key missing, a number as a string, a
value outside the enum), sit one level too deep inside an undeclared `arguments` or `input`, two
calls with one id or index, a call although `tool_choice` was `none` or named another tool.
Why: the tool fails, or runs on the wrong thing; agents then loop. `{}` for a required parameter is
what several parsers leave of a damaged block.
Confirm: validate the arguments against `tools[].function.parameters` with any JSON Schema
validator.
Source: https://github.com/sgl-project/sglang/pull/39435,
https://github.com/vllm-project/vllm/pull/54686.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dsv4doctor.detect.detector import Detector, Seen
from dsv4doctor.detect.hints import CALLS
from dsv4doctor.detect.schema import first_error
from dsv4doctor.detect.subject import Call, Subject
from dsv4doctor.label import Label

# Members under which parsers have wrapped the whole argument object.
_WRAPPERS = (
    "arguments",
    "input",
    "parameters",
    "params",
    "args",
    "kwargs",
    "function",
    "properties",
)


def detect(subject: Subject) -> Iterator[Seen]:
    for call in subject.calls:
        yield from _against_schema(subject, call)
    yield from _ids_and_indices(subject)
    yield from _against_choice(subject)


def _against_schema(subject: Subject, call: Call) -> Iterator[Seen]:
    value = call.arguments.value
    schema = (subject.tools or {}).get(call.name or "")
    if schema is None or not isinstance(value, dict) or call.arguments.is_empty:
        return
    error = first_error(schema, value)
    if error is None and (wrapper := _wrapper(schema, value)):
        error = f"the arguments are wrapped in an undeclared {wrapper!r}"
    if error is not None:
        yield _seen(f"{call.where}.arguments", error)


def _wrapper(schema: Mapping[str, Any], value: dict[str, Any]) -> str | None:
    declared = schema.get("properties")
    if len(value) != 1 or not isinstance(declared, Mapping) or not declared:
        return None
    ((key, inner),) = value.items()
    if key in declared or key not in _WRAPPERS:
        return None
    if isinstance(inner, str):
        try:
            inner = json.loads(inner)
        except (ValueError, RecursionError):
            return None
    return key if isinstance(inner, dict) and any(name in declared for name in inner) else None


def _ids_and_indices(subject: Subject) -> Iterator[Seen]:
    for member in ("id", "index"):
        first: dict[str, str] = {}
        for call in subject.calls:
            value = getattr(call.call, member)
            if value is None:
                continue
            if value == "" or (member == "index" and isinstance(value, int) and value < 0):
                yield _seen(f"{call.where}.{member}", f"no usable {member}: {value!r}")
                continue
            earlier = first.setdefault(repr(value), call.where)
            if earlier != call.where:
                yield _seen(f"{call.where}.{member}", f"same {member} {value!r} as {earlier}")
                break


def _against_choice(subject: Subject) -> Iterator[Seen]:
    if not subject.calls:
        return
    if subject.choice == "none":
        yield _seen("tool_calls[0]", "a call although tool_choice is none")
    named = subject.forced_tool
    for call in subject.calls:
        known = subject.tools is None or call.name in subject.tools
        if named is not None and call.name != named and known:
            yield _seen(f"{call.where}.name", f"{call.name!r} although tool_choice names {named!r}")
            break
    if subject.exchange.extra.get("parallel_tool_calls") is False and len(subject.calls) > 1:
        yield _seen("tool_calls[1]", "a second call although parallel_tool_calls is false")


def _seen(where: str, what: str) -> Seen:
    return Seen(label=Label.SCHEMA_VIOLATION, where=where, what=what)


DETECTOR = Detector(
    label=Label.SCHEMA_VIOLATION,
    summary="a call that breaks its schema, its id or index, or the request's tool choice",
    detect=detect,
    hints=CALLS,
)
