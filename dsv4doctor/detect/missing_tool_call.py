"""A call that should be there and is not.

Seen: `tool_choice` demanded a call and none came; `finish_reason` says `tool_calls` over an empty
list; the call is written out in the text (name and JSON, fenced JSON, XML, Python, DSML, a stage
direction); the reply announces the next step and stops.
Why: the agent stops working and nobody is told. With `tool_choice` auto and nothing that forced a
call it is named and is no corruption: a model may well decide so.
Confirm: the same request with `tool_choice` required and at temperature 0, then to `/generate`: a
block in the raw text was dropped by the parser, no block was never written.
Source: https://github.com/deepseek-ai/DeepSeek-V3/issues/1244,
https://github.com/sgl-project/sglang/issues/35736.
"""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterator

from dsv4doctor.detect.announcement import (
    announces_action,
    announces_call,
    is_doing,
    last_sentence,
)
from dsv4doctor.detect.detector import Detector, Seen
from dsv4doctor.detect.request import asks_about_markup
from dsv4doctor.detect.subject import Subject
from dsv4doctor.detect.written_call import written_out
from dsv4doctor.dsml.tolerant import Form, Fragment
from dsv4doctor.label import Label

# An element's name in or right behind a damaged marker.
_ELEMENT = re.compile(r"invoke|parameter")
_ELEMENT_CHARS = 10
_ENGLISH_GLUE = re.compile(
    r"\b(?:the|is|are|this|these|here|following|of|to|and|for|your|with)\b", re.I
)
# Prose: no markup, paths, keys or numbers, which open data and not a step.
_LETTERS_ONLY = re.compile(r"[^<>{}\[\]()=|/\\#*_`\d]+")
_COLON_WORDS = 4
_ANNOUNCED_CHARS = 200
_THINK_BLOCK = re.compile(
    r"\s*(?:<(think(?:ing)?|thought|reasoning)>((?:(?!</\1>).)*)(?:</\1>|\Z)\s*)+", re.DOTALL
)
# Texts in which somebody speaks: their "I will" is no promise of the model's.
_ASKS_FOR_SPEECH = re.compile(
    r"\b(?:e-?mail|mail|letter|message|reply|repl(?:y|ies)|sentence|line|story|poem|haiku|verse|dialog(?:ue)?|tweet|post|"
    r"translat\w*|rephrase|paraphrase|caption|slogan|diary|speech|lyrics|song|fiction|novel|role-?play|quote)\b|"
    r"how (?:do|would) (?:you|i|we) say|\b(?:say|put|write) (?:it|this|that)\b|"
    r"\bin (?:english|french|german|spanish|italian|portuguese|russian|ukrainian|chinese|japanese|korean|dutch|polish|turkish|arabic|hindi|greek|czech|swedish)\W|"
    r"翻译|翻譯|邮件|信|诗|故事|対話|翻訳|メール|übersetz|traduis|traduce|tradu[cz]|перевед|письмо|стих",
    re.IGNORECASE,
)


def detect(subject: Subject) -> Iterator[Seen]:
    if subject.calls or not _concerns_calls(subject):
        return
    forced = subject.is_forced
    if subject.choice == "required" or forced:
        named = f" ({subject.forced_tool})" if subject.forced_tool else ""
        yield _seen(subject, "tool_calls", f"a call was demanded{named} and none came", leads=True)
    elif subject.finish == "tool_calls":
        yield _seen(
            subject, "tool_calls", "finish_reason is tool_calls, and there is none", leads=True
        )
    elif subject.choice == "auto" and subject.tools:
        yield from _as_text(subject)


def _concerns_calls(subject: Subject) -> bool:
    """False where neither the request nor the finish reason knows of calls."""
    exchange = subject.exchange
    return bool(
        exchange.tools
        or exchange.tool_choice
        or exchange.canaries
        or subject.finish == "tool_calls"
    )


