"""What of tool-call markup is in a call: in its name, in its arguments' values and names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dsv4doctor.detect.detector import Seen, span
from dsv4doctor.detect.encodings import BROKEN
from dsv4doctor.detect.quoting import NOWHERE, Spans, quoted_spans
from dsv4doctor.detect.request import asks_about_markup
from dsv4doctor.detect.subject import Subject, Text
from dsv4doctor.dsml.tolerant import Form, Fragment, fragments, may_hold_markup
from dsv4doctor.label import Label

# What other texts have too.
_WEAK = (Form.PLAIN, Form.ATTRIBUTE)
# What may stand between the start of a value and the rest of its opener.
_OPENER_END = " \"'\\"
NAMED = re.compile(r"(?:(?:invoke|parameter)\s+)?name=\W{1,6}([\w.-]{1,100})")
# DSML's own attribute behind the end of a parameter's name.
_CUT_ATTRIBUTE = re.compile(r"[\"']\s?string=\\?[\"']")
# What is left of a parameter's name at the start of its value, DSML's own attribute behind it.
_CUT_NAME = re.compile(r"(?:[a-z]{0,4}=?[\"'])?[\w.-]{0,64}\\?[\"']\s")
# The end of one parameter and the beginning of the next, their markers lost.
_NEXT = re.compile(r"</parameter>\s*<parameter name=\\?[\"']([\w.-]{1,64})")
# A value of fewer characters is in any request.
_MIN_ASKED = 3
# How far a tag may be indented and still begin its line.
MARGIN = 80
# Where a parameter was cut late: the value ends with (the beginning of) its own closer.
_CLOSER_AT_END = re.compile(
    r"(?:</[｜|]{1,2}(?:[A-Za-z]{0,4}[｜|]{0,2}\s?[a-z_]{0,14}>?\s*)?"
    r"|</ ?(?:parameter|invoke|function_calls|tool_calls|(?<= )calls)>\s*"
    r"|(?:&lt;)/[｜|]DSML[^\n]{0,40})$"
)


def in_arguments(subject: Subject) -> Iterator[Seen]:
    """The leaks in the reply's calls."""
    for text in subject.free_texts:
        if text.in_call and text.markup:
            yield from _in_value(subject, text)
        elif text.in_call and _is_asked_for_but_end(subject, text.text):
            piece = Fragment(form=Form.HALF, start=len(text.text) - 2, end=len(text.text))
            yield leak(text.where, text.text, piece, "the value runs into its own closer")
    for call in subject.calls:
        if call.name and may_hold_markup(call.name):
            for piece in fragments(call.name)[:1]:
                yield leak(f"{call.where}.name", call.name, piece, "a call's name holds markup")
        elif isinstance(raw := call.call.arguments, str):
            if call.arguments.value is None:
                yield from _in_raw(f"{call.where}.arguments", raw)
            elif (">" in raw or "string=" in raw) and not asks_about_markup(subject):
                yield from _in_names(f"{call.where}.arguments", call.arguments.value)


def _in_raw(where: str, raw: str) -> Iterator[Seen]:
    """Markup in arguments that cannot be decoded."""
    if may_hold_markup(raw):
        for piece in _strong(fragments(raw))[:1]:
            yield leak(where, raw, piece, "markup in raw arguments")


def _in_names(where: str, arguments: object) -> Iterator[Seen]:
    """Markup in the name of an argument, which only a parser's cut can put there."""
    for key in arguments if isinstance(arguments, Mapping) else ():
        pieces = fragments(key) if ">" in key and may_hold_markup(key) else ()
        found = [piece for piece in pieces if piece.form is not Form.PLAIN]
        if not found and (match := _CUT_ATTRIBUTE.search(key)):
            found = [Fragment(form=Form.ATTRIBUTE, start=match.start(), end=match.end())]
        if found:
            yield leak(where, key, found[0], "an argument's name holds markup")
            return


def _in_value(subject: Subject, text: Text) -> Iterator[Seen]:
    pieces = text.markup
    if not pieces or asks_about_markup(subject):
        return
    if _is_document(pieces, text.text):
        return
    first, last = pieces[0], pieces[-1]
    at_head = first.form is Form.ATTRIBUTE and begins(text.text, first)
    cut_name = first.form is Form.ATTRIBUTE and _CUT_NAME.fullmatch(text.text, 0, first.start)
    own = cut_name or (at_head and _is_own_opener(subject, text, first))
    # The attribute and nothing behind it is what somebody looks for.
    if own and text.text[first.end :].strip():
        yield leak(text.where, text.text, first, "the value begins with the rest of its own opener")
        return
    end = _CLOSER_AT_END.search(text.text, max(0, len(text.text) - 96))
    if end and (last.closing or last.form in (Form.HALF, Form.TORN)):
        piece = Fragment(form=Form.HALF, start=end.start(), end=end.end())
        yield leak(text.where, text.text, piece, "the value runs into its own closer")
        return
    quoted = quotations_of(text)
    if (found := _NEXT.search(text.text)) and is_declared(subject, found[1]):
        piece = Fragment(form=Form.PLAIN, start=found.start(), end=found.end())
        yield leak(text.where, text.text, piece, "the value runs into the next parameter")
        return
    is_patch = "@@ " in text.text
    for piece in pieces:
        if piece.form in _WEAK and not _is_next_parameter(subject, text, piece):
            continue
        if is_patch and line_of(text.text, piece.start).startswith(("+", "-")):
            # Markup of the file that is patched.
            continue
        if not text.code.covers(piece.start) and not quoted.covers(piece.start):
            yield leak(text.where, text.text, piece, "unmatched markup inside an argument value")
            return


def _is_next_parameter(subject: Subject, text: Text, piece: Fragment) -> bool:
    """True for the opener of another parameter of an offered tool, its marker lost."""
    if piece.form is not Form.PLAIN or piece.name is None or piece.closing:
        return False
    return "string=" in text.text[piece.start : piece.end] and is_declared(subject, piece.name)


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
    name = NAMED.match(text.text, piece.start)
    if name is None or "string=" in text.text[piece.start : piece.end]:
        return True
    return name[1] == text.where.rpartition(".")[2] or name[1] in (subject.tools or {})


def _strong(pieces: tuple[Fragment, ...]) -> list[Fragment]:
    return [piece for piece in pieces if piece.form not in _WEAK]


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


def quotations_of(text: Text) -> Spans:
    """The text's quotations; none in a text with broken characters, whose marks are salad too."""
    return NOWHERE if not text.signs.isdisjoint(BROKEN) else quoted_spans(text.text)


def is_declared(subject: Subject, name: str) -> bool:
    """True for the name of a parameter of an offered tool."""
    schemas = (subject.tools or {}).values()
    properties = [schema.get("properties") for schema in schemas]
    return any(isinstance(declared, Mapping) and name in declared for declared in properties)


def line_of(text: str, position: int) -> str:
    """What stands before a place on its line; nothing where the line begins too far off."""
    margin = text[max(0, position - MARGIN) : position]
    return margin.rpartition("\n")[2] if "\n" in margin or position <= MARGIN else ""


def begins(text: str, piece: Fragment) -> bool:
    """True for a fragment with nothing but what ends an opener before it."""
    return piece.start <= MARGIN and not text[: piece.start].strip(_OPENER_END)


def leak(where: str, text: str, piece: Fragment, rule: str) -> Seen:
    return Seen(
        label=Label.DSML_LEAK, where=where, what=f"{rule}, {span(text, piece.start, piece.end)}"
    )
