"""Somebody else's text in this reply.

Seen: a canary code or session marker of another session; a path of another tenant; another system
prompt read back; another conversation's particulars in a reply that shares not one word with its
own request.
Why: the gravest form. One user reads another's data, and it proves that pages or requests were
mixed up rather than damaged.
Confirm: drive sessions with canaries (`dsv4doctor repro`): a foreign code names its owner exactly.
What is inferred from the words of an ordinary log is a hint to be looked at.
Source: https://github.com/vllm-project/vllm-ascend/issues/14118,
https://github.com/LMCache/LMCache/issues/4385, https://github.com/ggml-org/llama.cpp/issues/28056.
"""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from dsv4doctor.detect.canary_mismatch import foreign_codes
from dsv4doctor.detect.detector import Detector, Seen, span
from dsv4doctor.detect.hints import PLANTED, hint
from dsv4doctor.detect.neighbours import holds_furniture
from dsv4doctor.detect.subject import Subject
from dsv4doctor.detect.topic import is_off_topic
from dsv4doctor.label import Label

_CUE = re.compile(
    r"(sessions?|codes?|users?|customers?|tickets?|conversations?|chats?|clients?|tenants?|id|for|case|ref|reference(?: number)?(?: is)?|"
    r"regarding|concerning|as for|dear|hello|hi|(?:code|session|mark) is)\W{1,3}$",
    re.IGNORECASE,
)
_CUE_REACH = 16
# The session that a request says it is of.
_OWN_SESSION = re.compile(r"\s*\[session ([A-Za-z]{2,16}-?\d{1,4})\]")
# What stands before somebody's mark and before no abbreviation; names as short as those need it.
_OWNER_CUE = re.compile(
    r"\b(?:sessions?|users?|customers?|conversations?|chats?|clients?|tenants?|dear|hello|hi|code is|(?:session|your) code)\W{1,3}$",
    re.IGNORECASE,
)
_SHORT_NAME = 3
_LETTERS = string.ascii_letters
_ABBREVIATIONS = frozenset(
    ["UTF", "SHA", "ISO", "RFC", "AES", "RSA", "DES", "CVE", "PEP", "USB", "GPT", "BBC", "ERR", "CPU", "GPU", "IPV"]
)  # fmt: skip
# Capitals and a number that are everybody's: standards, formats, aircraft, diseases.
_PUBLIC = re.compile(
    r"(?:COVID|IEEE|LATIN|POSIX|BASE|ECMA|ANSI|NIST|WINDOWS|UNICODE|BOEING|AIRBUS|APOLLO|SARS|INFLUENZA|HTTP|HTTPS|"
    r"TIER|LEVEL|PHASE|STEP|PART|CLASS|TYPE|OPTION|FIGURE|TABLE|SECTION|VERSION|FORM|GRADE|STAGE|ZONE|GROUP|PLAN|MARK)\W",
)
_RECORD_CUES = frozenset(["ticket", "tickets", "case", "ref", "id"])
_IDENTITY = re.compile(
    r"^(tenant|user|customer|client|org|team|account|project|workspace|session|company|member|student|patient)"
    r"([-_.]?)(\w{1,24})$",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?:/[\w.@-]+){2,}")
