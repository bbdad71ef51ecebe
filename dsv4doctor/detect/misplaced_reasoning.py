"""Reasoning where the answer belongs, or the answer where the reasoning belongs.

Seen: thinking tags or a monologue about "the user" in `content`; the answer, or a tool call's
markup, in `reasoning_content` with nothing in `content`.
Why: users read the model's private thoughts, or see nothing at all. It is mostly the reasoning
parser (wrong name, or a template that opens the thinking itself), but damage at the switch looks
the same.
Confirm: look for `</think>` in the raw text of `/generate`; compare with `--reasoning-parser`
unset.
Source: https://github.com/ai-dynamo/dynamo/pull/10203,
https://github.com/sgl-project/sglang/pull/32539.
"""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterator

from dsv4doctor.detect.announcement import announces_action, last_sentence
from dsv4doctor.detect.detector import Detector, Seen, span
from dsv4doctor.detect.hints import REASONING, hint
from dsv4doctor.detect.monologue import TALKS_OF_USER, monologue, numbered_plan
from dsv4doctor.detect.quoting import holds_template, quoted_spans
from dsv4doctor.detect.request import asks_about_markup
from dsv4doctor.detect.signs import holds_any
from dsv4doctor.detect.subject import Subject, Text
from dsv4doctor.dsml.tolerant import Form
from dsv4doctor.label import Label

_TAG = re.compile(
    r"</?(?:\w{1,12}[:_]|ant)?(?:think(?:ing)?|thoughts?|reasoning|scratchpad|inner_monologue)>|<\s?/?\s?think(?:ing)?\s?>|</thin(?:k(?:ing?)?)?(?=\s)|◁/?think▷|"
    r"\[/?THINK\]|<\|(?:begin|end)_of_(?:thought|reasoning|thinking)\|>|<\|/?think\|>|<think(?:ing)?$|</thi(?:n(?:k(?:ing?)?)?)?$|"
    r"&lt;/?think(?:ing)?&gt;",
    re.IGNORECASE,
)
# Harmony's channels with their tokens taken out: the words that stood in them, glued to the text.
_GLUED_CHANNELS = re.compile(
    r"\A\s*(?:analysis(?=[A-Z]))|(?<=[^\s\w])assistant(?:final|commentary)(?=\S)"
)
_TORN_HEAD = re.compile(r"\s{0,4}(?:/?t)?(?:h?i)?nk>(?=\s*\n|[A-Z\u3400-\u9fff])")
_TORN_REACH = 12
# The same behind a thought.
_TORN_INSIDE = re.compile(r"(?<=[.!?。！？…)])/?(?:t?h?i)?nk>(?=\n|[A-Z\u3400-\u9fff]|\Z)")
# What a sentence calls a tag before it names it.
_NAMES_TAG = re.compile(
    r"\b(?:tags?|tokens?|markers?|delimiters?|balises?|etiquetas?|тега?|тегом)\s\Z|(?:标签|标记|タグ)\s?\Z",
    re.IGNORECASE,
)
_NAME_REACH = 16
# A closer glued to the end of a thought, and what was thought out glued to it.
_GLUED_CLOSER = re.compile(r"[.!?。！？…)]</think(?:ing)?>(?=\w|\n|\Z)")
_EDGE_CLOSER = re.compile(r"\A\s*</think(?:ing)?>|</think(?:ing)?>\Z")
# Every tag begins with one of these.
_OPENERS = frozenset("<◁[&")
# No tag without one of each: found at memory speed, they keep the pattern off healthy text.
_HINTS = ("hink", "</thi", "HINK", "hought", "easoning", "cratchpad", "onologue")
_ENDS = (
    "hink>", "hink >", "hinking>", "hinking >", "HINK>", "HINKING>", "HINK]", "hink|>", "hink▷", "hink&gt;", "hinking&gt;",
    "hought>", "houghts>", "hought|>", "hinking|>", "easoning>", "easoning|>", "cratchpad>",
    "onologue>", "<think", "</thi",
)  # fmt: skip
# The same for a search of all at once (see `hints.py`).
_THINKS = hint(
    r"(?i)(?:<|&lt;)[^!-~]?/?[^!-~]?(?:[^<>]{1,12}[:_]|ant)?(?:think|thoughts?>|reasoning>|scratchpad>|inner_monologue>)",
    r"(?i)</thi|◁/?think|\[/?think\]|<\|(?:/?think|(?:begin|end)_of_(?:thought|reasoning|thinking))\|>",
)
_GLUED_WORDS = hint(r"assistant(?:final|commentary)\S", "(?i)(?:thinking|thought) process")
_TORN = hint("nk>")
# What is only planned in it is no answer.
_PLAN = re.compile(
    r"^\W*(?:so |then |now |and |ok(?:ay)? |first |next )*,?(?:i(?:['’]ll| will| should| must| need to| have to| can)\b|let me\b|let['’]s\b|we (?:should|need to)\b"
    r"|我(?:会|將|将|要|来|應該|应该|需要|得|先|可以)|让我|讓我)",
    re.IGNORECASE,
)
# How far into the content a heading of thoughts is looked for.
_HEAD = 120
# A channel of thoughts and one of the answer.
_BOTH = 2
_MIN_ANSWER_WORDS = 6
# The same in scripts that write without blanks.
_NO_BLANKS = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_MIN_ANSWER_CHARS = 10