def _as_text(subject: Subject) -> Iterator[Seen]:
    text = subject.content.text
    if found := written_out(subject, text):
        yield _seen(subject, "content", f"a call written as text, {found}", leads=True)
    elif subject.has_visible_content and _only_promises(text):
        yield _seen(subject, "content", "the reply is a thinking block and no call", leads=True)
    elif _markup_of_a_call(subject):
        yield _seen(subject, "content", "markup of a call, and no call")
    elif subject.finish == "stop":
        yield from _announced(subject)


def _only_promises(text: str) -> bool:
    """True for a reply that is a thinking block and nothing else, and ends on what to do next."""
    block = _THINK_BLOCK.fullmatch(text)
    return block is not None and announces_action(last_sentence(block[2]))


def _markup_of_a_call(subject: Subject) -> bool:
    for text in (subject.content, subject.reasoning):
        if not text.markup or asks_about_markup(subject):
            continue
        for piece in text.markup:
            if not text.code.covers(piece.start) and _is_of_call(text.text, piece):
                return text.where == "content" or not subject.has_visible_content
    return False


def _is_of_call(text: str, piece: Fragment) -> bool:
    """True for a piece that only a call has: of one of its elements, or what opens its block."""
    spelt = text[piece.start : piece.end]
    if piece.form is Form.TOKEN:
        return ("begin" in spelt or "sep" in spelt) and "output" not in spelt
    if piece.form in (Form.TORN, Form.BARE):
        before = text[: piece.start].rstrip(" <")
        begins = not before or before.endswith("\n")
        return begins and _ELEMENT.search(text, piece.start, piece.end + _ELEMENT_CHARS) is not None
    if piece.element == "block":
        return piece.form is Form.TAG and not piece.closing
    return piece.element is not None and piece.form is not Form.PLAIN


def _announced(subject: Subject) -> Iterator[Seen]:
    content = subject.content.text
    sentence = last_sentence(content)
    if subject.has_visible_content:
        says = announces_action(sentence, subject.tools or ()) or is_doing(
            content, subject.tools or ()
        )
        if says and not _ASKS_FOR_SPEECH.search(subject.prompt):
            yield _seen(subject, "content", f"announces a step and stops: {sentence[:80]!r}")
            return
        if _opens_something(subject, sentence) and not _ASKS_FOR_SPEECH.search(subject.prompt):
            yield _seen(subject, "content", f"ends on a colon: {sentence[:80]!r}")
            return
        if content.rstrip().endswith(("?", "？")):
            return
    reasoning = subject.reasoning.text
    thought = last_sentence(reasoning)
    for name in subject.tools or {}:
        if announces_call(reasoning, name):
            yield _seen(subject, "reasoning_content", f"announces a call of {name} and makes none")
            return
    if not subject.has_visible_content and announces_action(thought):
        yield _seen(subject, "reasoning_content", f"announces a step and stops: {thought[:80]!r}")


def _opens_something(subject: Subject, sentence: str) -> bool:
    """True for a last sentence that ends on a colon, in a language whose announcements are not all
    known here: what should follow is the call. In English it may as well be a list that was cut."""
    if not sentence.endswith((":", "：")) or sentence.isascii() or _ENGLISH_GLUE.search(sentence):
        return False
    # Announcements are a line; a long text that ends so was cut, or quotes what ends so.
    text = subject.content.text.strip()
    if len(text) > _ANNOUNCED_CHARS or "\n" in text or "%" in text:
        return False
    long_enough = len(sentence.split()) >= _COLON_WORDS or len(sentence) >= _COLON_WORDS * 4
    return long_enough and _LETTERS_ONLY.fullmatch(sentence) is not None


def _seen(subject: Subject, where: str, what: str, *, leads: bool = False) -> Seen:
    return Seen(
        label=Label.MISSING_TOOL_CALL,
        where=where,
        what=what,
        corrupts=subject.is_forced,
        leads=leads,
    )


DETECTOR = Detector(
    label=Label.MISSING_TOOL_CALL, summary="a call that should be there and is not", detect=detect
)
