"""A call that is written out in a text instead of made: name and JSON, XML, Python, a transcript."""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dsv4doctor.detect.arguments import decode_arguments
from dsv4doctor.detect.detector import span
from dsv4doctor.detect.hints import hint
from dsv4doctor.detect.request import asks_about_markup
from dsv4doctor.detect.signs import holds_any
from dsv4doctor.detect.subject import Subject

_CALL_MARKUP = re.compile(
    r"<(?:\w+[:_])?(tool_calls?|function_calls?|tool_use|function|invoke|tool)(?:[ =][^<>\n]{1,200})?>|"
    r"\[TOOL_CALLS\]|✿FUNCTION✿|<\|tool_calls?(?:_section)?(?:_begin)?\|>|<\|python_tag\|>",
)
_JSON_CALL = re.compile(
    r"\{\s*(?:\"type\"\s*:\s*\"[a-z_]{1,20}\"\s*,\s*(?:\"id\"\s*:\s*\"[^\"\n]{0,80}\"\s*,\s*)?)?\"(?:name|tool|tool_name|function|action|recipient_name)\"\s*:\s*(?:\{\s*\"name\"\s*:\s*)?\"([^\"\n]{1,80})\""
)
_ARGUMENT_KEYS = ("arguments", "parameters", '"args"', '"input"')
# The name under a heading and its arguments behind it: `Action: f`, `Action Input: {…}`.
_NAMED_CALL = re.compile(
    r"^\W{0,4}(?:action|(?:tool|function)(?:[ _](?:call|name))?|(?:call|us|invok)(?:e|ing)?(?: the)?(?: (?:tool|function))?)"
    r"\W{1,6}(\w[\w.-]{1,79})(?:(?!\(\))\W){0,4}"
    # A definition in code has its brackets, and they are empty: `function f() {`.
    r"(?:(?:with|(?:\n\W{0,4}(?:action[ _]input|arguments|args|parameters|params|input)))?(?:(?!\(\))\W){0,6}\{"
    r"|\n\W{0,4}(?:arguments|args|parameters|params|input)\W{0,3}\n\s+\w+:)",
    re.IGNORECASE | re.MULTILINE,
)
# Of an offered tool and nothing else.
_ACTED = (
    r"\W{{1,3}}(?:now |i )?(?:call(?:s|ing)?|invok(?:es?|ing)|us(?:es?|ing)|runs?|running|execut(?:es?|ing)|quer(?:y|ies|ying))\b"
    r"[^*\n]{{0,30}}(?<![\w.]){name}(?!\w)[^*\n]{{0,140}}\W{{1,3}}"
)
# The whole of a short reply, in the forms that scripts, logs and older agents spell a call in.
_WHOLE_CALL = (
    r"[^\w<{{]{{0,4}}(?:(?:await|action|call|tool(?: call)?|function(?: call)?)\b\W{{1,4}}|functions\.){{0,2}}{name}(?::\d{{1,2}})?"
    r"\W{{0,3}}(?:\([^()]*(?:\([^()]*\)[^()]*){{0,8}}\)|\{{.*\}}|\[.*\]|(?:[→=:-]>?|with)\W{{0,4}}\{{.*\}}|(?:\s(?:with )?[\w.]+=[^\s=]\S*)(?: [^\n]*)?)\W{{0,4}}"
)
_WHOLE_CHARS = 400
# Requests that want a value written down and no tool used.
_ASKS_VALUE = re.compile(
    r"json|object|format|example|sample|schema|dict|payload|body|print|show|write|return only",
    re.IGNORECASE,
)
# How a reply begins that is a value and no more (see `hints.py`).
_VALUE = hint(rb"\A[^!-~]*(?:\{|```)")
_FENCED = re.compile(r"```(?:json)?\n(.*)\n```", re.DOTALL)
# What may stand before a call that is all of a reply: no bullet, which lists tools.
_LEADING = "[:→⇒▶➜ \n"
# What stands behind a name that is defined: its parameters and a body.
_DEFINES = re.compile(r"\([^()\n]{0,200}\)\s*(?:\{|=>|->|:)")
# The name and the first parameter of a call that an object or some lines spell.
_KEYED = re.compile(r"\s*\{\s*\"([^\"\n]{1,80})\"\s*:\s*\{\s*\"([^\"\n]{1,80})\"\s*:")
_IN_LINES = re.compile(
    r"\s*(?:(?i:tool|function)(?i: call| name)?\W{1,4})?(\w[\w.-]{0,79})\W{0,3}\n\W{0,4}(\w{1,64})\s?[=:]"
)
# Requests that the form of a call answers.
_ASKS_FORM = re.compile(
    r"\bhow (?:is|are|do|does|would|should|can|could)\b[^?\n]{0,60}\b(?:call|writ|look|invok|us)|\b(?:examples?|syntax|formats?|"
    r"samples?|show|yaml|json|docs?|documentation|snippet|code)\b",
    re.IGNORECASE,
)
# A recipient and its message, as harmony addresses a call: `commentary to=functions.f json{…}`.
_ADDRESSED_CALL = re.compile(r"\bto=(?:functions\.)?(\w[\w.-]{0,79})[^{}\n]{0,60}\{")
# Where one would look for a call written as text: its first and last lines.
_EDGE = 2000
# A stage direction is one line.
_ACTED_CHARS = 200


