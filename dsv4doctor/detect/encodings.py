"""Traces of bytes read wrongly: replacement characters, mojibake, control and unassigned
characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import regex

from dsv4doctor.detect.hints import hint
from dsv4doctor.detect.misread import MISREAD_RUN, MISREAD_SIGNS, ROW_SIGNS, misread
from dsv4doctor.detect.scripts import family_of

# Runs that are tried; a text in a Western language has many that are no mojibake.
_MAX_RUNS = 2000
# Finds of one kind that are told: the first ones may be quoted or in code.
_MAX_TOLD = 64
REPLACEMENT = "\ufffd"
# Runs of what UTF-8 bytes look like when each is read as one character of a Western code page.
_LATIN_LEAD = "[\u00c2-\u00f4\u0192\u0160\u0152\u017d\u0153\u0161\u0178]"
_LATIN_RUN = re.compile(
    _LATIN_LEAD + "[\u0080-\u00ff\u0152\u0153\u0160\u0161\u0178"
    "\u017d\u017e\u0192\u02c6\u02dc\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u2030\u2039\u203a\u20ac\u2122]{1,64}"
)
# The first pair stands by itself so that the search can look for its first character.
_CYRILLIC_PAIR = "[РСÐÑ][\u00a0-\u00bf\u0080-\u04ff\u2013-\u2122]"
_CYRILLIC_RUN = re.compile(f"{_CYRILLIC_PAIR}(?:{_CYRILLIC_PAIR}){{2,39}}")
# Sequences of three bytes that show by themselves what bytes they were where others were lost.
_THREE_BYTES = re.compile(b"[\xe1-\xef][\x80-\xbf]{2}")
_MIN_THREES = 3
# What either run begins with.
_LEADS = re.compile(f"{_LATIN_LEAD}|[РСÐÑ]")
# What GBK makes of UTF-8's replacement characters and of uninitialised memory.
_GBK_DEBRIS = re.compile("锟斤拷|烫烫烫|屯屯屯|鈥[檛渢溿]")
# Byte-level vocabulary pieces that were never turned back into bytes.
_BYTE_LEVEL = re.compile(r"(?:\w?[ĠĊ]\w*\W?){2,}|(?:▁[^\W_]+){2,}(?![\w▁]*｜)")
# The same, byte by byte: `âĢĻ` is an apostrophe. Bytes from 0x80 to 0xa0 are letters of another
# block there; nobody's words have one right behind what the first byte is.
_SHIFTED = "\u0122-\u0143"
_BYTE_RUN = re.compile(
    f"[ÂÃÎÏÐÑ][{_SHIFTED}]|[à-ï](?:[{_SHIFTED}][¡-¬®-¿{_SHIFTED}]|[¡-¬®-¿][{_SHIFTED}])"
    f"|ð[{_SHIFTED}][¡-¬®-¿{_SHIFTED}]{{2}}"
)
_SHIFT, _SOFT_HYPHEN = 0x122 - 0x80, {0x143: 0xAD}
# Never in a text on purpose: C0 and C1 controls but the ones that terminals and man pages use.
_CONTROL = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff\ufdd0-\ufdef]")
# Single characters that show by themselves that bytes were lost.
BROKEN = frozenset(
    {REPLACEMENT, *map(chr, (*range(8), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F))}
)
# Where the scripts of India had their full stops before all of them were given one.
_OLD_DANDAS = "".join(
    chr(block + at) for block in range(0x0A00, 0x0D80, 0x80) for at in (0x64, 0x65)
)
_UNASSIGNED = regex.compile(
    rf"[\p{{Cn}}--[\U0001F000-\U0001FBFF\u20C0-\u20CF{_OLD_DANDAS}]]", flags=regex.V1
)
# A character that each font draws as it likes, in the middle of a word.
_PRIVATE = re.compile(r"(?<=[^\W\d_])[\ue000-\uf8ff]+(?=[^\W\d_])")
_ICONS = 2
_ANY_PRIVATE = re.compile("[\ue000-\uf8ff]")
_REPLACED = re.compile(REPLACEMENT)
_SURROGATE = re.compile("[\ud800-\udfff]")
# Every character that one of the patterns begins with or needs. What else was seen is kept as
# sound: Unicode is finite.
_SUSPECT = regex.compile(
    rf"{_CONTROL.pattern}|[\ud800-\uf8ff{REPLACEMENT}锟烫屯鈥Ġ▁Ċ]"
    rf"|{_LEADS.pattern}|{_UNASSIGNED.pattern}",
    flags=regex.V1,
)
_SOUND: set[str] = set()
# In UTF-8: `_LATIN_RUN` and what its next character begins with, and three of `_CYRILLIC_PAIR`.
TORN_RUN = MISREAD_RUN | hint(
    rb"(?:\xc3[\x82-\xb4]|\xc6\x92|\xc5[\x92\x93\xa0\xa1\xb8\xbd])[\xc2\xc3\xc5\xc6\xcb\xe2]",
    rb"\xc3[\x82-\xb0](?:\xc2[\xa1-\xbf])?(?:\xc4[\xa2-\xbf]|\xc5[\x80-\x83])",
    rb"(?:(?:\xd0[\xa0\xa1]|\xc3[\x90\x91])(?:[\xc2-\xd3]|\xe2[\x80-\x84])[\x80-\xbf]){3}",
)
_LATIN = frozenset({"Latin", None})


def may_be_broken(char: str) -> bool:
    """True for a character that may show by itself that bytes were read wrongly; those that begin
    a run are `TORN_RUN`'s."""
    return char in ROW_SIGNS or (
        _SUSPECT.fullmatch(char) is not None and _LEADS.fullmatch(char) is None
    )


