"""Clean texts with one fault put in are told from clean ones; recall per kind."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from detect_injections import Injection, injections
from detect_lab import FAULTS, lab_share
from detect_rows import ROWS
from detect_texts import Piece, clean_pieces

from dsv4doctor.detect import judge
from dsv4doctor.detect.periods import tail_period, tail_share
from dsv4doctor.exchange import exchange_from_record

SAMPLES = 300
TEXTS = 900
KINDS = injections()


def usable(piece: Piece) -> bool:
    """A text whose own tail already repeats is set apart, and one with code quotes: a fault that
    lands inside them is a quotation."""
    body = piece.text[:1500].rstrip()
    return (
        tail_period(body, tail_share(body)) is None and " " in piece.text and "`" not in piece.text
    )


def recall(injection: Injection, texts: list[str], samples: int, seed: int = 0) -> float:
    """The share of samples that carry the injection's label, primary or not."""
    rng = random.Random(f"{seed}-{injection.name}")
    texts = [text for text in texts if injection.takes(text)]
    hits = 0
    for _ in range(samples):
        made = injection.make(rng.choice(texts), rng)
        hits += injection.label in [
            label.value for label in judge(exchange_from_record(made)).labels
        ]
    return hits / samples


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [piece.text for piece in clean_pieces(TEXTS, seed=1) if usable(piece)]


@pytest.mark.soak
@pytest.mark.parametrize("injection", KINDS, ids=lambda i: i.name)
def test_recall(injection: Injection, texts: list[str]) -> None:
    assert recall(injection, texts, SAMPLES) >= injection.floor


def test_every_row_of_what_surfaces_has_its_injections() -> None:
    names = {injection.name for injection in KINDS}
    named = {name for *_, stands in ROWS if not isinstance(stands, str) for name in stands}
    assert named <= names


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lab")


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS)
def test_replies_of_a_sick_lab_are_told_from_those_of_the_healthy_one(
    fault: str, runs: Path
) -> None:
    share = lab_share(fault, runs)
    assert share.damaged > 0
    assert share.alarms == 0
    assert share.recall >= 0.95, share.missed