_PERSONA = re.compile(
    r"^\s*(?:#+ ?[Ss]ystem\W+)?(?i:you are|your name is|act as) (?:an? |the )?[A-Z]\w+[A-Za-z0-9 ]{0,40}[.,:!]"
)
# The head of the section that DeepSeek's template writes above the tools' schemas.
_TOOL_SECTION = re.compile(
    r"#+ Tools?\b[^\n]{0,20}\n+(?:You (?:have access to|may call|can (?:call|use|invoke)|are provided)|In this environment)"
)
_ORDERS = re.compile(
    r"\b(?:always|never|do not|don't|must|only answer|refuse|respond (?:only|in)|greet)\b",
    re.IGNORECASE,
)
# The same for a search of all at once (see `hints.py`).
_READ_BACK = hint(
    r"\A[^!-~]*(?:#+ ?[Ss]ystem[^a-zA-Z]+)?(?i:you are|your name is|act as) |\A#+ Tool"
)
_ASKS_PROMPT = re.compile(
    r"prompt|persona|instruction|role|system|character|write|draft|\bbot\b", re.IGNORECASE
)
_BOILERPLATE = (
    "skip to content", "skip to main content", "subscribe to our newsletter", "all rights reserved",
    "related posts", "cookie policy", "accept cookies", "accept all cookies", "privacy policy",
    "terms of service", "terms of use", "share this post", "share this article", "read more",
    "sign up for our", "leave a comment", "leave a reply", "powered by wordpress", "follow us on",
    "add to cart", "back to top", "we use cookies", "accept all", "manage preferences", "cookie settings",
    "log in or sign up", "log in or register", "must be registered to", "must be logged in to", "thread starter",
    "share on facebook", "share: facebook", "sign in to comment",
)  # fmt: skip
_ANY_FURNITURE = hint(f"(?i){'|'.join(_BOILERPLATE)}")
_ASKS_PAGE = re.compile(
    r"web|html|page|site|forum|consent|gdpr|footer|blog|newsletter|landing|cookie|copyright|licen[cs]e|policy|terms|banner|scrape|article|boilerplate",
    re.IGNORECASE,
)
# A licence says some of it too, and says again and again what it is.
_LEGAL = re.compile(r"licen[cs]e|copyright")
_LEGAL_WORDS = 4
# How licences and their notices begin; whoever wants one, or a file that has one at its head.
_LICENCES = (
    "permission is hereby granted, free of charge", "permission to use, copy, modify, and",
    "the software is provided \"as is\"", "this software is provided \"as is\"",
    "this software is provided by the copyright", "redistribution and use in source and binary",
    "licensed under the apache license", "licensed to the apache software foundation",
    "this program is free software: you", "this program is free software; you",
    "this library is free software; you",
    "you may not use this file except in compliance",
)  # fmt: skip
_ANY_LICENCE = hint(f"(?i)\\A[^!-~]*(?:{'|'.join(_LICENCES)})")
_LICENCE_REACH = 80
# Whoever says no more may be asking for more of one.
_ASKS_FOR_MORE = re.compile(
    r"\W*(?:please )?(?:go on|continue|proceed|more|next|keep going|carry on)\b", re.IGNORECASE
)
_ASKS_LICENCE = re.compile(
    r"\b(?:mit|bsd|gpl|lgpl|apache|isc|mozilla|legal\w*|notices?|headers?|warrant\w*|clauses?|grants?|permissions?|open[- ]?source|"
    r"free software|readme|copying|repo\w*|projects?|quote|cite|recite|head|top of|begin\w*|start\w*)\b",
    re.IGNORECASE,
)
# A page begins with its furniture.
_BOILERPLATE_REACH = 2000
MIN_BOILERPLATE = 3


def detect(subject: Subject) -> Iterator[Seen]:
    if subject.hints & PLANTED:
        for where, code, session, turn in foreign_codes(subject):
            yield _seen(where, f"{code} was planted in session {session}, turn {turn}")
            return
    for check in _CHECKS:
        for seen in check(subject):
            yield seen
            return


def _marker(subject: Subject) -> Iterator[Seen]:
    own = subject.exchange.session_marker
    if not own and (named := _OWN_SESSION.match(subject.prompt)):
        own = named[1]
    if not own:
        return
    shape = re.compile(rf"(?<![\w-]){_shape_of(own)}(?![\w-])")
    asked = subject.prompt.lower()
    if own.isupper() or own.islower():
        yield from _named_marker(subject, own)
    for text in subject.texts:
        for match in shape.finditer(text.text):
            token = match.group()
            before = text.text[max(0, match.start() - _CUE_REACH) : match.start()]
            if _PUBLIC.match(token) or _is_no_name(token, own, asked, before):
                continue
            cued = _CUE.search(before)
            if cued and (cued[1] or "").lower() in _RECORD_CUES and cued[1].lower() in asked:
                # A tracker's key, where the request speaks of tickets or cases itself.
                continue
            # Another's directory where the request names one's own.
            owned = text.text[: match.start()].endswith("/") and f"/{own}" in subject.prompt
            if (
                token != own
                and token not in subject.prompt
                and (cued or owned or match.start() <= 1 or _is_heading(text.text, *match.span()))
            ):
                what = f"a session's mark, and not this one's ({own}), {span(text.text, *match.span())}"
                yield _seen(text.where, what)


def _is_no_name(token: str, own: str, asked: str, before: str) -> bool:
    """True for an abbreviation and a number, and for a name that the request has by itself."""
    name, own_name = _letters_before(token), _letters_before(own)
    if name == own_name:
        return False
    if len(name) > _SHORT_NAME:
        return name.lower() in asked
    short = len(own_name) > _SHORT_NAME and not _OWNER_CUE.search(before)
    return short or name in _ABBREVIATIONS


def _letters_before(mark: str) -> str:
    """The letters with which a mark begins: its name."""
    return mark[: len(mark) - len(mark.lstrip(_LETTERS))]


def _is_heading(text: str, start: int, end: int) -> bool:
    """True for a mark that opens a line, a bracket or a sentence, a colon behind it."""
    before = text[max(0, start - 2) : start]
    return text.startswith(":", end) and (before[-1:] in "\n([" or before == ". ")


def _named_marker(subject: Subject, own: str) -> Iterator[Seen]:
    """Another session's mark by name, in whatever case: "as for session otter-44"."""
    shape = re.compile(rf"\bsession\W{{1,3}}({_shape_of(own)})(?![\w-])", re.IGNORECASE)
    for text in subject.texts:
        for match in shape.finditer(text.text):
            if match[1].lower() not in f"{own} {subject.prompt}".lower():
                what = f"a session's mark, and not this one's ({own}), {span(text.text, *match.span(1))}"
                yield _seen(text.where, what)


