"""Small words that never stand side by side: what tells salad without a dictionary.

Every language is held together by a few dozen small words, and most pairs of them occur nowhere
(`of is`, `und the`). Which ones was counted over 46 million characters of manual pages, message
catalogues, documentation and code in 46 languages; the table beside this module is what came out,
and `python benchmarks/neighbours.py` counts again.

A text's words are turned into one byte each, so that a regular expression over those bytes finds
every odd pair at once.
"""

from __future__ import annotations

import re
from base64 import b85decode
from collections.abc import Iterator, Mapping
from itertools import product, repeat

from dsv4doctor.detect.listing import goes_on, in_order, is_english_noun, is_renamed
from dsv4doctor.detect.lone_marks import BESIDE, HUNG_ENDINGS, LONE, SUFFIXES
from dsv4doctor.detect.neighbours_table import NEVER, WORDS
from dsv4doctor.detect.switches import FUNCTION_WORDS, spoken_by
from dsv4doctor.detect.tongues import classes

# Words that nobody writes twice in a row.
NEVER_TWICE = (
    "the", "of", "to", "by", "and", "is", "with", "for", "which", "so", "then", "minus", "und",
    "mit", "von", "zum", "les", "dans", "pour", "avec", "los", "las", "una", "para", "della", "een",
    "och", "att", "oraz",
)  # fmt: skip
ARTICLES = ("the", "a", "an")
# What no noun phrase goes on with, as a token of its own.
_MARKS = ":;,.=)|>"

# No clause that `switches` looks at has more words between two function words.
CLAUSE_WORDS = 22
_HUNG, _LONE, _FURNITURE, _RUN, SUFFIX, _MARK = range(250, 256)
# Runs of one mark that stand alone, as no prose has them; longer ones are rules.
_RUN_MARKS = {",": 2, "_": 3, "#": 3, ";": 2, ":": 3, ")": 2, "]": 2}
_LONGEST_RUN = 24
_FURNITURE_WORD = bytes([_FURNITURE])
_LONE_SUFFIX, _LONE_RUN = bytes([SUFFIX]), bytes([_RUN])
_HUNG_ENDING, _LONE_MARK = bytes([_HUNG]), bytes([_LONE])
_SILENT = bytes(code for code in range(256) if code not in (_HUNG, _LONE, _RUN, SUFFIX))
_COUNTED = tuple(WORDS.split())
# Function words that the table knows nothing of have a code too: they tell a change of language.
_FUNCTION = {*ARTICLES, *NEVER_TWICE, *BESIDE.split(), *" ".join(FUNCTION_WORDS.values()).split()}
_SMALL = (*_COUNTED, *sorted(_FUNCTION - {*_COUNTED}))
_CODES: dict[str, int] = {word: number for number, word in enumerate(_SMALL, 1)}
assert len(_SMALL) < _HUNG
_CODES |= dict.fromkeys(SUFFIXES, SUFFIX)
_CODES |= {"".join(m): _MARK for size in (1, 2, 3) for m in product(_MARKS, repeat=size)}
_CODES |= dict.fromkeys(
    (mark * size for mark, least in _RUN_MARKS.items() for size in range(least, _LONGEST_RUN)),
    _RUN,
)
_CODES |= dict.fromkeys(LONE, _LONE)
_CODES |= dict.fromkeys(HUNG_ENDINGS, _HUNG)
# Words of a web page's furniture, never followed by a mark: see `foreign_content`.
_CODES |= {
    spelt: _FURNITURE
    for word in (
        "skip", "subscribe", "related", "cookie", "privacy", "terms", "share", "sign", "leave",
        "powered", "follow", "accept", "rights",
    )
    for spelt in (word, word.capitalize(), word.upper())
}  # fmt: skip


def _bits(table: str) -> list[frozenset[int]]:
    """The codes that never follow each code; the table holds one bit a pair, row by row."""
    raw = int.from_bytes(b85decode(table), "little")
    count = len(_COUNTED)
    rows = [(raw >> (row * count)) & ((1 << count) - 1) for row in range(count)]
    return [
        frozenset(),
        *(frozenset(n + 1 for n in range(count) if row >> n & 1) for row in rows),
        *(frozenset[int]() for _ in _SMALL[count:]),
    ]


_NEVER_AFTER = _bits("".join(NEVER.split()))


def _odd_pairs() -> Iterator[bytes]:
    articles = {_CODES[word] for word in ARTICLES}
    twice = {_CODES[word] for word in NEVER_TWICE}
    for code in range(1, len(_SMALL) + 1):
        for after in _NEVER_AFTER[code]:
            yield bytes((code, after))
        if code in articles:
            yield bytes((code, _MARK))
            yield bytes((code, _RUN))
            yield bytes((code, _LONE))
        if code in twice:
            yield bytes((code, code))


