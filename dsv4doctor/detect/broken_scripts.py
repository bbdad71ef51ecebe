"""Scripts that break into a sentence, and whether they are somebody's style.

Words of several writing systems spliced into one sentence, foreign words glued where nobody glues,
and small words that join Latin ones.
Source: https://github.com/vllm-project/vllm/pull/41834,
https://github.com/sgl-project/sglang/issues/33397.
"""

from __future__ import annotations

import regex

from dsv4doctor.detect.detector import span
from dsv4doctor.detect.joints import joints
from dsv4doctor.detect.lands import named_lands
from dsv4doctor.detect.listing import speaks_of_words
from dsv4doctor.detect.quoting import NOWHERE, quoted_spans
from dsv4doctor.detect.request import speaks_of_languages
from dsv4doctor.detect.scripts import Splice, families_in, is_among_its_own, letters_of, splices
from dsv4doctor.detect.signs import holds_any
from dsv4doctor.detect.subject import Subject
from dsv4doctor.detect.wedges import wedges

# Foreign families spliced into one text. Three unrelated scripts in one sentence are nobody's
# style; two need more than one word each; one needs several words and a request that knows nothing
# of it.
FAMILIES_SURE = 3
_SPLICES_TWO_FAMILIES = 3
_SPLICES_ONE_FAMILY = 3
# The same for words with no blank before or after: nobody glues two of a script that the request
# does not know into words of another.
_GLUED_ONE_FAMILY = 2
# English function words (and a suffix piece) standing alone among ideographs: no loan words.
_IDEOGRAPH = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Extended_Pictographic}]"
_STRAYS = ("the", "which", "of", "ing", "tion", "that", "was", "were", "with")
_STRAY = regex.compile(rf"(?<={_IDEOGRAPH}[ ]?)(?:{'|'.join(_STRAYS)})(?=[ ]?{_IDEOGRAPH})")
_MIN_STRAYS = 2
# Letters of a family from which a text is written in it too.
_ESTABLISHED = 120
_ALPHABETS = frozenset({"Cyrillic", "Greek", "Georgian", "Armenian", "Hebrew", "Arabic"})
# Families whose letters are two bytes of UTF-8, the others' three; and the share of a text's
# characters from which such letters carry it.
_TWO_BYTES = frozenset({"Cyrillic", "Greek", "Arabic", "Hebrew", "Armenian", "Syriac", "Thaana"})
_CARRIES_TWO_BYTES = 0.5
_CARRIES_THREE_BYTES = 0.35
# Foreign words that are looked at, at each end of a text with more: what surrounds one costs more
# than finding it.
_MOST_SPLICES = 500
# A language named this near a foreign word explains it.
_NAMED_WITHIN = 48
# Ranges of letters, as a class of characters has them; so many near a letter, and how near.
_RANGE = regex.compile(r"[^\W\d_a-zA-Z]-[^\W\d_a-zA-Z]")
_MIN_RANGES, _RANGES_WITHIN = 3, 40


def broken_scripts(subject: Subject, prose: str) -> str | None:
    """What breaks into the prose, with the place; None for scripts that may be meant."""
    if holds_any(prose, _STRAYS) and len(strays := _STRAY.findall(prose)) >= _MIN_STRAYS:
        return f"English function words among ideographs: {strays[:4]}"
    carrier, every = splices(prose)
    if len(every) > 2 * _MOST_SPLICES:
        every = every[:_MOST_SPLICES] + every[-_MOST_SPLICES:]
    found = tuple(
        s
        for s in every
        if not _is_letter(s)
        and not speaks_of_languages(around(prose, s.start, s.end))
        and not is_among_its_own(prose, s)
        and not _is_range(prose, s)
    )
    families = _broken_by(subject, prose, carrier, found) if found else set[str]()
    if not families and (alone := _wedged(subject, prose, every) or _joined(subject, prose, every)):
        found, families = alone, {splice.family for splice in alone}
    # Where the land of a script is spoken of, its words name dishes, streets and people.
    if families - named_lands(f"{subject.prompt}\n{prose}", families):
        where = span(prose, max(0, found[0].start - 16), found[0].end + 16)
        return f"words of {', '.join(sorted(families))} spliced into {carrier}, {where}"
    return None


