"""Clean text of many kinds and languages stays clean, as content and as an argument of a call."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from detect_injections import called, record
from detect_texts import Piece, clean_pieces

from dsv4doctor.detect import judge
from dsv4doctor.exchange import exchange_from_record
from dsv4doctor.label import Label

CI_PIECES = 1_000
SOAK_PIECES = 20_000
# One alarm in ten thousand, as content and as arguments together.
ALLOWED_SHARE = 1e-4


def alarms(pieces: Iterable[Piece]) -> tuple[int, list[str]]:
    """How many responses were judged, and every alarm with its kind, source and evidence."""
    judged, found = 0, []
    for piece in pieces:
        for made in (record(piece.text), called({"path": "a", "content": piece.text})):
            judgement = judge(exchange_from_record(made))
            judged += 1
            if judgement.primary is not Label.CLEAN:
                what = judgement.evidence[0].what
                found.append(f"{piece.kind} {piece.source}: {judgement.evidence[0].where}: {what}")
    return judged, found


def test_a_thousand_clean_texts() -> None:
    judged, found = alarms(clean_pieces(CI_PIECES))
    assert judged == 2 * CI_PIECES
    assert found == []


@pytest.mark.soak
def test_twenty_thousand_clean_texts() -> None:
    judged, found = alarms(clean_pieces(SOAK_PIECES))
    assert judged == 2 * SOAK_PIECES
    assert len(found) <= ALLOWED_SHARE * judged, "\n".join(found)
