"""The small words of many texts at once are those of each alone, whatever parts them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from dsv4doctor.detect import judge, judge_all
from dsv4doctor.detect.many_codes import codes_of_all
from dsv4doctor.detect.neighbours import codes_of, small_words
from dsv4doctor.detect.signs import signs_of
from dsv4doctor.exchange import exchange_from_record

WORDS = [*small_words(), "worker", "Wächter", "очередь", "設定", "😀", "\ud800"]
# Of more bytes than a key has, and what begins like them.
LONG = ["#" * 8, "#" * 9, "#" * 24, "," * 12, "subscrib", "subscribe", "subscribes", "isations"]
# Every blank that `str.split` knows, one byte or three, and a byte that is none.
PARTS = [chr(c) for c in range(0x3001) if chr(c).isspace()]
PARTS += ["\r\n", "  ", "\0", "\u200b"]


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
    every = codes_of_all(many, [signs_of(text) for text in many])
    for text, codes in zip(many, every, strict=True):
        assert codes == codes_of(text), text


@pytest.mark.parametrize("many", [[], [""], ["", " ", "the of"], ["x" * 5000], ["", "y " * 3000]])
def test_few_texts_and_empty_ones(many: list[str]) -> None:
    every = codes_of_all(many, [signs_of(text) for text in many])
    assert every == [codes_of(text) for text in many]


def test_a_batch_is_judged_as_each_reply_alone() -> None:
    path = Path(__file__).with_name("variants.jsonl")
    exchanges = [
        exchange_from_record(json.loads(line))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    random.Random(1).shuffle(exchanges)
    assert judge_all(exchanges) == [judge(exchange) for exchange in exchanges]
    assert judge_all([]) == []
