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
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from dsv4doctor.detect.detector import Detector, Seen
from dsv4doctor.detect.dsml_arguments import (
    MARGIN,
    NAMED,
    begins,
    in_arguments,
    is_declared,
    leak,
    line_of,
    quotations_of,
)
from dsv4doctor.detect.hints import CALLS
from dsv4doctor.detect.quoting import Spans
from dsv4doctor.detect.request import asks_about_markup
from dsv4doctor.detect.subject import MARKUP, Subject, Text
from dsv4doctor.dsml.tolerant import Form, Fragment, written_calls
from dsv4doctor.label import Label

# What takes markup back rather than asking for it, and what asks for it.
_UNWANTED = re.compile(
    r"\b(?:stop|quit|don['’]?t|do not|never|no more|without|instead of|keeps?|again|leak\w*)\b",
    re.IGNORECASE,
)
_SHOWS = re.compile(
    r"\b(?:show|print|writ\w+|give|output|display|emit|quote|example|sample|literal\w*|raw|verbatim|"
    r"exact\w*|looks?|explain|describe|format|syntax|fixture|what|how|which)\b",
    re.IGNORECASE,
)
_CODE_INDENTS = ("    ", "\t")
_NAME_BEFORE = re.compile(r"name=\\?[\"']([\w.-]{1,64})\\?[\"']\s*$")
# The same without its own beginning, where DSML's attribute follows.
_CUT_NAME_BEFORE = re.compile(r"(?<![\w.-])([\w.-]{1,64})\\?[\"']\s*$")
# What a closer may stand behind, a blank between them.
_ENDS = ("\n", ".", "!", "?", "…", ")", "。", "！", "？")
# All that is no name in `</invoke>`.
_NAME_OF_CLOSER = re.compile(r"\W+")
_VALUE_HEAD = re.compile(r"(?:[a-z]{0,5}=)[\"'](?:true|false)[\"']>")
# A call's opener that a text ends in.
_CUT_INVOKE = re.compile(r"< ?(?:i[nvoke]{0,5}(?:\s+n?a?m?e?=?[^<>\n]{0,80})?)?")
# Requests that an example of a call answers.
_ABOUT_CALLS = re.compile(
    r"\b(?:examples?|samples?|fixtures?|pars\w+|raw|formats?|syntax|tests?|docs?|documentation|wire|tools?|"
    r"functions?|invok\w+|xml)\b",
    re.IGNORECASE,
)


def detect(subject: Subject) -> Iterator[Seen]:
    for text in (subject.content, subject.reasoning):
        if text.markup:
            yield from _in_prose(subject, text)
    if subject.calls:
        yield from in_arguments(subject)


def _in_prose(subject: Subject, text: Text) -> Iterator[Seen]:
    pieces = text.markup
    if not pieces:
        return
    code = text.code
    loose = tuple(piece for piece in pieces if not code.covers(piece.start))
    if loose and not _spells_offered(subject, text.text, loose):
        # Below prose it is Markdown's other code.
        loose = tuple(p for p in loose if not _is_indented(text.text, p.start))
        if not loose:
            return
    if not loose:
        if _is_fenced_call(subject, text):
            yield leak(text.where, text.text, pieces[0], "a call that was asked for, in a fence")
        return
    if asks_about_markup(subject) and not _is_unmade_call(subject, text, loose):
        return
    reading = _Reading(
        text=text.text,
        quoted=quotations_of(text),
        spells_call=_plain_is_call(subject, text.text, loose),
        only_attributes=all(piece.form is Form.ATTRIBUTE for piece in loose),
    )
    for piece in loose:
        if _counts(subject, piece, reading):
            yield leak(text.where, text.text, piece, _RULE[piece.form])
            return


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
        return (
            not reading.only_attributes
            or _begins_call(subject, piece, reading.text)
            or _ends_with_opener(subject, piece, reading.text)
            or _is_cut_opener(subject, piece, reading.text)
        )
    return True


def _is_indented(text: str, start: int) -> bool:
    """True on a line that is indented as Markdown's code is, in a text that is not."""
    return line_of(text, start).startswith(_CODE_INDENTS) and not text[0].isspace()


def _is_left_open(last: Fragment, text: str) -> bool:
    """True for a block that opens on a line of its own and is the end of the text: whoever shows
    XML ends with what closes."""
    opens = last.form is Form.PLAIN and last.element == "block" and not last.closing
    if not opens or not _begins_a_line(text, last.start):
        return False
    rest = text[last.end :].strip()
    return not rest or _CUT_INVOKE.fullmatch(rest) is not None


def _is_orphan_end(plain: list[Fragment], text: str) -> bool:
    """True for a text that ends with closers of which it opened none, in whatever way."""
    if not all(p.closing for p in plain) or text[plain[-1].end :].strip():
        return False
    # A sentence that names them has words between them, or a blank before the first.
    if any(text[one.end : other.start].strip() for one, other in pairwise(plain)):
        return False
    before = text[max(0, plain[0].start - MARGIN) : plain[0].start]
    if before.endswith(" ") and before.strip() and not before.rstrip(" ").endswith(_ENDS):
        return False
    names = {_NAME_OF_CLOSER.sub("", text[p.start : p.end]) for p in plain}
    return not any(f"<{name}" in text for name in names)


