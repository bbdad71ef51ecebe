"""A call that should be there and is not.

Seen: `tool_choice` demanded a call and none came; `finish_reason` says `tool_calls` over an empty
list; the call is written out in the text (name and JSON, fenced JSON, XML, Python, DSML); the
reply announces the next step and stops.
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
from collections.abc import Iterator, Mapping
from typing import Any

from dsv4doctor.detect.announcement import (
    announces_action,
    announces_call,
    is_doing,
    last_sentence,
)
from dsv4doctor.detect.detector import Detector, Seen, span
from dsv4doctor.detect.request import asks_about_markup
from dsv4doctor.detect.subject import Subject
from dsv4doctor.dsml.tolerant import Form
from dsv4doctor.label import Label

_CALL_MARKUP = re.compile(
    r"<(?:\w+[:_])?(tool_calls?|function_calls?|tool_use|function|invoke|tool)(?:[ =][^<>\n]{1,200})?>|"
    r"\[TOOL_CALLS\]|✿FUNCTION✿|<\|tool_calls?(?:_section)?(?:_begin)?\|>|<\|python_tag\|>",
)
_JSON_CALL = re.compile(
    r"\{\s*(?:\"type\"\s*:\s*\"[a-z_]{1,20}\"\s*,\s*(?:\"id\"\s*:\s*\"[^\"\n]{0,80}\"\s*,\s*)?)?\"(?:name|tool|tool_name|function|action|recipient_name)\"\s*:\s*(?:\{\s*\"name\"\s*:\s*)?\"([^\"\n]{1,80})\""
)
# The name under a heading and its arguments behind it: `Action: f`, `Action Input: {…}`.
_NAMED_CALL = re.compile(
    r"^\W{0,4}(?:action|(?:tool|function)(?:[ _](?:call|name))?|(?:call|us|invok)(?:e|ing)?(?: the)?(?: (?:tool|function))?)"
    r"\W{1,6}(\w[\w.-]{1,79})\W{0,4}"
    r"(?:(?:with|(?:\n\W{0,4}(?:action[ _]input|arguments|args|parameters|params|input)))?\W{0,6}\{"
    r"|\n\W{0,4}(?:arguments|args|parameters|params|input)\W{0,3}\n\s+\w+:)",
    re.IGNORECASE | re.MULTILINE,
)
# Of an offered tool and nothing else.
_ACTED = (
    r"\W{{1,3}}(?:now |i )?(?:call(?:s|ing)?|invok(?:es?|ing)|us(?:es?|ing)|runs?|running|execut(?:es?|ing)|quer(?:y|ies|ying))\b"
    r"[^*\n]{{0,30}}(?<![\w.]){name}(?!\w)[^*\n]{{0,140}}\W{{1,3}}"
)
# A recipient and its message, as harmony addresses a call: `commentary to=functions.f json{…}`.
_ADDRESSED_CALL = re.compile(r"\bto=(?:functions\.)?(\w[\w.-]{0,79})[^{}\n]{0,60}\{")
_ENGLISH_GLUE = re.compile(
    r"\b(?:the|is|are|this|these|here|following|of|to|and|for|your|with)\b", re.I
)
# Prose: no markup, paths, keys or numbers, which open data and not a step.
_LETTERS_ONLY = re.compile(r"[^<>{}\[\]()=|/\\#*_`\d]+")
_COLON_WORDS = 4
_ANNOUNCED_CHARS = 200
# Where one would look for a call written as text: its first and last lines.
_EDGE = 2000
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
    if subject.calls:
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


def _as_text(subject: Subject) -> Iterator[Seen]:
    text = subject.content.text
    if found := _written_out(subject, text):
        yield _seen(subject, "content", f"a call written as text, {found}", leads=True)
    elif subject.has_visible_content and _only_promises(text):
        yield _seen(subject, "content", "the reply is a thinking block and no call", leads=True)
    elif _markup_of_a_call(subject):
        yield _seen(subject, "content", "markup of a call, and no call")
    elif subject.finish == "stop":
        yield from _announced(subject)


def _written_out(subject: Subject, text: str) -> str | None:
    if asks_about_markup(subject):
        return None
    offered = subject.tools or {}
    head = text[:_EDGE]
    for name in offered:
        at = head.find(name)
        if at < 0:
            continue
        before, after = head[:at].strip(), head[at + len(name) :].lstrip()[:1]
        # Python's form of several calls is a list of them; Gemini's a fence that prints one.
        before = "" if before == "[" else before
        if _is_acted(text, name) or (before.endswith("tool_code\nprint(") and after == "("):
            return span(text, at, at + 60)
        # The name alone on its line with arguments right behind it: not a mention in a sentence.
        if (
            after in ("(", "{")
            and (not before or head[:at].endswith("\n"))
            and _only_call(text, at)
        ):
            return span(text, at, at + 60)
    if found := _headed(text, offered) or _in_tags(subject, text, offered):
        return span(text, *found)
    for match in _JSON_CALL.finditer(text):
        if match[1] in offered and (
            "arguments" in text or "parameters" in text or '"args"' in text or '"input"' in text
        ):
            return span(text, *match.span())
    for match in _CALL_MARKUP.finditer(text):
        inside = text[match.start() : match.start() + _EDGE]
        if any(name in inside for name in offered) and not _inline(subject, match.start()):
            return span(text, *match.span())
    return None


def _is_acted(text: str, name: str) -> bool:
    """True for a reply that is a stage direction, a call told instead of made: `*calls f with x*`,
    `[using f]`."""
    line = text.strip()
    if len(line) > _ANNOUNCED_CHARS or line[:1] not in "*([_" or line[-1:] not in "*)]_":
        return False
    return re.fullmatch(_ACTED.format(name=re.escape(name)), line, re.IGNORECASE) is not None


def _headed(text: str, offered: Mapping[str, Any]) -> tuple[int, int] | None:
    """Where an offered tool's name stands under a heading or as a recipient, arguments behind."""
    for pattern in (_NAMED_CALL, _ADDRESSED_CALL):
        for match in pattern.finditer(text):
            if match[1] in offered:
                return match.span()
    return None


