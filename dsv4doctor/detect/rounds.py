"""What the rounds of a loop are made of: words, values, what drawings are filled with, code."""

from __future__ import annotations

import re

# Characters that rules, progress bars, boxes, blanks and memory dumps are made of.
_FILL = frozenset(" \t\n\r-=_*#~.+|/\\<>^0'\"`:,;()[]{}─━═│┃║░▒▓█▁▂▃▄▅▆▇·•…—–―＝－　0&%$@oOxXAaFf1")
_LETTERS = re.compile(r"[^\W\d_]")
_WORDISH = re.compile(r"[^\W\d_]{2,}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_DIGIT = re.compile(r"[0-9]")
# Scripts without blanks, a character of which is a word.
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_HEX = re.compile(r"0x[0-9A-Fa-f]+")
_TAGS = re.compile(r"(?:</?[\w:.-]{1,40}>\s*)+")
# The same with attributes, begun or ended in the middle.
_MARKUP = re.compile(r"<[^<>]*(?:>|\Z)|\A[^<>]*>")
# One of a row of values: `, TRUE`.
_CONSTANT = re.compile(r"(?i:[,;|]\s?(?:true|false|null|none|nil|nan|na|n/a|inf|undefined|yes|no))")
# A row of a table has tabs, a row of tuples these signs.
_MIN_TABS, _OF_TUPLES = 2, frozenset("0123456789 .,;()[]{}+-")
# Values that are names, by their first sign.
_NAMES_BEGIN = frozenset("/\\@$%&")
_LONGEST_NAME = 24


def is_wordy(unit: str) -> bool:
    """True when a unit is made of words: letters carry it, not digits, marks or one letter's
    run."""
    letters = len(_LETTERS.findall(unit))
    return (
        bool(_WORDISH.search(unit * 2)) and letters >= 0.4 * len(unit) and len(set(unit)) > 1
    ) or (len(set(unit)) == 1 and CJK.match(unit) is not None)


def is_fill(unit: str) -> bool:
    """True for what rules, dumps and empty tables are drawn with: few kinds of marks and digits."""
    return (set(unit) <= _FILL and len(set(unit.strip())) <= 3) or is_list(unit)


def is_list(unit: str) -> bool:
    """True for one value and its separator (`,NA`, `0;`), or for tags that close what was
    opened."""
    value = unit.strip()
    if _TAGS.fullmatch(value) or ("<" in unit and not _LETTERS.search(_MARKUP.sub("", unit * 2))):
        return True
    is_tuple = _OF_TUPLES.issuperset(value) and not set(value).isdisjoint(",;([{")
    if unit.count("\t") >= _MIN_TABS or (is_tuple and _DIGIT.search(value)):
        return True
    # A round may begin within a word: `l, nul`.
    at = next((at for at, char in enumerate(unit) if char in ",;|"), 0)
    if _CONSTANT.fullmatch((unit[at:] + unit[:at]).strip()):
        return True
    if " " in value:
        return False
    # `/.notdef` is a name of PostScript's.
    is_name = value[:1] in _NAMES_BEGIN and len(value) <= _LONGEST_NAME
    return is_name or (len(value) <= 12 and sum(value.count(c) for c in ",;\t|") == 1)


def is_statement(unit: str) -> bool:
    """True for a unit of several words and marks, at least one of letters: code or prose, no row
    of values."""
    return len(unit.split()) >= 3 and _LETTERS.search(unit) is not None and not is_list(unit)


def is_carried_out(unit: str) -> bool:
    """True for a unit of code that does something: an assignment, a call, a closed statement."""
    bare = _HEX.sub("", unit)
    return _LETTERS.search(bare) is not None and any(sign in bare for sign in "=(;")


def is_sentence(unit: str) -> bool:
    return len(unit.split()) >= 3 or len(CJK.findall(unit)) >= 6


def words_in(unit: str) -> int:
    """How many words a unit has; each ideograph is one."""
    return len(_WORDISH.findall(unit))
