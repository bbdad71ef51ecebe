"""Keeps secrets out of artifacts, logs and reports: command lines, URLs, headers, server arguments.

What is a secret is decided here and nowhere else: by the name it goes under, or by its form (a
bearer token, an API key, credentials in a URL).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

REDACTED = "[redacted]"

# Names whose value is a secret. A counted or special token (`max_tokens`, `eos_token`) is none.
_SECRET_NAME = re.compile(
    r"(?:^|[-_.])(?:(?:api[-_]?key|apikey|password|passwd|passphrase|secret|credentials?"
    r"|authorization|cookie|private[-_]?key|access[-_]?key(?:[-_]id)?)s?"
    r"|(?<!eos[-_])(?<!bos[-_])(?<!pad[-_])(?<!unk[-_])token)$",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"(?:^|[-_])(?:max|min|num|total|new|context|prompt|eos|bos|pad|unk)[-_]", re.I
)
_HEADER_FLAGS = frozenset({"--header", "-H"})
_USERINFO = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#@]+@")
_QUERY = re.compile(r"(?P<name>[?&][A-Za-z0-9_.-]+=)[^&#\s'\"]+")
_BEARER = re.compile(r"\b(?P<scheme>Bearer|Basic)\s+[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_FLAG_IN_TEXT = re.compile(
    r"(?P<flag>(?<![\w-])--[\w-]*(?:api-?key|access-?key|password|secret|(?:hf|auth|access|bearer)-token)"
    r"(?:=|\s+))(?:'[^']*'|\"[^\"]*\"|\S+)",
    re.IGNORECASE,
)
_KEY_FORM = re.compile(r"\b(?:sk|hf|gsk|xai|nvapi)[-_][A-Za-z0-9_-]{12,}")


def is_secret_name(name: str) -> bool:
    """True when what goes under `name` (a flag, key or header) has to be hidden."""
    bare = name.strip().lstrip("-")
    return bool(_SECRET_NAME.search(bare)) and not _COUNTED.search(bare)


def redact_text(text: str) -> str:
    """`text` without credentials in URLs, secret flags and parameters, bearer tokens, API keys."""
    text = _USERINFO.sub(rf"\g<scheme>{REDACTED}@", text)
    text = _QUERY.sub(_hide_secret_parameter, text)
    text = _FLAG_IN_TEXT.sub(rf"\g<flag>{REDACTED}", text)
    text = _BEARER.sub(rf"\g<scheme> {REDACTED}", text)
    return _KEY_FORM.sub(REDACTED, text)


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """A command line that can be published: flags stay, the secrets behind them go."""
    shown: list[str] = []
    hide_next = header_next = False
    for word in argv:
        name, has_value, value = word.partition("=")
        if hide_next:
            shown.append(REDACTED)
        elif header_next or (word.startswith("-H") and len(word) > 2):
            shown.append(_redact_header_line(word))
        elif word.startswith("-") and has_value and is_secret_name(name):
            shown.append(f"{name}={REDACTED}")
        elif name in _HEADER_FLAGS and has_value:
            shown.append(f"{name}={_redact_header_line(value)}")
        elif word.startswith("{"):
            shown.append(_redact_json(word))
        elif word.startswith("-") and value.startswith("{"):
            shown.append(f"{name}={_redact_json(value)}")
        else:
            shown.append(redact_text(word))
        is_flag = word.startswith("-") and not has_value and not hide_next and not header_next
        hide_next = is_flag and is_secret_name(word)
        header_next = is_flag and word in _HEADER_FLAGS
    return tuple(shown)


def scrub(text: str, secrets: Collection[str]) -> str:
    """`text` without these very secrets, whatever a server made of them (an echo in an error)."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    return text


def scrub_value(value: Any, secrets: Collection[str]) -> Any:
    """JSON types without these very secrets."""
    if not secrets:
        return value
    if isinstance(value, str):
        return scrub(value, secrets)
    if isinstance(value, Mapping):
        return {key: scrub_value(inner, secrets) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [scrub_value(inner, secrets) for inner in value]
    return value


def redact_value(value: Any) -> Any:
    """JSON types with every secret in them hidden, by its key or by its form; `None` stays None."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {
            key: REDACTED
            if isinstance(key, str) and is_secret_name(key) and _holds_something(inner)
            else redact_value(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        if all(isinstance(inner, str) for inner in value):
            return list(redact_argv(value))  # perhaps a command line: what follows a secret flag
        return [redact_value(inner) for inner in value]
    return value


def _holds_something(value: Any) -> bool:
    return value is not None and value != "" and not isinstance(value, bool | int | float)


def _redact_json(text: str) -> str:
    """A JSON object on a command line; what is none is redacted as text."""
    try:
        value = json.loads(text)
    except ValueError:
        return redact_text(text)
    shown = redact_value(value)
    return text if shown == value else json.dumps(shown)


def _hide_secret_parameter(match: re.Match[str]) -> str:
    name = match["name"]
    return f"{name}{REDACTED}" if is_secret_name(name[1:-1]) else match[0]


def _redact_header_line(line: str) -> str:
    """`NAME=VALUE` or `NAME: VALUE`, its value hidden where the name says that it is a secret."""
    match = re.match(r"(?P<name>(?:-H)?[^=:\s]+)(?P<separator>\s*[=:]\s*)", line)
    if match and is_secret_name(match["name"].removeprefix("-H")):
        return f"{match['name']}{match['separator']}{REDACTED}"
    return redact_text(line)