def broken_characters(text: str, signs: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """(what it is, start, end) for every trace, kind by kind; `signs` are the text's."""
    if not signs.isdisjoint(MISREAD_SIGNS):
        yield from misread(text, signs)
    # What one character tells is looked for among the distinct ones first.
    if signs <= _SOUND:
        return
    distinct = "".join(signs - _SOUND)
    _SOUND.update(_SUSPECT.sub("", distinct))
    if _CONTROL.search(distinct):
        yield from _told("a control character", _CONTROL, text)
    if text.isascii():
        return
    if _SURROGATE.search(distinct):
        yield from _told("a lone surrogate", _SURROGATE, text)
    if REPLACEMENT in signs:
        yield from _told("U+FFFD, bytes that were no UTF-8", _REPLACED, text)
    if _LEADS.search(distinct):
        yield from _mojibake(text)
        yield from _byte_pieces(text)
    if not signs.isdisjoint("锟烫屯鈥"):
        yield from _told("UTF-8 read as GBK", _GBK_DEBRIS, text)
    if not signs.isdisjoint("Ġ▁Ċ"):
        yield from _told("vocabulary pieces not decoded", _BYTE_LEVEL, text)
    # One of them again and again is a font's icon, behind each heading of a manual.
    private = _ANY_PRIVATE.findall(distinct)
    if len(private) > 1 or (private and text.count(private[0]) < _ICONS):
        yield from _told("a private-use character in a word", _PRIVATE, text)
    if _UNASSIGNED.search(distinct):
        yield from _told("an unassigned code point", _UNASSIGNED, text)


def _told(what: str, pattern: Any, text: str) -> Iterator[tuple[str, int, int]]:
    for match in islice(pattern.finditer(text), _MAX_TOLD):
        yield what, *match.span()


def _mojibake(text: str) -> Iterator[tuple[str, int, int]]:
    hits: list[tuple[int, int]] = []
    for match in islice(_LATIN_RUN.finditer(text), _MAX_RUNS):
        run = match.group()
        if not run[1:].strip("\xa0") and len(run) > 2:
            # Blanks that hold a line together.
            continue
        if len(run) < 4 and (not _in_word(text, *match.span()) or _is_spelt(run, text)):
            continue
        if len(run) == 2 and _ends_capitals(text, match.start()):
            continue
        # `Ç’është`, as Albanian begins a question: a torn letter stands behind others.
        if run.startswith("Ç’") and not text[match.start() - 1 : match.start()].isalpha():
            continue
        decoded = _decoded(run, "cp1252")
        if decoded and not _is_torn(text, match.start(), decoded):
            hits.append(match.span())
            if len(hits) >= 2:
                break
    for start, end in hits[:1]:
        # One hit could be a word of a language that we do not know; two are none.
        if len(hits) >= 2 or end - start >= 3:
            yield "UTF-8 read as Latin-1", start, end
    for match in islice(_CYRILLIC_RUN.finditer(text), _MAX_RUNS):
        if _decoded(match.group(), "cp1251") or _decoded(match.group(), "cp1252"):
            yield "UTF-8 read as Windows-1251", *match.span()
            return


def _byte_pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """The characters that a byte-level vocabulary shows for the bytes of one character."""
    for match in islice(_BYTE_RUN.finditer(text), _MAX_RUNS):
        codes = [_SOFT_HYPHEN.get(ord(char), ord(char)) for char in match.group()]
        raw = bytes(code - _SHIFT if code > 0xFF else code for code in codes)
        try:
            is_char = len(raw.decode()) == 1
        except UnicodeDecodeError:
            continue
        if is_char:
            yield "vocabulary pieces not decoded", *match.span()
            return


def _is_spelt(run: str, text: str) -> bool:
    """True for two letters of which the second is one of the text's own language, as in `Úžasný`:
    it stands behind other letters far more often than behind this one."""
    return len(run) == 2 and run[1].isalpha() and text.count(run[1]) > 2 * text.count(run)


def _ends_capitals(text: str, at: int) -> bool:
    """True for the last letter of a word in capitals before a mark, as in `DÉCONSEILLÉ\u00a0:`."""
    return text[at - 2 : at].isupper() and at > 1 and not text[at + 1].isalpha()


def _in_word(text: str, start: int, end: int) -> bool:
    before, after = text[start - 1 : start], text[end : end + 1]
    return before.isalpha() or after.isalpha()


def _is_torn(text: str, at: int, decoded: str) -> bool:
    """True where the bytes would make one character of another script in a word of Latin, as those
    of `nejnížší` make one of Korean's."""
    if len(decoded) > 1 or not ("\u0370" <= decoded < "\u1e00" or family_of(decoded) not in _LATIN):
        return False
    return _in_word(text, at, at + len(decoded.encode()))


def _decoded(run: str, code_page: str) -> str:
    """The characters beyond ASCII for which the run's bytes begin with UTF-8, those of bytes that
    were lost as they are; an empty text where there are none."""
    raw = bytearray()
    for char in run:
        try:
            raw += char.encode(code_page)
        except UnicodeEncodeError:
            if ord(char) > 0xFF:
                break
            raw.append(ord(char))
    for length in (len(raw), len(raw) - 1, len(raw) - 2):
        if length < 2:
            return ""
        try:
            decoded = raw[:length].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return decoded if not decoded.isascii() and decoded.isprintable() else ""
    threes = len(_THREE_BYTES.findall(raw))
    return run if threes >= _MIN_THREES and 2 * 3 * threes >= len(raw) else ""
