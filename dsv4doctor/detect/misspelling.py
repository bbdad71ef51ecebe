"""The request's own words, misspelt in a call: a path or command copied from damaged entries."""

from __future__ import annotations

import re
from itertools import chain, takewhile

from dsv4doctor.detect.subject import Subject, strings_in

_TOKEN = re.compile(r"[A-Za-z]{3,40}")
_EXACTLY = re.compile(r"\bexactly\b[^:\n]{0,40}:\s*(\S.*?)\s*$", re.IGNORECASE | re.DOTALL)
# Requests for a name as it is, and names that only a machine has: parts with a digit among them.
_AS_IT_IS = re.compile(
    r"\bexact(?:ly)?\b|\bverbatim\b|\bword for word\b|\bcharacter (?:for|by) character\b|"
    r"\bunchanged\b|\bas (?:given|written)\b|\bwörtlich\b|\bexact[ae]mente?\b|原样|一字不差",
    re.IGNORECASE,
)
_NAME = r"[A-Za-z][A-Za-z0-9]*(?:[-_.][A-Za-z0-9]+)+(?![\w-])"
_MACHINE_NAME = re.compile(rf"(?<![\w.-])(?=[\w.-]{{0,60}}\d){_NAME}")
_LIKE_ONE = re.compile(rf"(?<![\w.-]){_NAME}")
# What makes another name of one.
_ANOTHER = re.compile(
    r"\b(?:next|previous|following|after|before|new|renam|chang|replac|instead|bump|increment|"
    r"upgrad|copy|copies|similar|like|neighbou?r)",
    re.IGNORECASE,
)
_MAX_NAMES = 40
# A name that differs in more than so many places is another one.
_MOST_EDITS = 3
_PATH = re.compile(r"(?:/[\w.@-]+){3,}")
_MAX_PATHS = 40
# One slip may be the model correcting the person's; three in one call are damage.
MIN_SLIPS = 3
_MAX_TOKENS = 400
# Letters within a word of ASCII: `README中文.md` is somebody's name for a file; and the value.
_INSIDE = re.compile(
    r"[A-Za-z0-9_][^\W\d_\x00-\x7f]+(?=[A-Za-z0-9_])|[A-Za-z0-9_./-][^\W\d_\x00-\u036f](?=[A-Za-z0-9_./-])"
)
# Letters beyond Latin's begin here; so many may stand for the request's own in one word.
_BEYOND_LATIN = "\u0370"
_MOST_REPLACED = 2
_MOST_INSIDE = 400
_LEAST_PLAIN = 5
_PROMPT_REACH = 2000
# What is lost of a path, and what is left of it on both sides.
_MIN_LOST = 3
_LONGEST_PATH = 400
_MIN_KEPT = 5
# Shorter words are one another's anagrams by chance.
_MIN_SWAPPED = 3


def misspelt(subject: Subject) -> str | None:
    """What was damaged on its way from the prompt into a call; None if nothing was."""
    if not subject.prompt or not subject.calls:
        return None
    if _AS_IT_IS.search(subject.prompt) and (what := _altered_name(subject)):
        return what
    asked = _TOKEN.findall(subject.prompt[-20000:])[-_MAX_TOKENS:]
    if (
        len(known := set(asked)) < MIN_SLIPS
        and "/" not in subject.prompt
        and _EXACTLY.search(subject.prompt) is None
    ):
        return None
    values = [v for call in subject.calls for _, v in strings_in(call.arguments.value)]
    if what := _letter_inside(subject.prompt, values):
        return what
    every = chain.from_iterable(_TOKEN.findall(value[:4000]) for value in values)
    given = list(dict.fromkeys(every))[:_MAX_TOKENS]
    used = set(given)
    # By their first letter, which no slip changes.
    missing: dict[str, list[str]] = {}
    for word in known:
        if word not in used and len(word) >= 3:
            missing.setdefault(word[0], []).append(word)
    slips = [
        (word, other)
        for word in given
        if word[0] in missing and word not in known
        for other in missing[word[0]]
        if _is_slip(word, other)
    ]
    if len({word for word, _ in slips}) >= MIN_SLIPS:
        shown = ", ".join(f"{word!r} for {other!r}" for word, other in slips[:4])
        return f"words of the request misspelt: {shown}"
    return _path_slips(subject.prompt, values) or _not_exactly(subject, values)


def _letter_inside(prompt: str, values: list[str]) -> str | None:
    """A word of the request with letters of another alphabet inside: `parse_的date`."""
    for value in values:
        if value.isascii() or len(value) > _MOST_INSIDE or not prompt.isascii():
            continue
        plain = value.encode("ascii", "ignore").decode()
        if _INSIDE.search(value) and len(plain) >= _LEAST_PLAIN and plain in prompt:
            return f"letters inside a word of the request: {value[:60]!r}"
        for word in value.split():
            if not word.isascii() and _is_replaced(word, prompt[-_PROMPT_REACH:].split()):
                return f"letters of another alphabet in a word of the request: {word[:60]!r}"
    return None