def _shape_of(marker: str) -> str:
    """A pattern for marks built alike: runs of capitals, small letters and digits of any length."""
    pieces: list[str] = []
    for run in re.finditer(r"[A-Z]+|[a-z]+|\d+|.", marker, re.DOTALL):
        piece = run.group()
        if piece.isdigit():
            pieces.append(rf"\d{{1,{len(piece) + 2}}}")
        elif piece.isalpha() and piece.isascii():
            # Short prefixes are part of the form, longer runs are names.
            # Abbreviations (`UTF-8`, `SHA-256`) have three letters where most names have more.
            least = min(len(piece), 3)
            name = f"[A-Z]{{{least},16}}" if piece.isupper() else f"[a-z]{{{least},16}}"
            pieces.append(name if least >= 3 else re.escape(piece))
        else:
            pieces.append(re.escape(piece))
    return "".join(pieces)


def _tenant_path(subject: Subject) -> Iterator[Seen]:
    own = _identities(subject.prompt) if subject.calls else {}
    if not own:
        return
    for text in subject.texts:
        if not text.in_call:
            continue
        for kind, name in _identities(text.text).items():
            if kind in own and not name & own[kind] and not any(n in subject.prompt for n in name):
                what = f"a path of {kind} {sorted(name)[0]!r}; the request names {sorted(own[kind])[0]!r}"
                yield _seen(text.where, what)
                return


def _identities(text: str) -> dict[str, set[str]]:
    """Whose directories the paths in a text are: {"tenant": {"a"}}; for `/users/ann` too."""
    found: dict[str, set[str]] = {}
    if "/" not in text:
        return found
    for path in _PATH.findall(text[:20000]):
        parts = path.split("/")[1:-1]
        for place, part in enumerate(parts):
            match = _IDENTITY.match(part)
            if match and match[2]:
                found.setdefault(match[1].lower(), set()).add(match[3])
            elif part in (
                "home",
                "users",
                "Users",
                "tenants",
                "customers",
                "clients",
                "accounts",
            ) and place + 1 < len(parts):
                found.setdefault(part.lower(), set()).add(parts[place + 1])
    return found


def _system_prompt(subject: Subject) -> Iterator[Seen]:
    text = subject.content.text
    if not subject.content.hints & _READ_BACK:
        return
    if text.startswith("#") and (section := _TOOL_SECTION.match(text)):
        if not _ASKS_PROMPT.search(subject.prompt or "write") and "tool" not in subject.prompt:
            yield _seen("content", f"a prompt's section of tools, {span(text, *section.span())}")
        return
    match = _PERSONA.match(text[:200])
    if match and _ORDERS.search(text[:600]) and not _ASKS_PROMPT.search(subject.prompt or "write"):
        yield _seen("content", f"a system prompt read back, {span(text, *match.span())}")


def _boilerplate(subject: Subject) -> Iterator[Seen]:
    # All of the phrases but two hold one of the words.
    content = subject.content
    if not (content.prose_hints & _ANY_FURNITURE and subject.prompt):
        return
    if not holds_furniture(content.codes):
        return
    if _ASKS_PAGE.search(subject.prompt):
        return
    start = subject.content.prose[:_BOILERPLATE_REACH].lower()
    if len(_LEGAL.findall(start)) >= _LEGAL_WORDS:
        return
    found = {phrase for phrase in _BOILERPLATE if phrase in start}
    if len(found) >= MIN_BOILERPLATE:
        yield _seen("content", f"a web page's furniture: {', '.join(sorted(found)[:4])}")


def _licence(subject: Subject) -> Iterator[Seen]:
    """The text of a licence from its beginning, in answer to something else."""
    if not (subject.content.hints & _ANY_LICENCE and subject.prompt):
        return
    if not subject.content.text[:_LICENCE_REACH].lower().lstrip().startswith(_LICENCES):
        return
    if _ASKS_FOR_MORE.match(subject.prompt):
        return
    if not _ASKS_PAGE.search(subject.prompt) and not _ASKS_LICENCE.search(subject.prompt):
        yield _seen("content", f"a licence's text, {span(subject.content.text, 0, 60)}")


def _off_topic(subject: Subject) -> Iterator[Seen]:
    if reason := is_off_topic(subject):
        yield _seen("content", reason)


def _seen(where: str, what: str) -> Seen:
    return Seen(label=Label.FOREIGN_CONTENT, where=where, what=what)


_CHECKS = (_marker, _tenant_path, _system_prompt, _boilerplate, _licence, _off_topic)
DETECTOR = Detector(
    label=Label.FOREIGN_CONTENT,
    summary="another session's canary, mark, path or conversation in this reply",
    detect=detect,
)
