"""Turns of a conversation that nobody had, in plain words: `Human: …`, `Assistant: …` behind an
answer.

A model that runs over its own end goes on with the next turn as its training data spelt it.
Source: https://github.com/ggml-org/llama.cpp/issues/26694.
"""

from __future__ import annotations

import re

from dsv4doctor.detect.hints import hint
from dsv4doctor.detect.subject import Subject

# The person's turn on a line of its own, words in it, and the model's right behind it.
_TURNS = re.compile(
    r"\n[ \t]*(?:#{2,3} ?)?(?:\*\*)?(?:Human|User|用户)(?:\*\*)?[:：](?:\*\*)?[ \t\n]*"
    r"\S[^\n]{1,400}\n\s*(?:#{2,3} ?)?(?:\*\*)?(?:Assistant|助手)(?:\*\*)?[:：]\s*\S"
)
TURNS = hint(r"\n[ \t]*(?:#{2,3} ?)?(?:\*\*)?(?:Human|User|用户)(?:\*\*)?[:：]")
# The model's name in them, one of which is in each.
_NAME, _CHINESE_NAME = "Assistant", "助手"
_COLONS = frozenset(":：")
# An answer that is an exchange of words from its first line on, and requests for one.
_BEGINS_SO = re.compile(r"\s*[#*]*\s*(?:Human|User|Assistant|AI|Bot|System|Q|用户|助手)\b[*]*[:：]")
_ASKS_FOR_TURNS = re.compile(
    r"dialog|conversation|transcript|\bchat|example|sample|script|interview|few-?shot|prompt|template|"
    r"format|role|q ?& ?a|\bfaq|questions|quiz|flash ?cards?|story|scene|exchange|human:|user:|"
    r"assistant|bot\b|对话|對話|会話|대화|диалог",
    re.IGNORECASE,
)
# What introduces the turns as somebody's.
_INTRODUCED = re.compile(
    r"[:：]\W*\Z|example|dialog|conversation|transcript|\b(?:always|never)\b|"
    r"\byour (?:answer|task|role|name)|\byou (?:are|have|can)\b",
    re.IGNORECASE,
)
_BEFORE = 600


def invented_turns(subject: Subject) -> tuple[int, int] | None:
    """Where the content goes on with the next turns; None where they may be meant."""
    body = subject.content.text
    if subject.content.signs.isdisjoint(_COLONS):
        return None
    if _NAME not in body and (body.isascii() or _CHINESE_NAME not in body):
        return None
    found = _TURNS.search(body)
    if found is None or _BEGINS_SO.match(body) or subject.content.code.covers(found.start() + 1):
        return None
    before = body[: found.start()].strip()
    if not before or len(before) > _BEFORE or _INTRODUCED.search(before):
        return None
    return None if _ASKS_FOR_TURNS.search(subject.prompt) else found.span()
