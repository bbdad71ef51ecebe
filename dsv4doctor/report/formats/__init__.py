"""Every format there is. Adding one: write its module (NAME, SUFFIX, render), add it here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsv4doctor.report.document import Report
from dsv4doctor.report.formats import console, html, json, markdown


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """`render` gives the whole text of a report; `suffix` is what a file of it ends with."""

    name: str
    suffix: str
    render: Callable[[Report], str]


FORMATS = tuple(
    Format(name=module.NAME, suffix=module.SUFFIX, render=module.render)
    for module in (console, markdown, json, html)
)
