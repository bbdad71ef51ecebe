"""Arguments of a call that are not one JSON object.

Seen: `arguments` does not parse, holds text after the object, NaN, a key twice or a lone
surrogate, is encoded twice, or is JSON but no object (null, a number, a string, an array).
Why: the client's `json.loads` fails or, worse, the call runs with half of its arguments. On SGLang
0.5.23's own parser this is the usual form of a damaged call, since DSML no longer reaches
`content`.
Confirm: `json.loads(call["function"]["arguments"])`; then ask `/generate` for the raw text: a
sound block there means that the parser broke it.
Source: https://github.com/sgl-project/sglang/pull/39435,
https://github.com/vllm-project/vllm/pull/54686.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from dsv4doctor.detect.detector import Detector, Seen, span
from dsv4doctor.detect.hints import CALLS, hint
from dsv4doctor.detect.subject import Call, Subject
from dsv4doctor.dsml.tolerant import may_hold_markup
from dsv4doctor.label import Label

# A parameter marked `string="false"` has to hold JSON.
_NOT_A_STRING = 'string="false"'
_LEAKED = hint(_NOT_A_STRING)


def detect(subject: Subject) -> Iterator[Seen]:
    for call in subject.calls:
        fault = call.arguments.fault
        if fault is None or (call.arguments.is_empty and not _needs_arguments(subject, call)):
            continue
        raw = call.call.arguments
        shown = span(raw, 0, len(raw)) if isinstance(raw, str) and raw else ""
        yield Seen(
            label=Label.MALFORMED_ARGUMENTS,
            where=f"{call.where}.arguments",
            what=f"{fault}{f', {shown}' if shown else ''}",
            corrupts=not _is_own_cut(subject, call),
        )
    text = subject.content.text
    # Where the call was made all the same, its arguments are not what the block holds.
    if _NOT_A_STRING in text and not subject.calls and may_hold_markup(text):
        yield from _in_written_block(subject)


def _is_own_cut(subject: Subject, call: Call) -> bool:
    """True where the request's own limit cut the call; one that canaries wait for had room
    enough."""
    cut = call.arguments.is_cut and subject.finish == "length"
    return cut and not subject.exchange.canaries


def _needs_arguments(subject: Subject, call: Call) -> bool:
    if subject.tools is None:
        return True
    schema = subject.tools.get(call.name or "")
    return schema is not None and bool(schema.get("required"))


def _in_written_block(subject: Subject) -> Iterator[Seen]:
    """A leaked block whose own `string="false"` value is no JSON: that is why it leaked."""
    text = subject.content.text
    position = 0
    while (position := text.find(_NOT_A_STRING, position)) >= 0:
        start = text.find(">", position) + 1
        end = text.find("</｜DSML｜", start)
        if start <= 0 or end < 0 or subject.content.code.covers(position):
            return
        try:
            json.loads(text[start:end])
        except (ValueError, RecursionError):
            yield Seen(
                label=Label.MALFORMED_ARGUMENTS,
                where="content",
                what=f'a value marked string="false" is not JSON, {span(text, start, end)}',
            )
            return
        position = end


DETECTOR = Detector(
    label=Label.MALFORMED_ARGUMENTS,
    summary="arguments that are not one JSON object",
    detect=detect,
    hints=CALLS | _LEAKED,
)
