"""How latencies are spread: counts in logarithmic bins, the corrupted replies' part hatched."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dsv4doctor.report.figures.svg import Boxes, Figure, drawing, label, line
from dsv4doctor.report.histogram import BINS_PER_DECADE, LEAST_MS, Histogram, edge_ms
from dsv4doctor.report.marks import Family
from dsv4doctor.report.members import number
from dsv4doctor.report.wording import count, milliseconds
from dsv4doctor.units import many

_WIDTH = 460
_HEIGHT = 150
_LEFT = 44
_TOP = 22
_FLOOR = _HEIGHT - 24
_FEW_TICKS_FACTOR = 1000.0
_LEAST_BINS = BINS_PER_DECADE  # a spread of less than a decade is shown as one


def distribution(name: str, histogram: Histogram, quantiles: Mapping[str, Any]) -> Figure | None:
    """The histogram with the summary's p50 and p99 marked; None over no samples."""
    if not histogram.samples:
        return None
    first = min(histogram.bins) - 1
    last = max(max(histogram.bins) + 1, first + _LEAST_BINS)
    width = (_WIDTH - _LEFT - 8) / (last - first + 1)
    most = max(sum(pair) for pair in histogram.bins.values())
    boxes = Boxes()
    for index, (clean, corrupted) in histogram.bins.items():
        x = _LEFT + (index - first) * width
        tall = (_FLOOR - _TOP) * clean / most
        wrong = (_FLOOR - _TOP) * corrupted / most
        if clean:
            boxes.add(Family.CLEAN, x, _FLOOR - wrong - tall, width - 0.5, tall)
        if corrupted:
            boxes.add(Family.VALUES, x, _FLOOR - wrong, width - 0.5, wrong)
    parts = [*boxes.parts(), line(_LEFT, _FLOOR, _WIDTH - 8, _FLOOR)]
    parts.append(label(_LEFT - 4, _TOP + 8, count(most), "end"))
    for value in _ticks(edge_ms(first), edge_ms(last + 1)):
        x = _LEFT + (BINS_PER_DECADE * math.log10(value) - first) * width
        parts += [line(x, _FLOOR, x, _FLOOR + 4), label(x, _FLOOR + 18, _tick(value), "middle")]
    for point, row in (("p50", 10), ("p99", 20)):
        marked = number(quantiles.get(point))
        if marked is not None:
            x = _LEFT + (BINS_PER_DECADE * math.log10(max(marked, LEAST_MS)) - first) * width
            parts += [line(x, row + 2, x, _FLOOR, "mark"), label(x - 3, row, point, "end")]
    summary = _summary(name, histogram, quantiles)
    return Figure(svg=drawing(_WIDTH, _HEIGHT, parts, summary), summary=summary)


def _ticks(low: float, high: float) -> list[float]:
    """Round values from `low` to `high`: decades, and 2 and 5 between where they are few."""
    steps = (1, 2, 5) if high / low < _FEW_TICKS_FACTOR else (1,)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return [value for value in values if low <= value <= high]


def _tick(value: float) -> str:
    if value <= LEAST_MS:
        return f"≤ {LEAST_MS:g} ms"
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def _summary(name: str, histogram: Histogram, quantiles: Mapping[str, Any]) -> str:
    points = ", ".join(
        f"{point} {milliseconds(number(quantiles.get(point)))}" for point in ("p50", "p90", "p99")
    )
    return f"{name}: {many(histogram.samples, 'sample')}, {points}."
