"""Sessions over time: a bar from sending to the last byte; a wedge or a burst stands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.report.figures.svg import Boxes, Figure, drawing, label, line
from dsv4doctor.report.marks import Family, family_of
from dsv4doctor.report.members import number
from dsv4doctor.report.rows import Row
from dsv4doctor.units import many

_WIDTH = 960
_LEFT = 56
_RIGHT = 12
_STRIP = 56  # height of the strip of corrupted replies a slice of time
_STRIP_BINS = 96
_STACKED = (Family.FAILURE, Family.VALUES, Family.CLEAN)
_LABEL_WIDTH = 170
_GAP = 20
_MOST_HEIGHT = 460
_ROW_HEIGHT = 8.0
_TICK_SECONDS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600)
_MOST_TICKS = 10


def time_chart(rows: Sequence[Row], wedge: Mapping[str, Any]) -> Figure | None:
    """The chart; None where no row says when it was sent."""
    timed = [row for row in rows if row.sent_unix is not None and row.end_unix is not None]
    if not timed:
        return None
    start = min(row.sent_unix for row in timed if row.sent_unix is not None)
    end = max(row.end_unix for row in timed if row.end_unix is not None)
    seconds = max(end - start, 1e-3)
    lanes = {lane: place for place, lane in enumerate(sorted({_lane(row) for row in timed}))}
    tall = min(_ROW_HEIGHT, _MOST_HEIGHT / len(lanes))
    top = _STRIP + _GAP
    bottom = top + tall * len(lanes)
    scale = (_WIDTH - _LEFT - _RIGHT) / seconds
    parts = _axis(seconds, scale, bottom)
    since = number(wedge.get("since_unix"))
    if since is not None:
        parts += _wedge_band(max(0.0, since - start) * scale, seconds * scale, bottom)
    boxes = Boxes()
    for row in timed:
        assert row.sent_unix is not None
        assert row.end_unix is not None
        x = _LEFT + (row.sent_unix - start) * scale
        width = max(0.6, (row.end_unix - row.sent_unix) * scale - 0.5)
        y = top + lanes[_lane(row)] * tall
        boxes.add(family_of(row), x, y, width, max(0.5, tall - (1.0 if tall > 3 else 0.0)))
    parts += boxes.parts()
    parts += _strip(timed, start, seconds)
    parts.append(label(_LEFT - 6, top + 9, "sessions", "end"))
    summary = _summary(timed, seconds, since is not None)
    return Figure(svg=drawing(_WIDTH, bottom + 24, parts, summary), summary=summary)


def _lane(row: Row) -> tuple[int, str]:
    return (-1, row.id) if row.session is None else (row.session, "")


def _axis(seconds: float, scale: float, bottom: float) -> list[str]:
    step = next((tick for tick in _TICK_SECONDS if seconds / tick <= _MOST_TICKS), seconds / 5)
    parts = []
    for tick in range(int(seconds / step) + 1):
        x = _LEFT + tick * step * scale
        parts.append(line(x, _STRIP, x, bottom))
        parts.append(label(x, bottom + 16, f"{tick * step:g} s", "middle" if tick else "start"))
    return parts


def _wedge_band(left: float, right: float, bottom: float) -> list[str]:
    width = max(2.0, right - left)
    at_left = width < _LABEL_WIDTH
    place = left - 4 if at_left else left + 4
    told = "wedged: no token from here on"
    return [
        f'<rect class="wedge" x="{_LEFT + left:.1f}" y="{_STRIP}" width="{width:.1f}" '
        f'height="{bottom - _STRIP:.1f}"/>',
        label(_LEFT + place, _STRIP + 14, told, "end" if at_left else "start", "axis strong"),
    ]


def _strip(rows: Sequence[Row], start: float, seconds: float) -> list[str]:
    """Requests a slice of time by when they ended: what was wrong of them stands at the bottom."""
    # From the bottom up: failed, corrupted, clean.
    stacks = [[0, 0, 0] for _ in range(_STRIP_BINS)]
    for row in rows:
        family = family_of(row)
        if row.end_unix is None or family is Family.ABORTED:
            continue
        place = min(_STRIP_BINS - 1, int((row.end_unix - start) / seconds * _STRIP_BINS))
        stacks[place][0 if family is Family.FAILURE else 1 if row.corrupted else 2] += 1
    most = max(map(sum, stacks)) or 1
    width = (_WIDTH - _LEFT - _RIGHT) / _STRIP_BINS
    boxes = Boxes()
    for place, stack in enumerate(stacks):
        floor = float(_STRIP)
        for family, size in zip(_STACKED, stack, strict=True):
            tall = _STRIP * size / most
            floor -= tall
            if size:
                boxes.add(family, _LEFT + place * width, floor, width - 1, tall)
    return [
        line(_LEFT, _STRIP, _WIDTH - _RIGHT, _STRIP),
        label(_LEFT - 6, 10, f"{most}", "end"),
        label(_LEFT - 6, _STRIP, "ended", "end"),
        *boxes.parts(),
    ]


def _summary(rows: Sequence[Row], seconds: float, wedged: bool) -> str:
    lanes = len({_lane(row) for row in rows})
    said = f"{many(len(rows), 'request')} of {many(lanes, 'session')} over {seconds:.1f} seconds"
    return f"{said}; the server was wedged in the end." if wedged else f"{said}."
