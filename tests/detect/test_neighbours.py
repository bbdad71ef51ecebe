"""Small words side by side: the gate over bytes lets nothing by that the patterns would find."""

from __future__ import annotations

import random

import pytest

from dsv4doctor.detect.neighbours import (
    SUFFIXES,
    codes_of,
    holds_odd_pair,
    holds_run,
    may_switch,
    odd_pairs,
)
from dsv4doctor.detect.neighbours_table import WORDS
from dsv4doctor.detect.periods import recurs
from dsv4doctor.detect.switches import FUNCTION_WORDS, switches

SOUND = {
    "english": "the queue waits for one worker and then it is held by the lease of another",
    "german": "der Dienst wird nicht gestartet und die Datei ist auf dem Server",
    "french": "les fichiers sont dans le dossier et vous pouvez les lire avec une commande",
    "portuguese": "o processo não está em uma das filas e você pode ver mais dos registos",
    "dutch": "het hangt af van de gebruikte media en u sluit anders af met de optie",
}
ODD = ("then of", "los dans", "which los", "pour was", "the the", "a tion of it", "the ) of")


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND.keys())
def test_sound_sentences_hold_no_odd_pair(text: str) -> None:
    assert not holds_odd_pair(codes_of(text))
    assert list(odd_pairs(text)) == []


@pytest.mark.parametrize("text", ODD)
def test_odd_pairs_are_held(text: str) -> None:
    assert holds_odd_pair(codes_of(f"Take {text} away"))


def test_one_byte_a_word() -> None:
    assert len(codes_of("one two\nthree  four\tfive")) == 5
    assert codes_of("zebra quokka") == b"\0\0"
    assert holds_run(codes_of("a ,,, b"))
    assert not holds_run(codes_of("a,,, b"))
    assert all(holds_odd_pair(codes_of(f"a {suffix} b")) for suffix in SUFFIXES)


def test_the_gates_let_nothing_by() -> None:
    rng = random.Random(7)
    small = [*WORDS.split(), *" ".join(FUNCTION_WORDS.values()).split(), "worker", "Zeile", "x1"]
    for _ in range(500):
        text = " ".join(rng.choices(small, k=12))
        if list(odd_pairs(text)):
            assert holds_odd_pair(codes_of(text)), text
        if list(switches(text)):
            assert may_switch(codes_of(text)), text


@pytest.mark.parametrize("unit", ["the ", "Run it. ", "请稍等。", "step one, step two; "])
def test_the_tail_of_a_loop_always_recurs(unit: str) -> None:
    assert recurs("A sound beginning of the answer, which says what it has to say. " + unit * 300)