def detect(subject: Subject) -> Iterator[Seen]:
    hints = subject.content.hints
    if hints & _THINKS:
        yield from _tags(subject, subject.content)
    if hints & _GLUED_WORDS:
        yield from _glued_channels(subject)
    if hints & _TORN:
        yield from _torn_head(subject)
    if subject.calls and subject.hints & _THINKS:
        yield from _at_an_edge(subject)
    if hints & TALKS_OF_USER and (found := monologue(subject)):
        yield _seen("content", f"the model talks to itself, {found}")
    if subject.reasoning.text:
        yield from _in_reasoning(subject)


def _in_reasoning(subject: Subject) -> Iterator[Seen]:
    yield from _answer_in_reasoning(subject)
    if subject.reasoning.markup and not asks_about_markup(subject):
        for piece in subject.reasoning.markup:
            if piece.form in (Form.TAG, Form.HALF) and not subject.reasoning.code.covers(
                piece.start
            ):
                what = f"a tool call inside the reasoning, {span(subject.reasoning.text, piece.start, piece.end)}"
                yield _seen("reasoning_content", what)
                break


def _tags(subject: Subject, text: Text) -> Iterator[Seen]:
    body = text.text
    if text.signs.isdisjoint(_OPENERS):
        return
    if not holds_any(body, _HINTS) or not holds_any(body, _ENDS) or holds_template(body):
        return
    quoted = None
    for match in _TAG.finditer(body):
        if text.code.covers(match.start()) or body.endswith("<code>", 0, match.start()):
            continue
        name = match.group().strip("</>").lower()
        if f"<{name}" in subject.prompt.lower() or _is_talked_about(subject, body, match.start()):
            continue
        if _NAMES_TAG.search(body, max(0, match.start() - _NAME_REACH), match.start()):
            continue
        quoted = quoted if quoted is not None else quoted_spans(body)
        if not quoted.covers(match.start()):
            yield _seen(text.where, f"a thinking tag outside code, {span(body, *match.span())}")
            return


def _glued_channels(subject: Subject) -> Iterator[Seen]:
    body = subject.content.text
    if "rocess" in body[:_HEAD] and (found := numbered_plan(subject)):
        yield _seen("content", f"thoughts and answer parted in words, {found}")
    elif "assistant" in body and len(glued := list(_GLUED_CHANNELS.finditer(body))) >= _BOTH:
        yield _seen("content", f"channels of thoughts and answer, {span(body, *glued[-1].span())}")


def _torn_head(subject: Subject) -> Iterator[Seen]:
    """The rest of a closer with which the content begins: the parser cut it too late."""
    body = subject.content.text
    if "nk>" in body[:_TORN_REACH] and (match := _TORN_HEAD.match(body)):
        yield _seen("content", f"the end of a thinking tag, {span(body, *match.span())}")
    elif "nk>" in body and (match := _TORN_INSIDE.search(body)):
        yield _seen("content", f"the rest of a thinking tag, {span(body, *match.span())}")


def _at_an_edge(subject: Subject) -> Iterator[Seen]:
    """A closer with no opener where an argument's value begins or ends."""
    for text in subject.free_texts:
        if not text.in_call or "</think" not in text.text:
            continue
        match = _EDGE_CLOSER.search(text.text) or _glued(text)
        asked = asks_about_markup(subject) or holds_template(text.text)
        if match and "<think" not in text.text and not asked:
            yield _seen(text.where, f"a thinking tag, {span(text.text, *match.span())}")
            return


def _glued(text: Text) -> re.Match[str] | None:
    """The one closer of a value, between a thought and what came of it."""
    if text.text.count("</think") != 1:
        return None
    match = _GLUED_CLOSER.search(text.text)
    return None if match is None or text.code.covers(match.start()) else match


def _is_talked_about(subject: Subject, body: str, start: int) -> bool:
    """True for a tag in the middle of a sentence that the prompt asked about."""
    return (
        asks_about_markup(subject)
        and bool(body[:start].strip())
        and "\n" not in body[max(0, start - 1) : start]
    )


def _answer_in_reasoning(subject: Subject) -> Iterator[Seen]:
    reasoning = subject.reasoning.text
    if "</think" in reasoning and subject.has_visible_content and not asks_about_markup(subject):
        match = _GLUED_CLOSER.search(reasoning)
        if match and not subject.reasoning.code.covers(match.start()):
            what = f"the reasoning was closed inside itself, {span(reasoning, *match.span())}"
            yield _seen("reasoning_content", what)
    if subject.calls or subject.has_visible_content or not reasoning.strip():
        return
    if match := _TAG.search(reasoning):
        what = f"the reasoning was closed inside itself, {span(reasoning, *match.span())}"
        yield _seen("reasoning_content", what)
    elif subject.finish == "stop" and _is_an_answer(reasoning):
        yield _seen("reasoning_content", "the whole answer is here and the content is empty")


def _is_an_answer(reasoning: str) -> bool:
    last = last_sentence(reasoning)
    if announces_action(last) or _PLAN.match(last):
        return False
    return (
        len(reasoning.split()) >= _MIN_ANSWER_WORDS
        or len(_NO_BLANKS.findall(reasoning)) >= _MIN_ANSWER_CHARS
    )


def _seen(where: str, what: str) -> Seen:
    return Seen(label=Label.MISPLACED_REASONING, where=where, what=what)


DETECTOR = Detector(
    label=Label.MISPLACED_REASONING,
    summary="reasoning in the content, or the answer in the reasoning",
    detect=detect,
    hints=REASONING | _THINKS | _GLUED_WORDS | _TORN | TALKS_OF_USER,
)
