"""Small words of many languages in a row are told; who speaks two, or lists them, is not."""

from __future__ import annotations

import random

import pytest
from builders_detect import reply

from dsv4doctor.detect import judge
from dsv4doctor.detect.neighbours import codes_of, may_switch
from dsv4doctor.detect.tongues import classes, foreign_words, languages_of

SALAD = (
    "aber nous hvis dos przez quando het",
    "wurde pelo och dalla when już elle sobre",
    "naar jest avec fenêtre quando wird och ]] cuando",
    "essere ikke because dengan sont wurde",
)
SOUND = (
    "Je travaille in the cloud team et je dois faire le review des PR before the sprint ends.",
    "El worker se para because the lease expired, así que reinicia el service y listo.",
    "Das ist ja ein nice to have, but der Kunde wants it, also machen wir es and then we ship.",
    "Juan de la Cruz, Ludwig van der Rohe, Maria dos Santos and Leonardo da Vinci are on the list.",
    "We watched La vie en rose, Das Boot, Il Postino and El laberinto del fauno at the cinema.",
    "| en | de | fr | es |\n|---|---|---|---|\n| the | der | le | el |\n| no | nein | non | no |",
    "Hallo zusammen / Bonjour à tous / Hello everyone: die Sitzung ist am Montag / la réunion est"
    " lundi / the meeting is on Monday.",
    "Le fichier est dans le dossier de la machine et vous pouvez le lire avec une commande.",
    "Plik jest na dysku i nie można go otworzyć, ale można go przeczytać przez sieć.",
)


@pytest.mark.parametrize("salad", SALAD)
def test_small_words_of_many_languages_are_told(salad: str) -> None:
    text = f"The service reads its file.\n{salad}\nIt then waits."
    labels = judge(reply(text, prompt="Please go on.")).labels
    assert "token_salad" in [label.value for label in labels]


@pytest.mark.parametrize("text", SOUND)
def test_two_languages_names_and_lists_are_sound(text: str) -> None:
    assert judge(reply(text, prompt="Please go on.")).primary.value == "clean"


def test_the_gate_lets_nothing_by_that_its_classes_tell() -> None:
    rng = random.Random(3)
    every = [(languages, sorted(words)) for languages, words in classes()]
    for _ in range(300):
        (one, first), (other, second) = rng.sample(every, 2)
        text = f"{rng.choice(first)} {rng.choice(second)}"
        if one & other:
            continue
        assert may_switch(codes_of(text)), text


def test_words_that_two_languages_share_are_of_both() -> None:
    assert {"de", "nl"} <= languages_of("der")
    assert {"es", "pt"} <= languages_of("para")
    assert languages_of("wolke") == frozenset()


def test_a_long_row_of_two_languages_takes_linear_time() -> None:
    assert len(list(foreign_words("the die of der " * 20_000))) == 1
