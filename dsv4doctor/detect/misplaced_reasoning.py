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
from dsv4doctor.detect.quoting import holds_template, quoted_spans
from dsv4doctor.detect.request import asks_about_markup
from dsv4doctor.detect.signs import holds_any
from dsv4doctor.detect.subject import Subject, Text
from dsv4doctor.dsml.tolerant import Form
from dsv4doctor.label import Label

_TAG = re.compile(
    r"</?(?:\w{1,12}[:_]|ant)?(?:think(?:ing)?|thoughts?|reasoning|scratchpad|inner_monologue)>|<\s?/?\s?think(?:ing)?\s?>|</thin(?:k(?:ing?)?)?(?=\s)|◁/?think▷|"
    r"\[/?THINK\]|<\|(?:begin|end)_of_(?:thought|reasoning|thinking)\|>|<\|/?think\|>|</?(?:think|thinking)$|"
    r"&lt;/?think(?:ing)?&gt;",
    re.IGNORECASE,
)
# Harmony's channels with their tokens taken out: the words that stood in them, glued to the text.
_GLUED_CHANNELS = re.compile(
    r"\A\s*(?:analysis(?=[A-Z]))|(?<=[^\s\w])assistant(?:final|commentary)(?=\S)"
)
_EDGE_CLOSER = re.compile(r"\A\s*</think(?:ing)?>|</think(?:ing)?>\Z")
# Every tag begins with one of these.
_OPENERS = frozenset("<◁[&")
# No tag without one of each: found at memory speed, they keep the pattern off healthy text.
_HINTS = ("hink", "</thin", "HINK", "hought", "easoning", "cratchpad", "onologue")
_ENDS = (
    "hink>", "hink >", "hinking>", "hinking >", "HINK>", "HINKING>", "HINK]", "hink|>", "hink▷", "hink&gt;", "hinking&gt;",
    "hought>", "houghts>", "hought|>", "hinking|>", "easoning>", "easoning|>", "cratchpad>",
    "onologue>", "<think", "</thin",
)  # fmt: skip
_THE_USER = re.compile(
    r"\bthe user (?:wants|asks|asked|is asking|says|said|needs|has asked|just|would like|requested|is requesting)\b"
    r"|用户(?:想|要|问|说|希望|需要|在问|询问|让我)|ユーザーは|사용자(?:가|는)|пользователь (?:хочет|просит|спрашивает)"
    r"|l'utilisateur (?:veut|demande)|el usuario (?:quiere|pide|pregunta)|der (?:nutzer|benutzer) (?:möchte|will|fragt)",
    re.IGNORECASE,
)
# The task told to oneself, from the first word on.
_OWN_TASK = re.compile(
    r"\W*(?:(?:okay|ok|alright|so|hmm|now)\W+)?(?:we|i) (?:need to|should|must|have to) "
    r"(?:answer|respond|reply|address|explain|provide|produce|help)\b[^.\n]{0,40}\buser\b",
    re.IGNORECASE,
)
# What the clause hangs on: a condition, or where and how in general it is so.
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|whether|unless|once|until|that)\Z"
    r"|\A(?:in|on|at|for|with|from|by|as|what|how|why|where)\b(?!.*[,.:;])",
    re.IGNORECASE,
)
_SELF_TALK = re.compile(
    r"\b(?:i (?:need to|should|must|have to|could|will)|let me|let's|we (?:need to|should|must)|wait,|hmm|i'll|now i)\b"
    r"|我(?:需要|应该|得|要|可以|先|来)|让我|必要がある|しよう|нужно|надо|je dois|il faut|debo|tengo que|ich (?:muss|sollte)",
    re.IGNORECASE,
)
# One of these is in everything that `_THE_USER` matches; beside them, two letters that it takes for
# an i and `casefold` does not.
_USERS = ("user", "用户", "ユーザー", "사용자", "пользователь", "utilisateur", "usuario", "nutzer")
_ODD_I = frozenset("ıİ")
# How Granite parts its thoughts from its answer: in words.
_PARTED_IN_WORDS = re.compile(
    r"\A\W*Here(?: is|'s|’s) my thought process:.+?Here(?: is|'s|’s) my (?:response|answer):",
    re.DOTALL,
)
# A channel of thoughts and one of the answer.
_BOTH = 2
# How far into the content a monologue shows itself.
_HEAD = 300
_MIN_ANSWER_WORDS = 6
# The same in scripts that write without blanks.
_NO_BLANKS = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]")
_MIN_ANSWER_CHARS = 12