def _is_replaced(word: str, asked: list[str]) -> bool:
    """True for a word of the request in which letters beyond Latin stand for one or two."""
    for other in asked:
        if len(other) != len(word) or len(word) < _LEAST_PLAIN:
            continue
        odd = [(a, b) for a, b in zip(word, other, strict=True) if a != b]
        if len(odd) <= _MOST_REPLACED and all(a >= _BEYOND_LATIN and b.isalpha() for a, b in odd):
            return True
    return False


def _altered_name(subject: Subject) -> str | None:
    """A machine's name that was to be kept as it is, and one that hardly differs in its place."""
    values = [v[:4000] for call in subject.calls for _, v in strings_in(call.arguments.value)]
    wanted = dict.fromkeys(_MACHINE_NAME.findall(subject.prompt[-20000:])[-_MAX_NAMES:])
    if _ANOTHER.search(subject.prompt):
        return None
    lost = [name for name in wanted if not any(name in value for value in values)]
    for name in lost:
        for value in values:
            for given in _LIKE_ONE.findall(value)[:_MAX_NAMES]:
                if given not in subject.prompt and _is_damaged(name, given):
                    return f"{given!r} where exactly {name!r} was asked for"
    return None


def _is_damaged(name: str, given: str) -> bool:
    """True for a name that hardly differs, or has the same characters in another order."""
    return _edits(name, given) <= _MOST_EDITS or sorted(name) == sorted(given)


def _edits(one: str, other: str) -> int:
    """The letters to change, add or take away to make one word the other; many when it is plain
    that they are too many."""
    if one[0] != other[0] or abs(len(one) - len(other)) > _MOST_EDITS:
        return len(one)
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        above, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]


def _path_slips(prompt: str, values: list[str]) -> str | None:
    """A path of the request with two of its parts misspelt and the others right, or without its
    middle."""
    asked = _PATH.findall(prompt[-20000:])[-_MAX_PATHS:]
    given = [path for value in values if "/" in value for path in _PATH.findall(value[:4000])]
    for path in given[:_MAX_PATHS] if asked else ():
        for wanted in asked:
            if _is_cut_from(path, wanted) and path not in prompt and wanted not in given:
                return f"a path of the request without its middle: {path!r} for {wanted!r}"
            parts, others = path.split("/"), wanted.split("/")
            odd = [(a, b) for a, b in zip(parts, others, strict=False) if a != b]
            if len(parts) != len(others) or len(odd) < 2 or len(parts) - 1 == len(odd):
                continue
            if path not in asked and all(_is_slip(a, b) for a, b in odd if a and b):
                return f"a path of the request misspelt: {path!r} for {wanted!r}"
    return None


def _is_cut_from(path: str, wanted: str) -> bool:
    """True when `path` is `wanted` without one stretch, which holds a slash and begins or ends in
    the middle of a word; whole parts are left out on purpose."""
    lost = len(wanted) - len(path)
    if not (lost >= _MIN_LOST and len(wanted) <= _LONGEST_PATH):
        return False
    if not (wanted.startswith(path[:_MIN_KEPT]) and wanted.endswith(path[-_MIN_KEPT:])):
        return False
    if set(path.split("/")) <= set(wanted.split("/")):
        return False
    head = _shared(path, wanted)
    tail = _shared(path[::-1], wanted[::-1])
    for cut in range(max(len(path) - tail, _MIN_KEPT), min(head, len(path) - _MIN_KEPT) + 1):
        stretch = wanted[cut : cut + lost]
        begins_inside = path[cut - 1].isalnum() and stretch[0].isalnum()
        ends_inside = path[cut].isalnum() and stretch[-1].isalnum()
        if "/" in stretch and (begins_inside or ends_inside):
            return True
    return False


def _shared(one: str, other: str) -> int:
    """With how many characters both begin."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _not_exactly(subject: Subject, values: list[str]) -> str | None:
    match = _EXACTLY.search(subject.prompt)
    if match is None or len(match[1]) > 400 or "\n" in match[1]:
        return None
    wanted = match[1].strip("`")
    words = wanted.split()
    if any(wanted in value for value in values) or len(words) < 2:
        return None
    for value in values:
        # The same command begun and not the same one ended: a piece was lost on the way.
        if value.startswith(words[0]) and value != wanted and len(value) < len(wanted):
            return f"{value[:60]!r} where exactly {wanted[:60]!r} was asked for"
    return None


def _is_slip(word: str, other: str) -> bool:
    """True when `word` is `other` with one inner letter lost, inner letters in another order, or
    the last two swapped."""
    if word[0] != other[0] or word[-1] != other[-1]:
        swapped = word[:-2] + word[:-3:-1] == other
        return swapped and len(word) >= _MIN_SWAPPED and word[0] == other[0]
    if len(word) + 1 == len(other) and len(other) >= 5:
        at = next(
            (i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), len(word)
        )
        return word[at:] == other[at + 1 :]
    return len(word) == len(other) and sorted(word) == sorted(other)
