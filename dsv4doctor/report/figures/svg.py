"""Pieces of SVG. Text is escaped here; everything else that goes in is a number or our own word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dsv4doctor.report.marks import Family

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A drawing, what it shows in words for who cannot see it, and facts for the page's script."""

    svg: Markup
    summary: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def drawing(width: float, height: float, parts: Iterable[str], name: str) -> Markup:
    """The `svg` element; `name` is its accessible name."""
    from markupsafe import Markup, escape

    body = "".join(parts)
    return Markup(
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{escape(name)}">{body}</svg>'
    )


def label(x: float, y: float, text: str, anchor: str = "start", style: str = "axis") -> str:
    """Text at a place; `anchor` is start, middle or end."""
    from markupsafe import escape

    return f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str = "rule") -> str:
    """A straight line."""
    return f'<line class="{style}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


class Boxes:
    """Rectangles of one family each, drawn as one path a family: ten thousand stay small."""

    def __init__(self) -> None:
        self._paths: dict[Family, list[str]] = {}

    def add(self, family: Family, x: float, y: float, width: float, height: float) -> None:
        """One rectangle, its upper left corner at (x, y)."""
        self._paths.setdefault(family, []).append(
            f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z"
        )

    def parts(self) -> list[str]:
        """The paths, filled with the page's patterns."""
        return [
            f'<path class="box" fill="url(#pattern-{family})" d="{"".join(self._paths[family])}"/>'
            for family in Family
            if family in self._paths
        ]


# How each family's pattern is drawn over its colour, in a tile of 6 x 6.
_STROKES: Mapping[Family, str] = {
    Family.CLEAN: "",
    Family.NAMED: '<path class="ink" d="M3 2.5v1"/>',
    Family.VALUES: "",
    Family.CALLS: '<path class="ink" d="M0 6L6 0M-1 1L1 -1M5 7L7 5"/>',
    Family.TEXT: '<path class="ink" d="M0 6L6 0M0 0L6 6"/>',
    Family.ENDS: '<path class="ink" d="M0 1.5H6M0 4.5H6"/>',
    Family.FAILURE: '<path class="ink" d="M1.5 0V6M4.5 0V6"/>',
    Family.ABORTED: '<path class="ink" d="M2 3H4"/>',
}


def patterns() -> Markup:
    """The patterns that `Boxes` refers to; once in a page."""
    from markupsafe import Markup

    made = "".join(
        f'<pattern id="pattern-{family}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<rect class="fill-{family}" width="6" height="6"/>{stroke}</pattern>'
        for family, stroke in _STROKES.items()
    )
    return Markup(
        f'<svg class="patterns" width="0" height="0" aria-hidden="true"><defs>{made}</defs></svg>'
    )


def swatch(family: Family, letter: str = "") -> Markup:
    """A cell of the family, for a legend."""
    from markupsafe import Markup

    boxes = Boxes()
    boxes.add(family, 0.5, 0.5, 15, 15)
    text = label(8, 12, letter, "middle", "letter") if letter else ""
    return Markup(
        f'<svg class="swatch" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">'
        f"{''.join(boxes.parts())}{text}</svg>"
    )
