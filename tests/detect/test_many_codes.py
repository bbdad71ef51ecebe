"""The small words of many texts at once are those of each alone, whatever parts them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from dsv4doctor.detect import judge, judge_all
from dsv4doctor.detect.many_codes import Words, words_of, words_of_all
from dsv4doctor.detect.neighbours import codes_of, may_switch, small_words
from dsv4doctor.exchange import exchange_from_record

WORDS = [*small_words(), "worker", "Wächter", "очередь", "設定", "😀", "\ud800"]
# Of more bytes than a key has, and what begins like them.
LONG = ["#" * 8, "#" * 9, "#" * 24, "," * 12, "subscrib", "subscribe", "subscribes", "isations"]
# Every blank that `str.split` knows, one byte or three, and a byte that is none.
PARTS = [chr(c) for c in range(0x3001) if chr(c).isspace()]
PARTS += ["\r\n", "  ", "\0", "\u200b"]


def _of_all(texts: list[str]) -> list[Words]:
    raws = [text.encode("utf-8", "surrogatepass") for text in texts]
    return words_of_all(texts, raws, [True] * len(texts))


def texts(seed: int, count: int = 60) -> list[str]:
    rng = random.Random(seed)
    return [
        "".join(
            rng.choice(LONG if rng.random() < 0.1 else WORDS)
            + (rng.choice(PARTS) if rng.random() < 0.4 else " ")
            for _ in range(rng.randrange(60))
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_many_texts_have_the_codes_of_each(seed: int) -> None:
    many = texts(seed)
    assert sum(map(len, many)) > 3000
    every = _of_all(many)
    for text, words in zip(many, every, strict=True):
        assert words.codes == codes_of(text), text
        assert words.odd == words_of(text).odd, text
        assert words.doubled or not words_of(text).doubled, text
        assert tuple(words.clashes) == words_of(text).clashes, text
        assert not words.clashes or may_switch(words.codes), text


@pytest.mark.parametrize("many", [[], [""], ["", " ", "the of"], ["x" * 5000], ["", "y " * 3000]])
def test_few_texts_and_empty_ones(many: list[str]) -> None:
    every = _of_all(many)
    assert [words.codes for words in every] == [codes_of(text) for text in many]


def test_a_batch_is_judged_as_each_reply_alone() -> None:
    path = Path(__file__).with_name("variants.jsonl")
    exchanges = [
        exchange_from_record(json.loads(line))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    random.Random(1).shuffle(exchanges)
    assert judge_all(exchanges) == [judge(exchange) for exchange in exchanges]
    assert judge_all([]) == []


def test_sound_words_are_cleared() -> None:
    many = ["", "It is said that the end of it was near.", "und die", "the end.\nund die"] * 40
    every = _of_all(many)
    assert not any(words.may_tell for words in every)


@pytest.mark.parametrize("odd", ["then of", "a ing", "the ,, cat", "so so", "the und of mit"])
def test_an_odd_text_among_sound_ones_is_told(odd: str) -> None:
    many = ["the cat sat on the mat"] * 200 + [odd]
    every = _of_all(many)
    assert [words.may_tell for words in every] == [False] * 200 + [True]
    assert words_of(odd).may_tell


def test_the_lines_of_a_clash_are_told_in_characters() -> None:
    sound = "Ein Wächter sieht die Stadt.\n" * 40
    text = f"{sound}\u00a0the und of — für mit\n{sound}"
    many = [text, "the cat sat on the mat", text]
    every = _of_all(many)
    assert [[text[a:b] for a, b in words.clashes] for words in every] == [
        ["the und of — für mit"],
        [],
        ["the und of — für mit"],
    ]


def test_a_word_that_comes_twice_is_told_of_its_own_text() -> None:
    many = ["the cat sat on a mat"] * 200 + [
        "the cat cat sat",
        "dog",
        "cat 1 1 ; ;",
        "x \x00 Ab Ab",
    ]
    every = _of_all(many)
    assert [words.doubled for words in every] == [False] * 200 + [True, False, False, True]
    assert [words_of(text).doubled for text in many[200:]] == [True, False, False, True]
