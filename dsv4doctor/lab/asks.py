"""What the last user message asks for, and where the conversation planted what it needs.

The lab's stand-in for understanding. It knows the wording that the scenarios use and a plain rule
for everybody else's prompts:

    Call the tool `NAME` now: set `ARG` to the code for `LABEL`, set ...   one call
    Write out word for word the passage called `LABEL`, and nothing else.  free text
    The code (number, phrase) for `LABEL` is `VALUE`.                      a planted value
    Passage `LABEL`: TEXT End of passage `LABEL`.                          a planted passage
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.lab.rendering import text_of

_CALL = re.compile(r"Call the tool `([^`]+)`(?: now)?:?(.*?)(?=Call the tool `|\Z)", re.DOTALL)
_SET = re.compile(r"set `([^`]+)` to the (\w+) for `([^`]+)`")
_PASSAGE_ASK = re.compile(r"[Ww]rite out word for word the passage called `([^`]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedArgument:
    """`name` is to be set to what was planted under `label`; `noun` says code, number, phrase."""

    name: str
    noun: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    tool: str
    arguments: tuple[AskedArgument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Calls in their order, or a passage's label, or neither (a free prompt)."""

    calls: tuple[AskedCall, ...]
    passage: str | None


def last_user_text(messages: Sequence[Mapping[str, Any]]) -> str:
    for message in reversed(messages):
        if message.get("role") == "user":
            return text_of(message.get("content"))
    return ""


def read_ask(text: str) -> Ask:
    """What a user message asks for."""
    calls = tuple(
        AskedCall(
            tool=tool,
            arguments=tuple(
                AskedArgument(name=name, noun=noun, label=label)
                for name, noun, label in _SET.findall(rest)
            ),
        )
        for tool, rest in _CALL.findall(text)
    )
    passage = _PASSAGE_ASK.search(text)
    return Ask(calls=calls, passage=passage[1] if passage else None)


def _first_match(pattern: str, messages: Sequence[Mapping[str, Any]]) -> str | None:
    compiled = re.compile(pattern, re.DOTALL)
    for message in messages:
        if message.get("role") in ("user", "tool"):
            match = compiled.search(text_of(message.get("content")))
            if match:
                return match[1]
    return None


def planted_value(label: str, messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The text planted under `label` in a user or tool message."""
    return _first_match(rf"for `{re.escape(label)}` is `(.*?)`(?=[.\s]|$)", messages)


def planted_passage(label: str, messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The passage planted under `label`."""
    name = re.escape(label)
    return _first_match(rf"Passage `{name}`: (.*?) End of passage `{name}`\.", messages)
