"""Tool-call markup where the client should never see it.

Seen: DSML tags, halves or orphans of them, V3 tool tokens, bare `<invoke>` elements or the wrappers
of tool results in `content` or `reasoning_content`, or their remnants at the edge of an argument
value or in a call's name.
Why: the server's parser takes the block out of the text; what is left over means that the model
wrote a damaged block, or that the parser cannot read a sound one (SGLang up to 0.5.17 leaks on
negative numbers). The client executes nothing and shows the user raw markup.
Confirm: send the same request to `/generate`, which has no parser, and read the raw text; or run
the strict reader over it. A sound block there and a leak here is the parser's fault.
Source: https://github.com/sgl-project/sglang/issues/33397,
https://github.com/vllm-project/vllm/pull/41834, https://github.com/sgl-project/sglang/pull/39435.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dsv4doctor.detect.detector import Detector, Seen, span
from dsv4doctor.detect.encodings import BROKEN
from dsv4doctor.detect.quoting import NOWHERE, Spans, quoted_spans
from dsv4doctor.detect.request import asks_about_markup
from dsv4doctor.detect.subject import Subject, Text
from dsv4doctor.dsml.tolerant import Form, Fragment, fragments, may_hold_markup, written_calls
from dsv4doctor.label import Label

# What may stand between the start of a value and the rest of its opener.
_OPENER_END = " \"'\\"
_NAME = re.compile(r"name=\W{1,6}([\w.-]{1,100})")
# A value of fewer characters is in any request.
_MIN_ASKED = 3
# How far a tag may be indented and still begin its line.
_MARGIN = 80
# Where a parameter was cut late: the value ends with (the beginning of) its own closer.
_CLOSER_AT_END = re.compile(
    r"(?:</[｜|]{1,2}(?:[A-Za-z]{0,4}[｜|]{0,2}\s?[a-z_]{0,14}>?\s*)?"
    r"|</(?:parameter|invoke|function_calls|tool_calls)>\s*"
    r"|(?:&lt;)/[｜|]DSML[^\n]{0,40})$"
)


def detect(subject: Subject) -> Iterator[Seen]:
    for text in (subject.content, subject.reasoning):
        if text.markup:
            yield from _in_prose(subject, text)
    for text in subject.free_texts:
        if text.in_call and text.markup:
            yield from _in_value(subject, text)
        elif text.in_call and _is_asked_for_but_end(subject, text.text):
            piece = Fragment(form=Form.HALF, start=len(text.text) - 2, end=len(text.text))
            yield _seen(text.where, text.text, piece, "the value runs into its own closer")
    for call in subject.calls:
        if call.name and may_hold_markup(call.name):
            for piece in fragments(call.name)[:1]:
                yield _seen(f"{call.where}.name", call.name, piece, "a call's name holds markup")
        elif call.arguments.value is None and isinstance(call.call.arguments, str):
            raw = call.call.arguments
            if may_hold_markup(raw):
                for piece in _strong(fragments(raw))[:1]:
                    yield _seen(f"{call.where}.arguments", raw, piece, "markup in raw arguments")


def _in_prose(subject: Subject, text: Text) -> Iterator[Seen]:
    pieces = text.markup
    if not pieces:
        return
    code = text.code
    loose = [piece for piece in pieces if not code.covers(piece.start)]
    if not loose:
        return
    if asks_about_markup(subject) and not _is_unmade_call(subject, text.text, pieces):
        return
    reading = _Reading(
        text=text.text,
        quoted=_quotations(text),
        spells_call=_plain_is_call(subject, loose),
        only_attributes=all(piece.form is Form.ATTRIBUTE for piece in loose),
    )
    for piece in loose:
        if _counts(subject, piece, reading):
            yield _seen(text.where, text.text, piece, _RULE[piece.form])
            return


def _quotations(text: Text) -> Spans:
    """The text's quotations; none in a text with broken characters, whose marks are salad too."""
    return NOWHERE if not text.signs.isdisjoint(BROKEN) else quoted_spans(text.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What a prose text's pieces have in common, worked out once for all of them."""

    text: str
    quoted: Spans
    spells_call: bool
    only_attributes: bool


def _counts(subject: Subject, piece: Fragment, reading: _Reading) -> bool:
    """True for a fragment that no ordinary text holds."""
    if reading.quoted.covers(piece.start):
        return False
    if piece.form is Form.PLAIN:
        return (
            reading.spells_call
            or _is_bare_parameter(subject, piece, reading.text)
            or _is_echoed_result(subject, piece, reading.text)
        )
    if piece.form is Form.ATTRIBUTE:
        return not reading.only_attributes or _begins_call(subject, piece, reading.text)
    return True


def _plain_is_call(subject: Subject, loose: list[Fragment]) -> bool:
    """Plain `<invoke>` elements are XML like any other unless they spell a call to an offered
    tool."""
    offered = subject.tools or {}
    plain = [piece for piece in loose if piece.form is Form.PLAIN]
    named = [p.name for p in plain if p.element == "invoke" and not p.closing and p.name]
    if any(name in offered for name in named):
        return True
    has_block = any(p.element == "block" for p in plain)
    has_parameter = any(p.element == "parameter" for p in plain)
    if has_block and bool(offered) and all(p.closing for p in plain):
        # Nobody closes a call and its block but who has opened them.
        return has_parameter or any(p.element == "invoke" for p in plain)
    return bool(offered) and has_block and (bool(named) or has_parameter)


def _is_bare_parameter(subject: Subject, piece: Fragment, text: str) -> bool:
    """True for a parameter element without its call that only a tool call can have: it has DSML's
    own attribute, or begins a reply that ends with its closer, and names a parameter offered."""
    if piece.element != "parameter" or piece.closing or piece.name is None:
        return False
    schemas = (subject.tools or {}).values()
    properties = [schema.get("properties") for schema in schemas]
    if not any(isinstance(p, Mapping) and piece.name in p for p in properties):
        return False
    if "string=" in text[piece.start : piece.end]:
        return _begins_a_line(text, piece.start)
    begins = piece.start < _MARGIN and not text[: piece.start].strip()
    return begins and text.rstrip().endswith("</parameter>")


def _begins_call(subject: Subject, piece: Fragment, text: str) -> bool:
    """True for the rest of an opener at the very start of a text, and of an offered tool if it
    has a name."""
    if not _begins(text, piece):
        return False
    name = _NAME.match(text, piece.start)
    if name is None:
        return "string=" in text[piece.start : piece.end]
    return name[1] in (subject.tools or {})


def _begins(text: str, piece: Fragment) -> bool:
    """True for a fragment with nothing but what ends an opener before it."""
    return piece.start <= _MARGIN and not text[: piece.start].strip(_OPENER_END)


def _is_echoed_result(subject: Subject, piece: Fragment, text: str) -> bool:
    """True for the wrapper of a tool's result on a line of its own: the prompt's side of a call,
    invented."""
    opens = piece.element == "results" and not piece.closing
    return opens and bool(subject.tools) and _begins_a_line(text, piece.start)


def _begins_a_line(text: str, start: int) -> bool:
    """True when only blanks stand before `start` on its line."""
    margin = text[max(0, start - _MARGIN) : start]
    line = margin.rsplit("\n", 1)[-1]
    return not line.strip() and ("\n" in margin or start < _MARGIN)


def _is_unmade_call(subject: Subject, text: str, pieces: tuple[Fragment, ...]) -> bool:
    """True when the text spells a call to an offered tool and the reply makes none, though
    forced."""
    if subject.calls or not subject.is_forced:
        return False
    offered = subject.tools or {}
    return any(call.name in offered for call in written_calls(text, pieces))


def _in_value(subject: Subject, text: Text) -> Iterator[Seen]:
    pieces = text.markup
    if not pieces or asks_about_markup(subject):
        return
    if _is_document(pieces, text.text):
        return
    first, last = pieces[0], pieces[-1]
    begins = first.form is Form.ATTRIBUTE and _begins(text.text, first)
    if begins and _is_own_opener(subject, text, first):
        yield _seen(
            text.where, text.text, first, "the value begins with the rest of its own opener"
        )
        return
    end = _CLOSER_AT_END.search(text.text, max(0, len(text.text) - 96))
    if end and (last.closing or last.form in (Form.HALF, Form.TORN)):
        piece = Fragment(form=Form.HALF, start=end.start(), end=end.end())
        yield _seen(text.where, text.text, piece, "the value runs into its own closer")
        return
    quoted = _quotations(text)
    for piece in _strong(pieces):
        if not text.code.covers(piece.start) and not quoted.covers(piece.start):
            yield _seen(text.where, text.text, piece, "unmatched markup inside an argument value")
            return


def _is_asked_for_but_end(subject: Subject, value: str) -> bool:
    """True for a value that the request holds word for word, but for the `</` at its end."""
    if not value.endswith("</") or "<" in value[:-2]:
        return False
    asked = value[:-2].strip()
    if len(asked) < _MIN_ASKED or value.strip() in subject.prompt or "<" in subject.prompt:
        return False
    return re.search(rf"(?<!\w){re.escape(asked)}(?!\w)", subject.prompt) is not None


def _is_own_opener(subject: Subject, text: Text, piece: Fragment) -> bool:
    """Whether the rest of an opener is DSML's: a name alone is any markup's, unless it is the
    argument's own or an offered tool's."""
    name = _NAME.match(text.text, piece.start)
    if name is None or "string=" in text.text[piece.start : piece.end]:
        return True
    return name[1] == text.where.rpartition(".")[2] or name[1] in (subject.tools or {})


def _strong(pieces: tuple[Fragment, ...]) -> list[Fragment]:
    return [p for p in pieces if p.form not in (Form.PLAIN, Form.ATTRIBUTE)]


def _is_document(pieces: tuple[Fragment, ...], text: str) -> bool:
    """True when every tag that opens is closed again and in order: a file about markup, no
    remnant."""
    open_elements: list[str | None] = []
    if all(piece.form is Form.BARE for piece in pieces):
        return False
    if all(piece.form is Form.TOKEN for piece in pieces):
        tokens = [text[piece.start : piece.end] for piece in pieces]
        begun = sum("begin" in token for token in tokens)
        return begun > 0 and begun == sum("end" in token for token in tokens)
    for piece in pieces:
        if piece.form in (Form.HALF, Form.TORN, Form.ATTRIBUTE):
            return False
        if piece.form in (Form.TAG, Form.PLAIN):
            if not piece.closing:
                if not text[piece.start : piece.end].rstrip(">").endswith("/"):
                    open_elements.append(piece.element)
            elif not open_elements or open_elements.pop() != piece.element:
                return False
    return not open_elements


def _seen(where: str, text: str, piece: Fragment, rule: str) -> Seen:
    return Seen(
        label=Label.DSML_LEAK, where=where, what=f"{rule}, {span(text, piece.start, piece.end)}"
    )


_RULE = {
    Form.TAG: "a DSML tag outside code",
    Form.HALF: "a DSML tag cut short",
    Form.TORN: "a torn DSML marker",
    Form.BARE: "a bare DSML marker outside code",
    Form.PLAIN: "call markup without its marker",
    Form.ATTRIBUTE: "the tail of a DSML opener",
    Form.TOKEN: "a V3 tool token outside code",
}

DETECTOR = Detector(
    label=Label.DSML_LEAK,
    summary="tool-call markup in content, reasoning, a call's name or an argument value",
    detect=detect,
)