def _plain_is_call(subject: Subject, text: str, loose: tuple[Fragment, ...]) -> bool:
    """Plain `<invoke>` elements are XML like any other unless they spell a call to an offered
    tool."""
    offered = subject.tools or {}
    plain = [piece for piece in loose if piece.form is Form.PLAIN]
    named = [p.name for p in plain if p.element == "invoke" and not p.closing and p.name]
    if any(name in offered for name in named):
        return True
    has_block = any(p.element == "block" for p in plain)
    has_parameter = any(p.element == "parameter" for p in plain)
    if has_block and bool(offered) and _is_left_open(loose[-1], text):
        return True
    if offered and plain and _is_orphan_end(plain, text):
        return True
    if has_block and bool(offered) and all(p.closing for p in plain):
        # Nobody closes a call and its block but who has opened them.
        return has_parameter or any(p.element == "invoke" for p in plain)
    return bool(offered) and has_block and (bool(named) or has_parameter)


def _is_bare_parameter(subject: Subject, piece: Fragment, text: str) -> bool:
    """True for a parameter element without its call that only a tool call can have: it has DSML's
    own attribute, or begins a reply that ends with its closer, and names a parameter offered."""
    if piece.element != "parameter" or piece.closing or piece.name is None:
        return False
    if not is_declared(subject, piece.name):
        return False
    if "string=" in text[piece.start : piece.end]:
        return _begins_a_line(text, piece.start)
    begins = piece.start < MARGIN and not text[: piece.start].strip()
    return begins and text.rstrip().endswith("</parameter>")


def _ends_with_opener(subject: Subject, piece: Fragment, text: str) -> bool:
    """True for the rest of an opener of an offered tool's parameter that ends a text."""
    name = _NAME_BEFORE.search(text, max(0, piece.start - MARGIN), piece.start)
    return not text[piece.end :].strip() and name is not None and is_declared(subject, name[1])


def _is_cut_opener(subject: Subject, piece: Fragment, text: str) -> bool:
    """True for DSML's own attribute behind the name of an offered tool's parameter, the bracket
    that opened it gone."""
    before = text[max(0, piece.start - MARGIN) : piece.start].rsplit("\n", 1)[-1]
    if "<" in before or "string=" not in text[piece.start : piece.end]:
        return False
    name = _CUT_NAME_BEFORE.search(before)
    return name is not None and is_declared(subject, name[1])


def _begins_call(subject: Subject, piece: Fragment, text: str) -> bool:
    """True for the rest of an opener at the very start of a text: with DSML's own attribute, or of
    an offered tool."""
    if not begins(text, piece):
        return False
    if "string=" in text[piece.start : piece.end]:
        return True
    if subject.tools and _VALUE_HEAD.match(text, piece.start):
        return True
    name = NAMED.match(text, piece.start)
    return name is not None and name[1] in (subject.tools or {})


def _is_echoed_result(subject: Subject, piece: Fragment, text: str) -> bool:
    """True for the wrapper of a tool's result on a line of its own: the prompt's side of a call,
    invented."""
    opens = piece.element == "results" and not piece.closing
    return opens and bool(subject.tools) and _begins_a_line(text, piece.start)


def _begins_a_line(text: str, start: int) -> bool:
    """True when only blanks stand before `start` on its line."""
    margin = text[max(0, start - MARGIN) : start]
    line = margin.rsplit("\n", 1)[-1]
    return not line.strip() and ("\n" in margin or start < MARGIN)


def _is_unmade_call(subject: Subject, text: Text, loose: tuple[Fragment, ...]) -> bool:
    """True when the text spells a call to an offered tool outside code and the reply makes none,
    though forced; or when it ends with the call, and the markup that was asked about stands in code
    above it or was not wanted."""
    if subject.calls or not _spells_offered(subject, text.text, loose):
        return False
    if subject.is_forced:
        return True
    last = loose[-1]
    if not last.closing or text.text[last.end :].strip():
        return False
    return len(loose) < len(text.markup) or (
        _UNWANTED.search(subject.prompt) is not None and not _SHOWS.search(subject.prompt)
    )


def _is_fenced_call(subject: Subject, text: Text) -> bool:
    """True for a call to an offered tool in a fence that ends the reply, where the request speaks
    of no markup and nothing else was called."""
    if subject.calls or not subject.prompt or text.where != "content":
        return False
    if not text.text.rstrip().endswith("```") or asks_about_markup(subject):
        return False
    if not subject.is_forced and _ABOUT_CALLS.search(subject.prompt):
        return False
    whole = any(p.form is Form.TAG and p.element == "invoke" and p.closing for p in text.markup)
    return whole and _spells_offered(subject, text.text, text.markup)


def _spells_offered(subject: Subject, text: str, pieces: tuple[Fragment, ...]) -> bool:
    offered = subject.tools or {}
    return any(call.name in offered for call in written_calls(text, pieces))


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
    hints=CALLS | MARKUP,
)