def _in_tags(
    subject: Subject, text: str, offered: Mapping[str, Mapping[str, Any]]
) -> tuple[int, int] | None:
    """Where a call is spelt as an element with the tool's name around one with a parameter's."""
    for name, schema in offered.items():
        declared = schema.get("properties")
        if f"<{name}>" not in text or not isinstance(declared, Mapping):
            continue
        inner = "|".join(re.escape(str(parameter)) for parameter in declared)
        for match in re.finditer(rf"<{re.escape(name)}>\s*<(?:{inner})>", text):
            if inner and not _inline(subject, match.start()):
                return match.span()
    return None


def _inline(subject: Subject, position: int) -> bool:
    return subject.content.code.covers(position)


def _only_call(text: str, at: int) -> bool:
    """True when nothing but the call follows its name: the reply ends with its bracket."""
    return text[at:].rstrip().rstrip("`;").rstrip().endswith((")", "}", ")]"))


def _only_promises(text: str) -> bool:
    """True for a reply that is a thinking block and nothing else, and ends on what to do next."""
    block = _THINK_BLOCK.fullmatch(text)
    return block is not None and announces_action(last_sentence(block[2]))


def _markup_of_a_call(subject: Subject) -> bool:
    for text in (subject.content, subject.reasoning):
        if not text.markup or asks_about_markup(subject):
            continue
        for piece in text.markup:
            call_part = piece.element in ("invoke", "parameter")
            token = piece.form is Form.TOKEN and "begin" in text.text[piece.start : piece.end]
            loose = not text.code.covers(piece.start)
            if loose and (call_part or token) and piece.form is not Form.PLAIN:
                return text.where == "content" or not subject.has_visible_content
    return False


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
