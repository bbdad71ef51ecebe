"""A rate with its interval as one line of text: ├──●──┤ on a scale that all lines share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH = 34
# Ends of the scale that a reader can divide by.
_SCALES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)


def forest_scale(rates: Sequence[Mapping[str, Any]]) -> float:
    """The share at the right end: every interval of a rate with sessions fits."""
    highest = max((rate["high"] for rate in rates if rate["n"]), default=1.0)
    return next((scale for scale in _SCALES if scale >= highest), 1.0)


def forest_line(rate: Mapping[str, Any], scale: float, width: int = WIDTH) -> str:
    """`·` is empty, `●` the estimate; without sessions the line is empty."""
    if rate["estimate"] is None:
        return "·" * width

    def at(share: float) -> int:
        return min(width - 1, round(share / scale * (width - 1)))

    low, high = at(rate["low"]), at(rate["high"])
    cells = ["·"] * width
    cells[low : high + 1] = "─" * (high + 1 - low)
    cells[low], cells[high] = "├", "┤"
    cells[at(rate["estimate"])] = "●"
    return "".join(cells)