_ODD = frozenset(_odd_pairs())
_SMALL_CODES = re.escape(bytes(sorted({_CODES[word] for word in BESIDE.split()})))
_MARK_CODES = re.escape(bytes((_LONE, _RUN)))
_BESIDE_MARK = re.compile(
    b"[%b](?=[%b])|[%b][%b]" % (_MARK_CODES, _SMALL_CODES, _SMALL_CODES, _MARK_CODES), re.DOTALL
)
_ANY_SMALL = re.compile(b"[%b]" % _SMALL_CODES)
_SIDE_BY_SIDE = re.compile(rb"[^\0]{2,}", re.DOTALL)
# Rows of small words that hold no odd pair: most are short and come again and again.
_SOUND_ROWS: set[bytes] = set()
_MAX_SOUND_ROWS = 20_000
_LONGEST_ROW = 64
# One bit a language, for every code; what is no function word is in all of them.
SPOKEN = [-1] * 256
_LANGUAGE_BITS: dict[str, int] = {}


def _speak(code: int, languages: frozenset[str]) -> None:
    """Note the languages of a code."""
    bits = (_LANGUAGE_BITS.setdefault(name, 1 << len(_LANGUAGE_BITS)) for name in languages)
    SPOKEN[code] = sum(bits)


for _word, _code in _CODES.items():
    if _code < _HUNG and (_languages := spoken_by(_word)):
        _speak(_code, _languages)
# Small words of a language that no other code tells have one code a class.
for _code, (_languages, _words) in enumerate(classes(), len(_SMALL) + 1):
    assert _code < _HUNG
    _speak(_code, _languages)
    for _word in _words:
        _CODES.setdefault(_word, _code)
# Function words that only some languages have.
_SPEAKING = re.compile(
    b"[" + b"".join(re.escape(bytes([code])) for code in range(256) if SPOKEN[code] >= 0) + b"]"
)
_PAIR = re.compile(r"(?<![\w'’./_·-])([^\W\d_]{1,8})(?:\n| )(?=([^\W\d_]{1,8})(?![\w'’/_-]|\.\w))")


def small_words() -> Mapping[str, int]:
    """Every small word with its code."""
    return _CODES


# "a from and a to": small words that are names of fields where an article stands before them.
_FIELDS = frozenset({"from", "to", "in", "out", "on"})
_ARTICLE_REACH = 5
# Letters that are named in one text.
_MIN_LETTERS = 3
# A pair that is there so often, this near, is meant.
_OFTEN, _SAID_WITHIN = 3, 2000
# What stands before the last of some numbered things: `i1, …, im are integers`.
_INDEX = re.compile(r"(?:…|\.\.\.|\\ldots),? \Z")
_INDEX_REACH = 8
_ARTICLE = re.compile(r"(?:\ban?|\bthe) \Z", re.IGNORECASE)
# What stands before the name of a parameter that is described.
_PARAMETER = re.compile(r"[@\\]param(?:\[[\w, ]+\])? (?:\{[^}\n]*\} )?\Z")
_PARAMETER_REACH = 60


def codes_of(text: str) -> bytes:
    """One byte for every blank-separated word of `text`; 0 for what is no small word."""
    return bytes(map(_CODES.get, text.split(), repeat(0)))


def holds_furniture(codes: bytes) -> bool:
    """True where words of a web page's furniture are among them."""
    return _FURNITURE_WORD in codes


def holds_run(codes: bytes) -> bool:
    """True where a run of one mark may stand alone among them."""
    return _LONE_RUN in codes


def holds_suffix(codes: bytes) -> bool:
    """True where a suffix stands by itself among them."""
    return _LONE_SUFFIX in codes


def holds_telling(codes: bytes) -> bool:
    """True where a code is among them that tells by itself that something may be odd: a suffix, a
    run of one mark, a lone mark or an ending hung on a mark."""
    return bool(codes.translate(None, _SILENT))


def holds_odd_pair(codes: bytes) -> bool:
    """True where a pair never seen, a suffix by itself or a doubled small word is among them."""
    return _LONE_SUFFIX in codes or bool(odd_rows(codes))


def odd_rows(codes: bytes) -> list[bytes]:
    """The rows of small words that hold a pair never seen or a doubled small word."""
    rows = _SIDE_BY_SIDE.findall(codes)
    if _SOUND_ROWS.issuperset(rows):
        return []
    return [row for row in rows if row not in _SOUND_ROWS and not _is_sound(row)]


def _is_sound(row: bytes) -> bool:
    if any(row[at : at + 2] in _ODD for at in range(len(row) - 1)):
        return False
    if len(_SOUND_ROWS) >= _MAX_SOUND_ROWS:
        _SOUND_ROWS.clear()
    if len(row) <= _LONGEST_ROW:
        _SOUND_ROWS.add(row)
    return True


def holds_hung_ending(codes: bytes) -> bool:
    """True where an ending that hangs on a mark is among them."""
    return _HUNG_ENDING in codes


def holds_lone_mark(codes: bytes) -> bool:
    """True where a mark that no prose sets apart stands beside a small word."""
    marked = _LONE_MARK in codes or _LONE_RUN in codes
    return marked and _BESIDE_MARK.search(codes) is not None


def holds_small_word(codes: bytes) -> bool:
    """True where a small word of a Latin language that no other has is among them."""
    return _ANY_SMALL.search(codes) is not None


def may_switch(codes: bytes) -> bool:
    """True where two function words that no language shares stand near each other."""
    languages = -1
    for code in set(codes):
        languages &= SPOKEN[code]
    if languages:
        return False
    last, end = -1, 0
    for match in _SPEAKING.finditer(codes):
        at = match.start()
        spoken = SPOKEN[codes[at]]
        near = at - end <= CLAUSE_WORDS
        if near and not spoken & last:
            return True
        last, end = (spoken & last if near else spoken) or spoken, at + 1
    return False


def odd_pairs(text: str) -> Iterator[tuple[int, int]]:
    """The places of two neighbouring small words that never follow each other."""
    for match in _PAIR.finditer(text):
        first = _CODES.get(match[1], 0)
        if match[1] in _FIELDS and _ARTICLE.search(
            text, max(0, match.start() - _ARTICLE_REACH), match.start()
        ):
            continue
        is_odd = 0 < first < len(_NEVER_AFTER) and _CODES.get(match[2], 0) in _NEVER_AFTER[first]
        if is_odd and not _is_meant(text, match):
            yield match.start(), match.end(2)


def _is_meant(text: str, match: re.Match[str]) -> bool:
    """True where an odd pair is a turn of phrase, listed, numbered, a name or a noun; what costs
    least is looked at first."""
    start, end = match.start(), match.end(2)
    around = text[max(0, start - _SAID_WITHIN) : end + _SAID_WITHIN]
    return (
        _is_said_often(around, match[1], match[2])
        or _is_row_end(text, match.end(1))
        or in_order(text, start, end)
        or _INDEX.search(text, max(0, start - _INDEX_REACH), start) is not None
        or _PARAMETER.search(text, max(0, start - _PARAMETER_REACH), start) is not None
        or is_renamed(text, start)
        or _is_noun(text, match)
        or _is_of_code(text, match)
    )


def _is_noun(text: str, match: re.Match[str]) -> bool:
    """True where one of a pair's words is English, and a noun there."""
    return any(is_english_noun(text, match.start(n), match[n]) for n in (1, 2))


def _is_of_code(text: str, match: re.Match[str]) -> bool:
    """True where one of a pair's words is a variable; also of a loop, `for est in row`."""
    if match[1] == "for" and text.startswith(" in ", match.end(2)):
        return True
    if match[2] == "in" and text.endswith("for ", 0, match.start()):
        return True
    return any(is_variable(text, match.start(), match[n]) for n in (1, 2))


def is_variable(text: str, at: int, word: str) -> bool:
    """True where the text near a place sets a variable of that name, counts with it or compares
    it."""
    around = text[max(0, at - _SAID_WITHIN) : at + _SAID_WITHIN]
    if f"{word} " not in around:
        return False
    used = rf"^[ \t]*{word} = |(?<![\w.]){word} (?:[-+*/]=|[<>=!]=|[<>]) ?\w"
    return re.search(used, around, re.MULTILINE) is not None


def _is_said_often(text: str, first: str, second: str) -> bool:
    """True where the pair is a turn of phrase of the text's, or the first word a letter, and others
    are named in the same way: `a med grav`, `o med akut`."""
    if len(first) > 1:
        return text.count(f"{first} {second}") >= _OFTEN
    others = re.finditer(rf"(?<!\w)([^\W\d_]) {second}(?!\w)", text)
    return len({match[1] for match in others}) >= _MIN_LETTERS


def _is_row_end(text: str, at: int) -> bool:
    """True where a list or a table breaks its line at a place."""
    return text[at] == "\n" and not goes_on(text, at)