def written_out(subject: Subject, text: str) -> str | None:
    """Where a call to an offered tool is spelt in the text, quoted; None where none is, or where
    its form was asked for."""
    # No form is without the name, and a healthy reply seldom has it.
    named = {name: schema for name, schema in (subject.tools or {}).items() if name in text}
    if not named or asks_about_markup(subject):
        is_value = subject.content.hints & _VALUE and _is_arguments(subject, text)
        return span(text, 0, 60) if is_value else None
    head = text[:_EDGE]
    for name in named:
        at = head.find(name)
        if at >= 0 and (_is_acted(text, name) or _is_plain_call(text, at, name)):
            return span(text, at, at + 60)
        if at >= 0 and _is_whole_call(text, name) and not _ASKS_FORM.search(subject.prompt):
            return span(text, at, at + 60)
    found = _headed(text, named) or _in_tags(subject, text, named)
    if found and not (_inline(subject, found[0]) and _ASKS_FORM.search(subject.prompt)):
        return span(text, *found)
    if (found := _spelt(text, named)) and not _ASKS_FORM.search(subject.prompt):
        return span(text, *found)
    found = _as_json(text, named) or _in_markup(subject, text, named)
    return span(text, *found) if found else None


def _is_plain_call(text: str, at: int, name: str) -> bool:
    """True for the name alone on its line with arguments right behind it, nothing after them: not
    a mention in a sentence."""
    behind = text[at + len(name) : at + len(name) + _EDGE].lstrip()
    if _DEFINES.match(behind):
        return False
    after = behind[:1]
    # Python's form of several calls is a list of them; Gemini's a fence that prints one.
    before = text[:at].strip().strip(_LEADING)
    if before.endswith(("tool_code\nprint(", "<tool_code>\nprint(")) or before == "print(":
        return after == "("
    alone = not before or text[:at].endswith("\n")
    return after in ("(", "{") and alone and _only_call(text, at)


def _is_whole_call(text: str, name: str) -> bool:
    """True for a reply of nothing but a call, its arguments in brackets or as `key=value`."""
    if len(text) > _WHOLE_CHARS:
        return False
    return re.fullmatch(_WHOLE_CALL.format(name=re.escape(name)), text, re.IGNORECASE) is not None


def _is_arguments(subject: Subject, text: str) -> bool:
    """True for a reply that is the arguments of an offered tool, all that it requires and no other,
    where the request asks for no such value."""
    body = text.strip()
    if body[-1:] not in "}`" or len(body) > _EDGE:
        return False
    fenced = _FENCED.fullmatch(body)
    value = decode_arguments(fenced[1] if fenced else body).value
    if not isinstance(value, dict) or not value or _ASKS_VALUE.search(subject.prompt):
        return False
    for schema in (subject.tools or {}).values():
        declared, required = schema.get("properties"), schema.get("required")
        if not (isinstance(declared, Mapping) and isinstance(required, list) and required):
            continue
        if set(map(str, required)) <= value.keys() <= declared.keys():
            return True
    return False


def _as_json(text: str, named: Mapping[str, Any]) -> tuple[int, int] | None:
    if not holds_any(text, _ARGUMENT_KEYS):
        return None
    for match in _JSON_CALL.finditer(text):
        if match[1] in named:
            return match.span()
    return None


def _spelt(text: str, named: Mapping[str, Any]) -> tuple[int, int] | None:
    """Where a reply is one object that holds the arguments under the tool's name, or the name and
    lines of parameters below it."""
    opened = _KEYED.match(text) if text.rstrip().endswith("}") else _IN_LINES.match(text)
    schema = named.get(opened[1]) if opened else None
    declared = schema.get("properties") if schema else None
    if opened is None or not isinstance(declared, Mapping) or opened[2] not in declared:
        return None
    return opened.span()


def _in_markup(subject: Subject, text: str, named: Mapping[str, Any]) -> tuple[int, int] | None:
    for match in _CALL_MARKUP.finditer(text):
        inside = text[match.start() : match.start() + _EDGE]
        if any(name in inside for name in named) and not _inline(subject, match.start()):
            return match.span()
    return None


def _is_acted(text: str, name: str) -> bool:
    """True for a reply that is a stage direction, a call told instead of made: `*calls f with x*`,
    `[using f]`."""
    line = text.strip()
    if len(line) > _ACTED_CHARS or line[:1] not in "*([_" or line[-1:] not in "*)]_":
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
    """Where a call is spelt as an element with the tool's name around one with a parameter's,
    around its JSON or with the parameters as attributes."""
    for name, schema in offered.items():
        declared = schema.get("properties")
        if f"<{name}" not in text or not isinstance(declared, Mapping) or not declared:
            continue
        inner = "|".join(re.escape(str(parameter)) for parameter in declared)
        within = rf"(?:>\s*(?:<(?:{inner})>|\{{\s*\"(?:{inner})\"\s*:)|\s+(?:{inner})=[\"'])"
        for match in re.finditer(rf"<{re.escape(name)}{within}", text):
            if not _inline(subject, match.start()):
                return match.span()
    return None


def _inline(subject: Subject, position: int) -> bool:
    return subject.content.code.covers(position)


def _only_call(text: str, at: int) -> bool:
    """True when nothing but the call follows its name: the reply ends with its bracket."""
    return text[at:].rstrip().rstrip("`;").rstrip().endswith((")", "}", ")]"))
