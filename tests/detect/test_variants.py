"""Variants of every public kind of case, on both sides: what a person would call each reply.

The kinds are those of the public corpus, the forms are others; the files `variants*.jsonl` hold one
record a line in the contract's form, with its `name` and the `label` that is due.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsv4doctor.detect import judge
from dsv4doctor.exchange import exchange_from_record

FILES = sorted(Path(__file__).parent.glob("variants*.jsonl"))
VARIANTS: list[dict[str, Any]] = [
    json.loads(line) for file in FILES for line in file.read_text(encoding="ascii").splitlines()
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: ascii(v["name"]).strip("'"))
def test_variant(variant: dict[str, Any]) -> None:
    asked = {key: value for key, value in variant.items() if key not in ("name", "label")}
    judgement = judge(exchange_from_record(asked))
    assert judgement.primary.value == variant["label"], judgement.evidence


def test_clean_and_corrupt_ones_are_there() -> None:
    clean = sum(variant["label"] == "clean" for variant in VARIANTS)
    assert clean >= 100
    assert len(VARIANTS) - clean >= 200