def _wedged(subject: Subject, prose: str, every: tuple[Splice, ...]) -> tuple[Splice, ...]:
    """Words glued where nobody glues, of scripts that the request does not know."""
    if not subject.prompt:
        return ()
    known = families_in(subject.prompt)
    found = [*wedges(prose, [s for s in every if s.family not in known])]
    quoted = quoted_spans(prose) if found else NOWHERE
    return tuple(
        s
        for s in found
        if not quoted.covers(s.start)
        and not speaks_of_languages(_line_around(prose, s))
        and not is_among_its_own(prose, s)
    )


def _joined(subject: Subject, prose: str, every: tuple[Splice, ...]) -> tuple[Splice, ...]:
    """Small words of scripts that the request does not know, where nothing is said of words."""
    if not subject.prompt:
        return ()
    known = families_in(subject.prompt)
    found = [*joints(prose, [s for s in every if s.family not in known])]
    if not found or speaks_of_languages(prose) or speaks_of_words(prose):
        return ()
    quoted = quoted_spans(prose)
    return tuple(s for s in found if not quoted.covers(s.start))


def _line_around(prose: str, splice: Splice) -> str:
    """What of its own line stands beside a foreign word."""
    start, end = splice.start, splice.end
    before = prose[max(0, start - _NAMED_WITHIN) : start].rpartition("\n")[2]
    return before + prose[start : end + _NAMED_WITHIN].partition("\n")[0]


def _is_range(prose: str, splice: Splice) -> bool:
    """True in a class of characters: `[ؠ-يٮٯٱ-ۓەۥ]`."""
    start, end = max(0, splice.start - _RANGES_WITHIN), splice.end + _RANGES_WITHIN
    return len(_RANGE.findall(prose, start, end)) >= _MIN_RANGES


def _is_letter(splice: Splice) -> bool:
    """True for one letter of an alphabet by itself: a preposition, a name of a thing."""
    return splice.end - splice.start == 1 and splice.family in _ALPHABETS


def established(prose: str, families: set[str]) -> set[str]:
    """The families that a long text is also written in."""
    return {family for family in families if letters_of({family}, prose) >= _ESTABLISHED}


def is_at_home(subject: Subject, foreign: frozenset[str], prose: str) -> bool:
    """True where the one script beside Latin carries the text, or may be the person's own."""
    if "CJK" in foreign and holds_any(prose, _STRAYS) and _STRAY.search(prose):
        return False
    beyond = len(prose.encode("utf-8", "surrogatepass")) - len(prose)
    if foreign & _TWO_BYTES:
        carries = beyond > _CARRIES_TWO_BYTES * len(prose)
    else:
        carries = beyond > 2 * _CARRIES_THREE_BYTES * len(prose)
    return carries or not subject.prompt or bool(foreign & families_in(subject.prompt))


def around(prose: str, start: int, end: int) -> str:
    """What stands beside a foreign word: where its language is named, the word is talked about."""
    return prose[max(0, start - _NAMED_WITHIN) : end + _NAMED_WITHIN]


def _by_line(prose: str, found: tuple[Splice, ...]) -> list[list[Splice]]:
    lines: dict[int, list[Splice]] = {}
    for splice in found:
        lines.setdefault(prose.count("\n", 0, splice.start), []).append(splice)
    return list(lines.values())


def _broken_by(subject: Subject, prose: str, carrier: str, found: tuple[Splice, ...]) -> set[str]:
    """The families whose words break into the text; none where it may be somebody's style."""
    inside = [splice for splice in found if splice.between or splice.glued]
    families = {splice.family for splice in inside}
    for line in _by_line(prose, tuple(inside)):
        if len({splice.family for splice in line}) >= FAMILIES_SURE:
            return families
    own = established(prose, {s.family for s in found})
    known = families_in(subject.prompt) | own
    for line in _by_line(prose, found):
        every = {splice.family for splice in line}
        # One word beside those of a script that the text is written in too is a slip.
        if every & own and sum(splice.family not in own for splice in line) == 1:
            continue
        surprising = bool(subject.prompt) and not every & known
        if len(every) >= 2 and len(line) >= (2 if surprising else _SPLICES_TWO_FAMILIES + 1):
            return every
    surprising = bool(subject.prompt) and not families & known
    between = sum(splice.between for splice in inside)
    few = _SPLICES_ONE_FAMILY if carrier == "Latin" else 2
    torn = sum(splice.glued for splice in inside) if between else 0
    if not surprising or (between < few and torn < _GLUED_ONE_FAMILY):
        return set()
    # Somebody's own bilingual text has that script elsewhere too, on lines of its own.
    spliced = sum(s.end - s.start for s in inside)
    return families if letters_of(families, prose) <= 2 * spliced else set()
