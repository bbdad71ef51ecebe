"""A model that talks to itself: its thoughts about "the user" where the answer belongs."""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re

from dsv4doctor.detect.detector import span
from dsv4doctor.detect.hints import hint
from dsv4doctor.detect.signs import holds_any
from dsv4doctor.detect.subject import Subject

# How far into the content it shows itself.
_HEAD = 300
_THE_USER = re.compile(
    r"\bthe user (?:probably |likely |clearly |simply |just |really |also )?(?:wants|asks|asked|is asking|says|said|needs|has asked|just|would like|requested|is requesting)\b"
    r"|用户(?:想|要|问|说|希望|需要|在问|询问|让我)|ユーザーは|사용자(?:가|는)|пользователь (?:хочет|просит|спрашивает)"
    r"|l['’]utilisat(?:eur|rice) (?:veut|demande|souhaite|cherche)|el usuario (?:quiere|pide|pregunta|solicita|desea)"
    r"|der (?:nutzer|benutzer) (?:möchte|will|fragt|bittet|braucht)|o usuário (?:quer|pede|pergunta|deseja)"
    r"|l['’]utente (?:vuole|chiede|desidera)|de gebruiker (?:wil|vraagt)|użytkownik (?:chce|prosi|pyta)|kullanıcı [^.\n]{1,60}(?:istiyor|soruyor)"
    r"|người dùng (?:muốn|hỏi|yêu cầu)|pengguna (?:ingin|meminta|bertanya)|المستخدم (?:يريد|يسأل|يطلب)|用戶(?:想|要|問|說|希望|需要)",
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
    r"|我(?:需要|应该|應該|得|要|可以|先|来|來)|让我|讓我|必要がある|しよう|нужно|надо|je (?:ne )?dois|il (?:me|nous) faut|debo|tengo que|necesito"
    r"|ich (?:muss|sollte|brauche|darf)|(?<!é )(?<!ser )(?<!for )preciso\b|devo|dovrei|ik moet|muszę|powinienem|m[ae]l[ıi]y[ıi]m\b|tôi (?:cần|nên|phải)|saya (?:perlu|harus)|أحتاج|عليّ أن",
    re.IGNORECASE,
)
# One of these is in everything that `_THE_USER` matches; beside them, two letters that it takes for
# an i and `casefold` does not.
_USERS = (
    "user", "用户", "用戶", "ユーザー", "사용자", "пользователь", "utilisat", "usuario", "usuário", "utente", "nutzer",
    "gebruiker", "użytkownik", "kullan", "người dùng", "pengguna", "المستخدم",
)  # fmt: skip
# And of those that plain letters can write.
_PLAIN_USERS = (
    " user",
    " User",
    "utilisat",
    "usuario",
    "utente",
    "nutzer",
    "gebruiker",
    "pengguna",
)
TALKS_OF_USER = hint(
    r"(?i)the user (?:\w{4,8} )?(?:wants|ask|is asking|says|said|needs|has asked|just|would like|requested|is requesting)",
    r"(?i)(?:need to|should|must|have to) (?:answer|respond|reply|address|explain|provide|produce|help)\b",
    "(?i)用户|用戶|ユーザー|사용자|пользователь|utilisat|usuario|usuário|utente|nutzer|benutzer|gebruiker",
    "(?i)użytkownik|kullan|người dùng|pengguna|المستخدم|[ıİ]",
)
# Requests that a monologue answers.
_ASKS_FOR_MONOLOGUE = re.compile(
    r"think(?:s|ing)? (?:aloud|out loud)|monologu?e?|stream of (?:consciousness|thought)|inner (?:voice|thoughts?)|in the voice of|"
    r"role-?play|pretend|parody|imitat|chain[- ]of[- ]thought|thought process|thinking process",
    re.IGNORECASE,
)
# The plan of an answer as some models number it, before the answer.
_PROCESS = re.compile(
    r"\A\W{0,6}(?:here(?:['’]s| is) (?:a|my|the) )?(?:thinking|thought) process\b[^\n]{0,40}:\W{0,6}\n+\s*1\.\s+\W{0,3}"
    r"(?:analy[sz]|understand|identif|deconstruct|clarif|determin|pars|read|interpret)",
    re.IGNORECASE,
)
_ODD_I = frozenset("ıİ")
# How Granite parts its thoughts from its answer: in words.
_PARTED_IN_WORDS = re.compile(
    r"\A\W*Here(?: is|'s|’s) my thought process:.+?Here(?: is|'s|’s) my (?:response|answer):",
    re.DOTALL,
)


def monologue(subject: Subject) -> str | None:
    """Where the content opens with talk about the user and about what to do, quoted."""
    head = subject.content.text[:_HEAD]
    if head.isascii() and not holds_any(head, _PLAIN_USERS):
        return None
    folded = head.casefold()
    if not holds_any(folded, _USERS) and _ODD_I.isdisjoint(head):
        return None
    match = _OWN_TASK.match(head)
    if match and "user" not in subject.prompt.lower():
        return span(head, *match.span())
    match = _THE_USER.search(head)
    if (
        match is None
        or _ASKS_FOR_MONOLOGUE.search(subject.prompt)
        or "user" in subject.prompt.lower()
        or subject.content.code.covers(match.start())
    ):
        return None
    # A report about users does not open with the user's wish, nor turn to what "I" should do; a
    # comment says what happens if they have it.
    opening = head[: match.start()].strip()
    if (
        len(opening) <= 40
        and not _CONDITION.search(opening)
        and _SELF_TALK.search(subject.content.text, match.end())
    ):
        return span(head, *match.span())
    return None


def numbered_plan(subject: Subject) -> str | None:
    """Where thoughts stand under a heading of their own, the answer behind them, quoted."""
    body = subject.content.text
    if match := _PARTED_IN_WORDS.match(body):
        return span(body, *match.span())
    match = _PROCESS.match(body)
    if match is None or _ASKS_FOR_MONOLOGUE.search(subject.prompt):
        return None
    return span(body, *match.span())