def detect(subject: Subject) -> Iterator[Seen]:
    yield from _tags(subject, subject.content)
    yield from _glued_channels(subject)
    yield from _at_an_edge(subject)
    yield from _monologue(subject)
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
        if text.code.covers(match.start()):
            continue
        name = match.group().strip("</>").lower()
        if f"<{name}" in subject.prompt.lower() or _is_talked_about(subject, body, match.start()):
            continue
        quoted = quoted if quoted is not None else quoted_spans(body)
        if not quoted.covers(match.start()):
            yield _seen(text.where, f"a thinking tag outside code, {span(body, *match.span())}")
            return


def _glued_channels(subject: Subject) -> Iterator[Seen]:
    body = subject.content.text
    if "thought process:" in body[:_HEAD] and (parted := _PARTED_IN_WORDS.match(body)):
        yield _seen("content", f"thoughts and answer parted in words, {span(body, *parted.span())}")
    elif "assistant" in body and len(found := list(_GLUED_CHANNELS.finditer(body))) >= _BOTH:
        yield _seen("content", f"channels of thoughts and answer, {span(body, *found[-1].span())}")


def _at_an_edge(subject: Subject) -> Iterator[Seen]:
    """A closer with no opener where an argument's value begins or ends."""
    for text in subject.free_texts:
        if not text.in_call or "</think" not in text.text:
            continue
        match = _EDGE_CLOSER.search(text.text)
        if match and "<think" not in text.text and not asks_about_markup(subject):
            yield _seen(text.where, f"a thinking tag, {span(text.text, *match.span())}")
            return


def _is_talked_about(subject: Subject, body: str, start: int) -> bool:
    """True for a tag in the middle of a sentence that the prompt asked about."""
    return (
        asks_about_markup(subject)
        and bool(body[:start].strip())
        and "\n" not in body[max(0, start - 1) : start]
    )


def _monologue(subject: Subject) -> Iterator[Seen]:
    head = subject.content.text[:_HEAD]
    if head.isascii() and " user" not in head and " User" not in head:
        return
    folded = head.casefold()
    if not holds_any(folded, _USERS) and _ODD_I.isdisjoint(head):
        return
    match = _OWN_TASK.match(head)
    if match and "user" not in subject.prompt.lower():
        yield _seen("content", f"the model talks to itself, {span(head, *match.span())}")
        return
    match = _THE_USER.search(head)
    if (
        match is None
        or "user" in subject.prompt.lower()
        or subject.content.code.covers(match.start())
    ):
        return
    # A report about users does not open with the user's wish, nor turn to what "I" should do; a
    # comment says what happens if they have it.
    opening = head[: match.start()].strip()
    if (
        len(opening) <= 40
        and not _CONDITION.search(opening)
        and _SELF_TALK.search(subject.content.text, match.end())
    ):
        yield _seen("content", f"the model talks to itself, {span(head, *match.span())}")


def _answer_in_reasoning(subject: Subject) -> Iterator[Seen]:
    reasoning = subject.reasoning.text
    if subject.calls or subject.has_visible_content or not reasoning.strip():
        return
    if match := _TAG.search(reasoning):
        what = f"the reasoning was closed inside itself, {span(reasoning, *match.span())}"
        yield _seen("reasoning_content", what)
    elif subject.finish == "stop" and _is_an_answer(reasoning):
        yield _seen("reasoning_content", "the whole answer is here and the content is empty")


def _is_an_answer(reasoning: str) -> bool:
    if announces_action(last_sentence(reasoning)):
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
)
