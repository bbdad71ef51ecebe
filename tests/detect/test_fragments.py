"""Small words in an order that no grammar allows, where little else is odd."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import pytest
from builders_detect import labels, reply

FIRES = {
    "small words with closers that close nothing": "The pool is full.\na of) to Wolke Wolke Suppe ___",
    "a closer and a dash": "The pool is full.\nthe of) by half-- is to Suppe",
    "pairs of two languages that share a word": "The pool is full.\na row les dans nicht lamp Suppe",
    "an article of a third language beside them": "The pool is full.\nSuppe the Suppe les mit the --",
    "two words of two languages in a third's clause": "The pool is full.\nvoor um que mas como where he be",
}
QUIET = {
    "a closer that closes": "Name what it is made of (or whom it is the son of) and the list, which (and) is part of the set.",
    "a closer far behind": "Say which (of the many workers that the pool consists of) is the one that ran.",
    "Dutch": "Vanaf nu moet je dit steeds herhalen als je de tekst wilt zien, en nu je het weet ook elders.",
    "Czech": "Poslední den letních prázdnin sem se probudil jako domácí vězeň, on sám a ten přední.",
    "Romanian": "Datele meta în sine nu par a fi licențiate sub o licență permisivă.",
    "a name": "For a name like von Braun or della Robbia, coming at the start of a sentence, see below.",
    "two languages": "He said that wir nicht weiter can do this, and that is what he meant.",
}


@pytest.mark.parametrize("text", FIRES.values(), ids=FIRES)
def test_salad_fires(text: str) -> None:
    assert labels(reply(text, prompt="Please go on.")) == ["token_salad"]


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
def test_sentences_stay_quiet(text: str) -> None:
    assert labels(reply(text, prompt="Please go on.")) == ["clean"]
