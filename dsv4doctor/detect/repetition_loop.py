"""Output that goes round in circles to its very end.

Seen: the tail of a text is one unit over and over (a character, a word, a phrase, a paragraph), or
a template with changing nouns or numbers until the budget is gone; the whole answer comes twice;
blanks and line breaks fill the budget; or one call, or one round of a list's items, is issued many
times.
Why: a model that attends to the wrong entries falls into loops, and a loop costs the whole budget.
It must stay collapsed to the end: songs, tables and logs repeat and recover.
Confirm: count distinct 8-grams per window along the text; a healthy long answer does not collapse.
Compare output lengths per arm: loops show as a mean near `max_tokens`.
Source: https://github.com/sgl-project/sglang/issues/33397,
https://github.com/sgl-project/sglang/issues/36179,
https://github.com/MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark/pull/113.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

from dsv4doctor.detect.counting import counts_on
from dsv4doctor.detect.detector import Detector, Seen, span
from dsv4doctor.detect.periods import (
    Period,
    novelty,
    tail_period,
    tail_share,
    words_of,
)
from dsv4doctor.detect.request import asks_for_repetition
from dsv4doctor.detect.rounds import (
    CJK,
    is_carried_out,
    is_fill,
    is_list,
    is_sentence,
    is_statement,
    is_wordy,
    words_in,
)
from dsv4doctor.detect.subject import Call, Subject, Text
from dsv4doctor.detect.twofold import blank_flood, given_twice
from dsv4doctor.label import Label

# Shorter texts cannot hold eight rounds of anything that is not laughter.
_MIN_CHARS = 22
# Identical calls in one reply: agents retry two or three times, never five at once.
MIN_SAME_CALLS = 5
# Items of one list, words or objects, that are the same at its end; how deep lists are looked for.
_MIN_SAME_ITEMS = 48
_LIST_DEPTH = 6
# Items that take turns in such a loop.
_LONGEST_ROUND = 4
# A flood that takes this share of the text is what the reply is.
LEADING_SHARE = 0.3
# A finished number with a period that never ends, as division gives it.
_DECIMALS = re.compile(r"\d[.,]\d{0,38}$")
# Nothing that people write is closed so many times in a row.
_CLOSERS = "}])>;, \t\r\n"
_MANY_CLOSERS = 60
_DIGIT = re.compile(r"[0-9]")
# Words of a dump or of colours: one digit of hex again and again, or digits among the letters.
_HEX_ROW = re.compile(r"(?i:\s*(?:([0-9a-f])\1+|(?=[a-f]*\d)[0-9a-f]{2,})\b)+\s*")
# A whole line of base64 or hex, and what the next one has of it so far.
_TWO_LINES_CHARS = 160
_ENCODED_LINE = re.compile(r"[A-Za-z0-9+/]{60,}\n?[A-Za-z0-9+/]*\Z")
_LAUGHTER = re.compile(
    r"(?:[hjx]+[aeiou]+|[aeiou]*[hmz]+|l[ao]+|n[oa]+|哈|呵|嘿|ㅋ|ㅎ|w|5)+[\s,!.-]*", re.IGNORECASE
)
# Words that make a sentence of a row of words, in the languages that write with blanks.
_GLUE_WORDS = (
    "the a an is are was were be been to of in on at it its that this then so but and or if "
    "not no i i'll we you will because before after again now must should may can for with "
    "from as by le la les un une et est de des que ne pas je il dans pour si mais der die das "
    "und ist nicht ich ein eine zu mit wenn dann aber es el los y en se una por pero o и в не "
    "на что я он это то если но как а с по e di che non per ma è da não um uma"
)
_GLUE = frozenset(_GLUE_WORDS.split())
# Blanks that set columns apart.
_COLUMN_GAP = "   "
_TEMPLATE_TAIL = 4200
_TEMPLATE_MIN_WORDS = 120
_TEMPLATE_WINDOW_WORDS = 420
# Slots of a template are words rarer than this share of the commonest sentence's rounds, or that
# come again within this share of the words looked at and no further.
_SLOT_SHARE, _SLOT_REACH = 0.3, 0.3
_KEPT_SHARE = 0.6
_TEMPLATE_NOVELTY = 0.28
_GLUE_SHARE = 0.2
_COLLAPSED_NOVELTY = 0.12
# One ideograph says as much as two letters.
_CJK_WEIGHT = 2
_WHOLE_SHARE = 0.95
_NOTHING_ELSE = 1000
# A passage of this many characters is a paragraph; a reply of nothing but three of it is a loop.
_LONG_UNIT = 100
# Rounds after which a line of words is a loop even where code or data may repeat.
_MANY_LINES = 60
_MANY_WORDS_CHARS = 400
# Brackets, quotes and the like in running prose stay below this share of its characters.
_MARKS_SHARE = 0.04
_NOTATION = b'<>{}[]()=;_|/\\"'
# A run that is this share of what was written is not what the reply is about: it is the reply.
_MOST = 0.85
# Compressed below this share a tail is worth the slow look.
_COMPRESSIBLE = 0.32


def detect(subject: Subject) -> Iterator[Seen]:
    if subject.calls:
        yield from _same_calls(subject)
        yield from _same_items(subject)
    cut = subject.is_cut
    for text in subject.free_texts:
        if len(text.text) < _MIN_CHARS:
            continue
        body = text.text.rstrip()
        share = tail_share(body)
        period = tail_period(body, share)
        # The prompt is read only where it matters.
        if (
            period
            and _is_flood(period, text, cut=cut, asked=False)
            and _is_flood(period, text, cut=cut, asked=asks_for_repetition(subject))
        ):
            yield _flood(text, period, cut=cut)
            return
        what = None if text.in_call else blank_flood(text, body) or given_twice(subject, text)
        if what:
            yield Seen(label=Label.REPETITION_LOOP, where=text.where, what=what)
            return
        if cut and not text.in_call and (counted := counts_on(text.text, subject.prompt)):
            yield Seen(label=Label.REPETITION_LOOP, where=text.where, what=counted)
            return
        if share > _COMPRESSIBLE:
            continue
        # What is asked for is written into the answer; thoughts have no refrain.
        asked = text.where != "reasoning_content" and asks_for_repetition(subject)
        if not asked and (what := _collapse(text, cut=cut)):
            yield Seen(label=Label.REPETITION_LOOP, where=text.where, what=what)
            return


def _same_calls(subject: Subject) -> Iterator[Seen]:
    if len(subject.calls) < MIN_SAME_CALLS:
        return
    counts = Counter((call.name, _key(call)) for call in subject.calls)
    (name, arguments), count = counts.most_common(1)[0]
    if count >= MIN_SAME_CALLS:
        what = f"the same call {count} times in one reply: {name} {arguments[:60]}"
        yield Seen(label=Label.REPETITION_LOOP, where="tool_calls", what=what)


def _same_items(subject: Subject) -> Iterator[Seen]:
    for call in subject.calls:
        for items in _lists(call.arguments.value):
            last = items[-1]
            telling = len(last) >= 2 if isinstance(last, str) else isinstance(last, dict) and last
            round_ = 1 if all(item == last for item in items[-_MIN_SAME_ITEMS:]) else _round(items)
            if telling and round_:
                if asks_for_repetition(subject):
                    return
                unit = str(last) if round_ == 1 else str(items[-round_:])
                what = f"{_MIN_SAME_ITEMS} items and more go round: {unit[:60]!r}"
                yield Seen(label=Label.REPETITION_LOOP, where=f"{call.where}.arguments", what=what)
                return


def _round(items: list[object]) -> int:
    """How many items come again and again to the end of a list of words that began without them;
    0 where none do. What alternates from its first item on may be meant."""
    tail = items[-_MIN_SAME_ITEMS:]
    for size in range(2, _LONGEST_ROUND + 1):
        unit = items[-size:]
        if tail[size:] == tail[:-size] and all(isinstance(item, str) for item in unit):
            return size if any(item not in unit for item in items[:_MIN_SAME_ITEMS]) else 0
    return 0


def _lists(value: object, depth: int = 0) -> Iterator[list[object]]:
    """Every list in `value` long enough to end in a loop."""
    if isinstance(value, list) and len(value) >= _MIN_SAME_ITEMS:
        yield value
    if isinstance(value, dict | list) and depth < _LIST_DEPTH:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _lists(item, depth + 1)


def _key(call: Call) -> str:
    """The arguments as a text in which the order of keys says nothing."""
    value, raw = call.arguments.value, call.call.arguments
    if isinstance(value, dict) and value:
        return json.dumps(value, default=str, sort_keys=True)
    return raw if isinstance(raw, str) else json.dumps(raw, default=str)


def _flood(text: Text, period: Period, *, cut: bool) -> Seen:
    # In a call it is what the cut and the broken object come from.
    fills = period.covered >= LEADING_SHARE * len(text.text)
    leads = fills and (text.where == "content" or (cut and text.in_call))
    what = (
        f"{period.repeats} rounds of {period.unit[:40]!r} to the end,"
        f" {span(text.text, period.start, period.start + period.covered)}"
    )
    return Seen(label=Label.REPETITION_LOOP, where=text.where, what=what, leads=leads)


def _is_flood(period: Period, text: Text, *, cut: bool, asked: bool) -> bool:
    if cut:
        return _is_cut_flood(period, text, asked=asked)
    return not asked and _is_ended_flood(period, text)


def _is_cut_flood(period: Period, text: Text, *, asked: bool) -> bool:
    """Whether the rounds of a reply that did not end by itself are more than data cut off."""
    unit, repeats, covered = period.unit, period.repeats, period.covered
    if is_wordy(unit) and not is_list(unit):
        seen = covered * (_CJK_WEIGHT if CJK.match(unit) else 1)
        return (repeats >= 6 and seen >= 24) or (repeats >= 3 and covered >= 300)
    if repeats >= _MANY_CLOSERS and not text.in_call and not unit.strip(_CLOSERS):
        return bool(unit.strip())
    lines = repeats * max(1, unit.count("\n"))
    if lines >= _MANY_LINES and not asked and is_statement(unit):
        return True
    in_code = text.code.covers(period.start + covered - 1)
    if not (asked or in_code or is_fill(unit)):
        return repeats >= 12 and covered >= 60
    if asked or in_code:
        return False
    # Nothing but fill from its first character to the cut was never meant as data.
    whole = covered >= _WHOLE_SHARE * len(text.text) and not text.in_call
    if whole and repeats >= 60 and covered >= 200:
        return True
    most = covered >= 1000 or covered >= _MOST * len(text.text)
    return most and repeats >= 100 and _glued(period, text)


def _is_ended_flood(period: Period, text: Text) -> bool:
    """Whether the rounds with which a finished reply ends are a loop and nothing meant."""
    unit, repeats, covered = period.unit, period.repeats, period.covered
    whole = covered >= _WHOLE_SHARE * len(text.text)
    if whole and len(unit) == 1 and repeats >= _NOTHING_ELSE and not text.in_call:
        return True
    # Letters and digits in one piece are a stretch of encoded bytes, not a word.
    before = text.text[max(0, period.start - _TWO_LINES_CHARS) : period.start]
    encoded = (
        " " not in unit and unit.isascii() and (_DIGIT.search(unit) or _ENCODED_LINE.search(before))
    )
    wordy = is_wordy(unit) and not (is_list(unit) or encoded or _HEX_ROW.fullmatch(unit))
    in_code = text.code.covers(period.start + covered - 1)
    # Tables of values are long and even; in code only what is carried out is a loop.
    done = text.in_call or (in_code and is_carried_out(unit))
    if repeats >= _MANY_LINES and done and is_statement(unit):
        return True
    if text.in_call and covered < _MANY_WORDS_CHARS and not is_sentence(unit):
        # Files of one instruction or one word a line are made on purpose.
        return False
    if in_code or (text.in_call and not wordy):
        return wordy and repeats >= 12 and covered >= 400 and is_sentence(unit)
    if wordy:
        if _LAUGHTER.fullmatch(unit.strip()):
            return covered >= 200
        if repeats >= 8 and covered >= 22:
            return True
        # Of lines of a log, of markup and of options some are the same.
        if _is_notation(unit) or _COLUMN_GAP in unit.strip():
            return False
        if len(unit) >= _LONG_UNIT and whole:
            return repeats >= 3
        # Catalogues and logs say a line four times.
        return repeats >= (5 if "\n" in unit else 4) and len(unit) >= 60
    if text.where == "reasoning_content" and repeats >= 12 and covered >= 400:
        # Sums weigh more than words in a thought that goes round.
        return is_statement(unit) and words_in(unit) >= 3
    if unit.isdigit() and _DECIMALS.search(text.text[max(0, period.start - 40) : period.start]):
        return False
    return repeats >= 64 and not is_fill(unit) and _glued(period, text)


def _glued(period: Period, text: Text) -> bool:
    """True when the run hangs on to prose instead of standing on a line of its own."""
    before = text.text[max(0, period.start - 1) : period.start]
    return period.start > 0 and before not in ("\n", "")


def _collapse(text: Text, *, cut: bool) -> str | None:
    tail = text.text[-_TEMPLATE_TAIL:]
    if _is_ideographic(tail):
        return _character_collapse(tail, cut=cut)
    if _is_notation(tail):
        return None
    # A counter hides a loop only where the budget ran out; a finished list may well count.
    words = words_of(tail, fold_digits=cut)[-_TEMPLATE_WINDOW_WORDS:]
    if len(words) < _TEMPLATE_MIN_WORDS:
        return None
    glue = sum(map(_GLUE.__contains__, words)) / len(words)
    if glue < _GLUE_SHARE:
        return None
    if (share := novelty(words, 8)) <= _COLLAPSED_NOVELTY:
        return f"only {share:.0%} of the last {len(words)} words' 8-grams are new"
    if not cut and text.where != "reasoning_content":
        return None
    kept = _without_slots(words)
    if len(kept) >= _KEPT_SHARE * len(words) and (share := novelty(kept, 5)) <= _TEMPLATE_NOVELTY:
        return f"a template with changing words: {share:.0%} of its 5-grams are new, to the end"
    return None


def _is_ideographic(tail: str) -> bool:
    """True where ideographs, of three bytes each, are more than 0.4 of the characters."""
    beyond = len(tail.encode("utf-8", "surrogatepass")) - len(tail)
    return beyond > 0.8 * len(tail) and len(CJK.findall(tail)) > 0.4 * len(tail)


def _is_notation(tail: str) -> bool:
    """True for markup and code, whose templates are no loops: marks outweigh what prose has."""
    raw = tail.encode("utf-8", "surrogatepass")
    return len(raw) - len(raw.translate(None, _NOTATION)) > _MARKS_SHARE * len(tail)


def _without_slots(words: list[str]) -> list[str]:
    counts = Counter(words)
    # The sixth commonest word stands for how often the template came round.
    rounds = sorted(counts.values(), reverse=True)[min(5, len(counts) - 1)]
    floor = max(4, rounds * _SLOT_SHARE)
    first, last = dict[str, int](), dict[str, int]()
    for at, word in enumerate(words):
        first.setdefault(word, at)
        last[word] = at
    # A noun may come several times in its round, and in no other.
    reach = _SLOT_REACH * len(words)
    return [w for w in words if counts[w] >= floor and last[w] - first[w] >= reach]


def _character_collapse(tail: str, *, cut: bool) -> str | None:
    folded = re.sub(r"[\d\s]+", "0", tail)
    size = 12
    total = len(folded) - size + 1
    if total < 200:
        return None
    share = len({folded[at : at + size] for at in range(total)}) / total
    limit = 0.3 if cut else _COLLAPSED_NOVELTY
    return f"only {share:.0%} of the last {total} 12-grams are new" if share <= limit else None


DETECTOR = Detector(
    label=Label.REPETITION_LOOP,
    summary="output that repeats itself to its very end, or one call many times",
    detect=detect,
)
