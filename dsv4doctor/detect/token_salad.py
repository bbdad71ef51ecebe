"""Text that is no language: wrong scripts, wrong bytes, pieces of a vocabulary.

Seen: words of several writing systems spliced into one sentence, replacement characters and
mojibake, control or unassigned characters, runs of unrelated symbols, sentence fragments and word
pieces that no grammar allows, letters where their script forbids them or where no language strings
them together, ideographs and syllables that nobody writes, words doubled one after another, English
without its blanks, the words of the request misspelt in a call and names altered in it.
Why: attention that reads wrong entries, or a broken detokenizer, degrades words first.
Confirm: repeat the request at temperature 0, alone: a model fault comes back, a cache fault does
not.
Source: https://github.com/vllm-project/vllm/pull/41834,
https://github.com/sgl-project/sglang/issues/33397,
https://github.com/vllm-project/vllm/issues/28830.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import regex

from dsv4doctor.detect.broken_scripts import (
    around,
    broken_scripts,
    established,
    is_at_home,
)
from dsv4doctor.detect.characters import (
    BLOCKS,
    ODD_SIGN,
    PICTURE,
    STREWN_SIGN,
    TORN_SIGN,
)
from dsv4doctor.detect.detector import Detector, Seen, span
from dsv4doctor.detect.doubled_words import doubled_words
from dsv4doctor.detect.drawn_words import unlikely_row
from dsv4doctor.detect.encodings import REPLACEMENT, TORN_RUN, broken_characters
from dsv4doctor.detect.fragments import debris
from dsv4doctor.detect.glued_words import glued_words
from dsv4doctor.detect.hints import hint
from dsv4doctor.detect.letters import ALPHABETS
from dsv4doctor.detect.many_letters import suspects
from dsv4doctor.detect.misspelling import misspelt
from dsv4doctor.detect.mixed_words import ALPHABETS_TOUCH, mixed_words
from dsv4doctor.detect.orthography import misspelt_script
from dsv4doctor.detect.quoting import NOWHERE, Spans, quoted_spans
from dsv4doctor.detect.rare_characters import rare_run
from dsv4doctor.detect.request import (
    asks_for_languages,
    asks_for_nonsense,
    speaks_of_languages,
)
from dsv4doctor.detect.scripts import (
    families_in,
    families_of,
)
from dsv4doctor.detect.strewn import pictures_in_words, strewn_symbols
from dsv4doctor.detect.subject import Subject, Text
from dsv4doctor.detect.symbols import MIN_BLOCKS, MIN_DISTINCT, ODD, symbol_noise
from dsv4doctor.detect.torn_names import TORN_NAME, torn_names
from dsv4doctor.detect.wordless import MARKS_OF_NOTHING, wordless
from dsv4doctor.label import Label

# A word beyond Latin right before a number, as in `x = 的3`: each by itself is somebody's name for
# a variable or a numbered thing, several of unrelated scripts are nobody's.
_GLUED = regex.compile(r"(?<![\p{L}\p{M}\d_.])(?!\p{Latin})\p{L}{1,3}(?=\d)")
_BESIDE_DIGITS = frozenset({"Latin", "Greek"})
_GLUED_FAMILIES = 2
_MIN_GLUED = 3
_MAX_GLUED = 200
_MANY_CHARACTERS = frozenset({"CJK", "Hangul"})
_JSON = regex.compile(r"\s*[\[{]\s*[\[{\"]")
# Letters of Sorani Kurdish alone, whose vowels are written: no table of Arabic's letters fits it.
_SORANI = frozenset("ۆێڕڵ")
# Kinds of broken characters that no quotation holds all at once.
_KINDS_NOT_QUOTED = 3
# Names of tools and of paths are looked at whole: one glued foreign letter is one too many.
_ENCODING_TALK = (
    "U+FFFD",
    "utf-8",
    "utf8",
    "latin-1",
    "mojibake",
    "encoding",
    "cp1252",
    "iso-8859",
    "unicode",
    "replacement char",
)

_ANY_SYMBOL = BLOCKS | ODD_SIGN | STREWN_SIGN | PICTURE
# All that can be broken in plain ASCII.
_CONTROLS = hint(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
# A text with several of them is about names of hosts; one may stand in any salad.
_PUNYCODE = "xn--"
_MIN_PUNYCODE = 3


def detect(subject: Subject) -> Iterator[Seen]:
    for text in subject.free_texts:
        yield from _odd_characters(subject, text)
        yield from _odd_words(subject, text)
    for call in subject.calls:
        if call.name and not call.name.isascii() and len(families_in(call.name)) > 1:
            yield Seen(
                label=Label.TOKEN_SALAD,
                where=f"{call.where}.name",
                what=f"a name in two scripts: {call.name!r}",
            )
    if what := misspelt(subject):
        yield Seen(label=Label.TOKEN_SALAD, where="tool_calls", what=what)


def _odd_characters(subject: Subject, text: Text) -> Iterator[Seen]:
    if not text.text.isascii():
        if text.kinds & TORN_SIGN or text.hints & TORN_RUN:
            yield from _bytes(subject, text)
        yield from _beyond_ascii(subject, text)
    elif text.hints & _CONTROLS:
        yield from _bytes(subject, text)


def _odd_words(subject: Subject, text: Text) -> Iterator[Seen]:
    if text.hints & MARKS_OF_NOTHING and text.where == "content" and not text.code:
        heap = wordless(text.prose)
        if heap and not asks_for_nonsense(subject):
            yield _seen(text, f"numbers and marks without a word, {span(text.prose, *heap)}")
    drawn = _drawn_row(text, subject.prompt)
    if drawn and not asks_for_nonsense(subject):
        yield _seen(text, f"letters no language strings together, {span(text.prose, *drawn)}")
    glued = glued_words(text) if text.where == "content" else None
    if glued and not _asks_for_no_blanks(subject.prompt):
        yield _seen(text, f"sentences without blanks, {span(text.prose, *glued)}")
    twice = doubled_words(text)
    if twice and not asks_for_nonsense(subject):
        yield _seen(text, f"words doubled one after another, {span(*twice)}")
    what = debris(text)
    if what is not None and not asks_for_nonsense(subject):
        yield _seen(text, what)


def _asks_for_no_blanks(prompt: str) -> bool:
    """True where somebody wants the blanks out, or words made one: a hashtag, an address."""
    lowered = prompt.lower()
    return any(word in lowered for word in ("space", "blank", "hashtag", "one word", "slug"))


def _beyond_ascii(subject: Subject, text: Text) -> Iterator[Seen]:
    # Names of hosts in Punycode stand beside their spellings in any script, lawful or not.
    named = text.text.count(_PUNYCODE) >= _MIN_PUNYCODE
    foreign = frozenset() if named else text.prose_families - {"Latin"}
    yield from _scripts(subject, text, foreign)
    torn = torn_names(text, subject.prompt) if text.hints & TORN_NAME and text.code else None
    if torn and not asks_for_languages(subject):
        yield _seen(text, f"ideographs within names, {span(text.text, *torn)}")
    # Cyrillic beside Latin is in any such word.
    touching = "Cyrillic" in foreign and text.prose_hints & ALPHABETS_TOUCH
    mixed = mixed_words(text.prose) if touching else None
    if mixed and not asks_for_languages(subject):
        yield _seen(text, f"two alphabets within words, {span(text.prose, *mixed)}")
    breach = misspelt_script(text.prose, foreign) if foreign else None
    if breach and not asks_for_nonsense(subject):
        yield _seen(text, f"spellings no script allows, {span(text.prose, *breach)}")
    rare = rare_run(text.prose, text.prose_signs) if foreign & _MANY_CHARACTERS else None
    if rare and not asks_for_languages(subject) and not _is_quoted(text, rare):
        yield _seen(text, f"characters nobody writes, {span(text.prose, *rare)}")
    yield from _before_digits(subject, text)
    noise = _noise(text) if text.prose_kinds & _ANY_SYMBOL else None
    noise = None if noise and asks_for_languages(subject) else noise
    if noise and not speaks_of_languages(around(text.prose, *noise)):
        yield _seen(text, f"unrelated symbols, {span(text.prose, *noise)}")


def _noise(text: Text) -> tuple[int, int] | None:
    """Where symbols that have nothing to do with each other stand together."""
    prose, kinds = text.prose, text.prose_kinds
    found = strewn_symbols(prose, text.prose_signs) if kinds & STREWN_SIGN else None
    if found is None and kinds & PICTURE:
        found = pictures_in_words(prose)
    if found is not None:
        return found
    several = (kinds & BLOCKS).bit_count() >= MIN_BLOCKS
    if several or (kinds & ODD_SIGN and len(text.prose_signs & ODD) >= MIN_DISTINCT):
        return symbol_noise(prose)
    return None


def _is_quoted(text: Text, place: tuple[int, int]) -> bool:
    return quoted_spans(text.prose).covers(place[0])


def _drawn_row(text: Text, prompt: str) -> tuple[int, int] | None:
    """Where a row of words is drawn from nothing, in whatever alphabet; None in a quotation."""
    is_plain = text.text.isascii()
    if is_plain and not text.odd_places:
        return None
    row = unlikely_row(text.prose, text.odd_places, prompt) if text.odd_places else None
    if row is None and not is_plain:
        for script in sorted(text.prose_families & ALPHABETS.keys() - {"Latin"}):
            if script == "Arabic" and not text.prose_signs.isdisjoint(_SORANI):
                continue
            row = row or unlikely_row(text.prose, suspects(text.prose, script), prompt)
    return None if row and _is_quoted(text, row) else row


def _before_digits(subject: Subject, text: Text) -> Iterator[Seen]:
    """Letters of several scripts glued before numbers: in code too, where nothing else is odd."""
    if len(text.families - _BESIDE_DIGITS) < _GLUED_FAMILIES:
        return
    found = list(islice(_GLUED.finditer(text.text), _MAX_GLUED))
    families = families_of(m.group()[0] for m in found) - _BESIDE_DIGITS
    # What the text is written in numbers its chapters so: `제3항`.
    if len(families - established(text.text, set(families))) < _GLUED_FAMILIES:
        return
    if len(found) >= _MIN_GLUED and not asks_for_languages(subject):
        yield _seen(text, f"foreign letters before numbers, {span(text.text, *found[0].span())}")


def _bytes(subject: Subject, text: Text) -> Iterator[Seen]:
    quoted: Spans | None = None
    excused = set[str]()
    for what, start, end in broken_characters(text.text, text.signs):
        piece = text.text[start:end]
        if text.code.covers(start) or piece in subject.prompt:
            continue
        if quoted is None:
            # The marks of an answer in JSON quote nothing.
            is_json = text.where == "content" and _JSON.match(text.text) is not None
            quoted = NOWHERE if is_json else quoted_spans(text.text)
            if _talks_of_encodings(subject.prompt):
                return
        at_cut = (
            subject.finish in ("length", None)
            and text.text.rstrip(REPLACEMENT + " \n")[start:] == ""
        )
        if piece == REPLACEMENT and (at_cut or "U+FFFD" in text.text):
            continue
        # A quotation shows one kind of damage; salad has quotation marks of its own.
        if quoted.covers(start) and len(excused | {what}) < _KINDS_NOT_QUOTED:
            excused.add(what)
            continue
        yield _seen(text, f"{what}, {span(text.text, max(0, start - 8), end + 8)}")
        return


def _talks_of_encodings(prompt: str) -> bool:
    lowered = prompt.lower()
    return any(word.lower() in lowered for word in _ENCODING_TALK)


def _scripts(subject: Subject, text: Text, foreign: frozenset[str]) -> Iterator[Seen]:
    prose = text.prose
    if not foreign or (len(foreign) == 1 and is_at_home(subject, foreign, prose)):
        return
    what = broken_scripts(subject, prose)
    if what is not None and not asks_for_languages(subject):
        yield _seen(text, what)


def _seen(text: Text, what: str) -> Seen:
    return Seen(label=Label.TOKEN_SALAD, where=text.where, what=what)


DETECTOR = Detector(
    label=Label.TOKEN_SALAD,
    summary="wrong scripts, wrong bytes, pieces of a vocabulary",
    detect=detect,
)
