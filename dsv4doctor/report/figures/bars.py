"""A rate as a bar with its interval as a whisker, for a cell of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

_WIDTH = 110
_HEIGHT = 18
_MIDDLE = 9
# A table of tiny rates is drawn wide; below this the whole bar would be noise.
_LEAST_SCALE = 0.001
_SCALES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)


def scale_of(rates: Sequence[Mapping[str, Any]]) -> float:
    """The share at the right end of the bars: the estimates fit, and most of the intervals.

    A group of two responses has an interval up to one; it must not flatten all the others.
    """
    highest = max((rate["estimate"] or 0.0 for rate in rates), default=0.0)
    wide = sorted(rate["high"] for rate in rates)
    typical = wide[len(wide) // 2] if wide else 0.0
    wanted = max(_LEAST_SCALE, highest, typical)
    return next((scale for scale in _SCALES if scale >= wanted), 1.0)


def rate_bar(rate: Mapping[str, Any], scale: float) -> Markup:
    """The bar; an arrow's head stands where the interval runs out of it. Numbers stand beside."""
    from markupsafe import Markup

    def at(share: float) -> float:
        return 1 + min(1.0, share / scale) * (_WIDTH - 8)

    low, high = at(rate["low"]), at(rate["high"])
    parts = [f'<line class="rule" x1="1" y1="1" x2="1" y2="{_HEIGHT - 1}"/>']
    if rate["estimate"] is not None:
        width = at(rate["estimate"]) - 1
        parts.append(f'<rect class="bar" x="1" y="4" width="{width:.1f}" height="10"/>')
    parts.append(
        f'<path class="whisker" d="M{low:.1f} {_MIDDLE}H{high:.1f}M{low:.1f} 5v8'
        + (f'M{high - 4:.1f} 5l4 4l-4 4"/>' if rate["high"] > scale else f'M{high:.1f} 5v8"/>')
    )
    return Markup(
        f'<svg class="rate" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )
