"""A report as one HTML file that needs nothing else: no network, no other file, no library.

Text from outside goes through `safetext` and then through Jinja2's escaping; the list of records is
JSON whose `<` is spelt out, and the page's script puts it into text nodes only. A content security
policy names the hashes of our one script and one style, so that nothing else could run or load.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from dsv4doctor import __version__
from dsv4doctor.report.book import LATENCIES, RecordBook
from dsv4doctor.report.document import RateTable, Report, Section, Table
from dsv4doctor.report.figures import bars, svg
from dsv4doctor.report.figures.distribution import distribution
from dsv4doctor.report.figures.grid import session_grid
from dsv4doctor.report.figures.timechart import time_chart
from dsv4doctor.report.listing import listing_of
from dsv4doctor.report.marks import FAMILY_MEANINGS, LETTERS, Family, family_of
from dsv4doctor.report.members import mapping
from dsv4doctor.report.wording import LABEL_MEANINGS, count, interval, percent
from dsv4doctor.safetext import block, one_line

if TYPE_CHECKING:
    from jinja2 import Environment, Template
    from markupsafe import Markup

NAME = "html"
SUFFIX = ".html"
_CELL_CHARS = 400
_NOTE_CHARS = 1200
_VERBATIM_CHARS = 360
_COMMAND_CHARS = 2000
# Two texts less alike than this have no differing places: they are different.
_ALIKE = 0.4
# Sections that the page's own tables and figures replace where the records are at hand.
_REPLACED = frozenset({"by_turn", "by_context", "by_kind"})
_RATES = (("response_rate", "responses"), ("session_rate", "sessions"))


def render(report: Report, records: RecordBook | None = None) -> str:
    """The page; with `records` (see `report.book`) also timeline, groups, spread and the list."""
    environment = _environment()
    script, style = _asset(environment, "page.js"), _asset(environment, "page.css")
    page = _template().render(
        report=report,
        version=__version__,
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        rates=_headline_rates(report.data),
        sections=_sections(report, has_records=records is not None),
        records=_record_views(report, records) if records is not None and records.rows else None,
        families=FAMILY_MEANINGS,
        **_NAMES,
    )
    # Lone surrogates have been spelt out where text came in; this is for what they may hide in.
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dsv4doctor.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        line=one_line,
        cell=lambda text: one_line(text, _CELL_CHARS),
        note=lambda text: one_line(text, _NOTE_CHARS),
        command=lambda text: one_line(text, _COMMAND_CHARS),
        verbatim=lambda text: one_line(text, _VERBATIM_CHARS),
        block=block,
        kind=lambda value: type(value).__name__,
        percent=percent,
        count=count,
        interval=lambda rate: interval(rate).partition("interval ")[2],
        level=lambda rate: f"{100 * rate['level']:g} %",
    )
    return environment


@cache
def _template() -> Template:
    return _environment().get_template("page.html.j2")


def _asset(environment: Environment, name: str) -> Markup:
    """A file of the page's own, which is no template and goes in as it is."""
    from markupsafe import Markup

    assert environment.loader is not None
    return Markup(environment.loader.get_source(environment, name)[0])


def _hash(source: str) -> str:
    digest = hashlib.sha256(source.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _headline_rates(data: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    rates = [(name, mapping(data.get(key))) for key, name in _RATES]
    return [(name, rate) for name, rate in rates if rate.get("estimate") is not None]


def _sections(report: Report, *, has_records: bool) -> list[tuple[str, Section]]:
    """The sections to show, each with an id that no other element of the page has."""
    dropped = _REPLACED if has_records else frozenset()
    kept = [section for section in report.sections if section.key not in dropped]
    return [(f"section-{place}", section) for place, section in enumerate(kept, start=1)]


def _record_views(report: Report, records: RecordBook) -> dict[str, Any]:
    """What the template shows of the records: drawings, legend, groups and the list."""
    rows = records.rows
    spread = [
        distribution(name, records.latency[key], mapping(report.data.get(key)))
        for key, name in LATENCIES
    ]
    return {
        "grid": session_grid(rows),
        "time": time_chart(rows, mapping(report.data.get("wedge"))),
        "legend": _legend(records),
        "groups": records.groups,
        "spread": [figure for figure in spread if figure is not None],
        "listing": listing_of(records),
        "labels": sorted({one_line(row.label, 80) for row in rows}),
        "turns": sorted({row.turn for row in rows if row.turn is not None}),
    }


def _legend(records: RecordBook) -> list[tuple[Family, list[tuple[str, str, str]]]]:
    """The families that the run has, each with its (letter, label, meaning)."""
    found: dict[Family, set[str]] = {}
    for row in records.rows:
        found.setdefault(family_of(row), set()).add(row.label)
    return [
        (
            family,
            [
                (LETTERS.get(name, "?"), one_line(name, 80), LABEL_MEANINGS.get(name, ""))
                for name in sorted(found[family])
            ],
        )
        for family in Family
        if family in found
    ]


def _contrast(table: Table, row: Sequence[str]) -> list[Markup] | None:
    """The two last cells with what differs marked, where they are expected beside received."""
    titles = [column.title for column in table.columns[-2:]]
    if titles != ["expected", "received"] or row[-1] == "the same":
        return None
    from difflib import SequenceMatcher

    from markupsafe import Markup, escape

    expected, received = (one_line(cell, _VERBATIM_CHARS) for cell in row[-2:])
    left, right = Markup(), Markup()
    matcher = SequenceMatcher(None, expected, received, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return None
    for what, a, b, c, d in matcher.get_opcodes():
        is_same = what == "equal"
        left += _marked(escape(expected[a:b]), is_same)
        right += _marked(escape(received[c:d]), is_same)
    return [left, right]


def _marked(text: Markup, is_same: bool) -> Markup:
    from markupsafe import Markup

    return text if is_same or not text else Markup("<mark>{}</mark>").format(text)


def _scale(rates: RateTable) -> float:
    return bars.scale_of([row.rate for row in rates.rows])


_NAMES: Mapping[str, Any] = {
    "patterns": svg.patterns,
    "swatch": svg.swatch,
    "rate_bar": bars.rate_bar,
    "scale_of": _scale,
    "contrast": _contrast,
}
