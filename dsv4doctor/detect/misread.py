"""Text whose bytes were UTF-8 and were read in a code page of East Asia or of DOS.

Each finding is proved by going back: in that code page the characters are bytes which decode as
UTF-8 nearly without a fault, and text that means what it says does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsv4doctor.detect.hints import hint

# UTF-8's lead bytes for two-byte characters, as every DOS page shows them.
_DOS_LEADS = "┬├╬╧╨╤"
_DOS_RUN = re.compile(f"(?:[{_DOS_LEADS}][^\x00-\x7f])+")
_DOS_PAGES = ("cp437", "cp850", "cp866", "cp852")
# Dashes and quotation marks, of three bytes, in cp437, cp850 and cp866.
_DOS_MARKS = re.compile("ΓÇ[ôöÖ£¥ªóÜ]|ÔÇ[ôöÖ£¥ªóÜ]|тА[ЩЬЭУФж]")
# Characters of stretches with letters among them that are no drawing's.
_MIN_LETTERED = 4
# East Asian pages by what UTF-8's first two bytes look like in them: the commonest rows of
# ideographs, kana, syllables and full-width marks.
_LEADS = (*range(0xE3, 0xEE), 0xEF)
_PAGES = ("gbk", "cp932")
_RUN = re.compile("[^\x00-\x7f]{4,400}")
_MAX_RUNS = 16
# Characters of a sound text that are there by chance, and more than that.
_MIN_SIGNS = 2
_MIN_GOOD = 4
# Faults that lost bytes cause, per good character.
_FAULTS = 0.4
_EAST = 0x2E80


def _row_signs(page: str) -> frozenset[str]:
    """What a page shows for a lead byte of UTF-8's and the byte after it."""
    pairs = (bytes((lead, trail)) for lead in _LEADS for trail in range(0x80, 0xC0))
    return frozenset(sign for pair in pairs if len(sign := pair.decode(page, "ignore")) == 1)


_SIGNS = {page: _row_signs(page) for page in _PAGES}
# Without one of these no text was read so; those of the rows, and what shows it by itself.
ROW_SIGNS = frozenset[str]().union(*_SIGNS.values())
MISREAD_SIGNS = ROW_SIGNS.union(_DOS_LEADS + "ΓÔт")
MISREAD_RUN = hint(
    rb"(?:\xce\x93|\xc3\x94)\xc3\x87|\xd1\x82\xd0\x90",
    rb"\xe2(?:\x94[\xac\x9c]|\x95[\xa4\xa7\xa8\xac])[\x80-\xff]",
)


def misread(text: str, signs: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """(what it is, start, end) of a misread stretch; `signs` are the text's distinct characters."""
    if not signs.isdisjoint(_DOS_LEADS):
        yield from _dos(text)
    if ("Ç" in signs or "А" in signs) and (match := _DOS_MARKS.search(text)):
        yield "UTF-8 read in a DOS code page", *match.span()
    for page, row in _SIGNS.items():
        if len(signs & row) >= _MIN_SIGNS and (found := _east_asian(text, page)):
            yield f"UTF-8 read as {page.upper()}", *found
            return


def _dos(text: str) -> Iterator[tuple[str, int, int]]:
    # Drawings join corners and edges in the same pairs, but hold no letters among them.
    hits = [match.span() for match in _DOS_RUN.finditer(text) if _is_dos(match.group())]
    lettered = [hit for hit in hits if any(map(str.isalpha, text[slice(*hit)]))]
    inside = [
        hit
        for hit in hits
        if text[hit[0] - 1 : hit[0]].isalpha() and text[hit[1] : hit[1] + 1].isalpha()
    ]
    if inside or sum(end - start for start, end in lettered) >= _MIN_LETTERED:
        yield "UTF-8 read in a DOS code page", *(inside or lettered)[0]


def _is_dos(run: str) -> bool:
    for page in _DOS_PAGES:
        try:
            decoded = run.encode(page).decode("utf-8")
        except UnicodeError:
            continue
        if decoded.isprintable():
            return True
    return False


def _east_asian(text: str, page: str) -> tuple[int, int] | None:
    good = faults = 0
    where: tuple[int, int] | None = None
    for number, match in enumerate(_RUN.finditer(text)):
        if number >= _MAX_RUNS:
            break
        decoded = match.group().encode(page, "ignore").decode("utf-8", "replace")
        faults += decoded.count("\ufffd")
        good += sum(ord(char) >= _EAST and char != "\ufffd" for char in decoded)
        where = where or match.span()
    return where if good >= _MIN_GOOD and faults <= _FAULTS * good else None
