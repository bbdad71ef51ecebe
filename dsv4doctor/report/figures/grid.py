"""Sessions x turns: a cell for each request, a band of rows for as many sessions as fit across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dsv4doctor.report.figures.svg import Boxes, Figure, drawing, label
from dsv4doctor.report.marks import Family, family_of, letter_of
from dsv4doctor.report.rows import Row
from dsv4doctor.units import many

_WIDTH = 960
_LEFT = 34
_TOP = 16
_BAND_GAP = 22
# (at most so many sessions, cell width and height): letters need 11 pixels.
_CELLS = ((400, 15, 16), (1200, 9, 9))
_SMALLEST_CELL = (5, 6)
_LETTER_FROM = 11
# More turns than this are a log, not a conversation; the chart by time shows it.
_MOST_TURNS = 200
_SESSION_TICK = 10


def session_grid(rows: Sequence[Row]) -> Figure | None:
    """The grid; None where rows belong to no session and turn."""
    placed = [
        row for row in rows if row.session is not None and row.turn is not None and row.turn >= 0
    ]
    if not placed:
        return None
    sessions = sorted({row.session for row in placed if row.session is not None})
    turns = 1 + max(row.turn for row in placed if row.turn is not None)
    if turns > _MOST_TURNS:
        return None
    width, height = _cell(len(sessions))
    across = min(len(sessions), (_WIDTH - _LEFT) // width)
    band = turns * height + _BAND_GAP
    place = {session: position for position, session in enumerate(sessions)}
    boxes, letters = _cells(placed, place, (width, height, across), band)
    bands = -(-len(sessions) // across)
    axes = _axes(sessions, turns, (width, height, across))
    summary = _summary(placed, len(sessions), turns)
    parts = [*axes, *boxes.parts(), *letters, _CURSOR]
    return Figure(
        svg=drawing(_LEFT + across * width + 4, bands * band, parts, summary),
        summary=summary,
        facts={
            "left": _LEFT,
            "top": _TOP,
            "cell_width": width,
            "cell_height": height,
            "across": across,
            "band": band,
            "turns": turns,
            "sessions": sessions,
        },
    )


def _cells(
    placed: Sequence[Row], place: Mapping[int, int], cell: tuple[int, int, int], band: int
) -> tuple[Boxes, list[str]]:
    """A box for each row, and its letter where there is room; `cell` is width, height, and how many
    sessions stand side by side."""
    width, height, across = cell
    boxes = Boxes()
    letters = []
    for row in placed:
        assert row.session is not None
        assert row.turn is not None
        down, right = divmod(place[row.session], across)
        x = _LEFT + right * width
        y = _TOP + down * band + row.turn * height
        boxes.add(family_of(row), x, y, width - 1, height - 1)
        if width >= _LETTER_FROM and letter_of(row):
            letters.append(
                label(x + (width - 1) / 2, y + height - 4, letter_of(row), "middle", "letter")
            )
    return boxes, letters


_CURSOR = '<rect class="cursor" id="grid-cursor" x="-99" y="-99" width="0" height="0"/>'


def _cell(sessions: int) -> tuple[int, int]:
    for most, width, height in _CELLS:
        if sessions <= most:
            return width, height
    return _SMALLEST_CELL


def _axes(sessions: Sequence[int], turns: int, cell: tuple[int, int, int]) -> list[str]:
    width, height, across = cell
    band = turns * height + _BAND_GAP
    parts = []
    for first in range(0, len(sessions), across):
        top = _TOP + first // across * band
        step = max(1, -(-turns * 12 // (turns * height)))
        for turn in range(0, turns, step):
            parts.append(label(_LEFT - 4, top + turn * height + height - 2, f"t{turn}", "end"))
        here = sessions[first : first + across]
        every = max(_SESSION_TICK, -(-40 // width))
        for position in range(0, len(here), every):
            parts.append(label(_LEFT + position * width, top - 4, f"s{here[position]}"))
    return parts


def _summary(placed: Sequence[Row], sessions: int, turns: int) -> str:
    corrupted = sum(row.corrupted for row in placed)
    failed = sum(family_of(row) is Family.FAILURE for row in placed)
    return (
        f"{many(sessions, 'session')} across, {many(turns, 'turn')} down: "
        f"{many(corrupted, 'corrupted response')} and {many(failed, 'failure')} "
        f"of {many(len(placed), 'request')}."
    )
