"""The page as text: whole, alone, labelled, and harmless whatever the records hold."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4doctor.flows.report_page import html_page
from dsv4doctor.report.build import build_repro_report
from dsv4doctor.report.document import Report
from dsv4doctor.report.formats import html
from dsv4doctor.report.generic import build_generic_report
from tests.report.runs import full_record, hostile_run, large_run, small_run
from tests.report.sample import clean_summary, hostile_record, summary, wedged_summary
from tests.report.test_rows import ANYTHING, MEMBERS

# What a page of ours may fetch: nothing.
FETCHES = ("src", "href", "action", "data", "poster", "srcset", "xlink:href")
MOST_BYTES = 15_000_000


class Outline(HTMLParser):
    """Elements, ids, references and the text outside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._raw = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in {"script", "style"}:
            self._raw = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._raw:
            self._raw = ""

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.text.append(data)


def outline(page: str) -> Outline:
    parsed = Outline()
    parsed.feed(page)
    parsed.close()
    return parsed


def corrupted(records: list[dict[str, Any]]) -> Report:
    return build_repro_report("corrupted", summary(), examples=records, exit_code=1)


def hostile_report() -> tuple[Report, list[dict[str, Any]]]:
    records = hostile_run()
    poison = "\x1b[2J<script>alert(1)</script>\u202e'\"><img src=x onerror=alert(1)>"
    made = build_repro_report(
        "corrupted",
        summary(
            target={"base_url": poison, "engine": poison, "server_args": {"model_path": poison}},
            notes=[poison],
            scenario=poison,
            by_kind=[{"kind": poison, "responses": 1, "corrupted": 1}] * 2,
        ),
        findings=[
            {"rule": poison, "severity": "error", "title": poison, "remedy": poison,
             "evidence": [{"where": poison, "what": poison}]}
        ],
        examples=[hostile_record(poison), *records],
    )  # fmt: skip
    return made, records


PAGES = {
    "corrupted": html_page(corrupted(small_run()), small_run()),
    "clean": html_page(build_repro_report("clean", clean_summary()), [full_record(0, 0)]),
    "wedged": html_page(build_repro_report("wedged", wedged_summary()), small_run()),
    "no records": html.render(build_repro_report("unreachable", {})),
    "generic": html.render(
        build_generic_report("bench", "worse", {"levels": [{"a": 1}, {"b": None}], "x": {"y": 2}})
    ),
    "hostile": html_page(*hostile_report()),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_refers_to_nothing_outside_itself(name: str) -> None:
    seen = outline(PAGES[name])
    for tag, attributes in seen.elements:
        for attribute in FETCHES:
            value = attributes.get(attribute)
            is_ours = value is None or value == "data:," or value.startswith("#")
            assert is_ours, (tag, attribute, value)
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert "style" not in attributes
    assert not re.search(r"url\((?!#)|@import", PAGES[name].split("</style>")[0])


@pytest.mark.parametrize("name", PAGES)
def test_ids_are_unique_and_what_is_referred_to_is_there(name: str) -> None:
    seen = outline(PAGES[name])
    ids = Counter(a["id"] for _, a in seen.elements if "id" in a)
    assert not [found for found, times in ids.items() if times > 1]
    for _, attributes in seen.elements:
        for reference in ("aria-labelledby", "aria-describedby"):
            assert attributes.get(reference) is None or attributes[reference] in ids
        target = attributes.get("href") or ""
        assert not target.startswith("#") or target[1:] in ids


@pytest.mark.parametrize("name", PAGES)
def test_a_screen_reader_finds_its_way(name: str) -> None:
    seen = outline(PAGES[name])
    tags = Counter(tag for tag, _ in seen.elements)
    assert tags["main"] == tags["h1"] == tags["header"] == tags["footer"] == 1
    assert tags["nav"] == 1
    assert tags["caption"] == tags["table"]
    assert all("scope" in attributes for tag, attributes in seen.elements if tag == "th")
    for tag, attributes in seen.elements:
        if tag == "svg":
            is_named = attributes.get("role") == "img" and attributes.get("aria-label")
            assert is_named or attributes.get("aria-hidden") == "true"
        if tag == "html":
            assert attributes["lang"] == "en"
    assert seen.elements[[tag for tag, _ in seen.elements].index("body") + 1][1]["href"] == "#main"


def test_hostile_text_makes_no_element_and_hides_nothing() -> None:
    page = PAGES["hostile"]
    tags = Counter(tag for tag, _ in outline(page).elements)
    assert tags["script"] == 2
    assert not tags["img"]
    # Escapes, bidi controls, joiners, lone surrogates: all of them are spelt out.
    hidden = re.compile(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
    )
    assert not hidden.search(page)
    page.encode("utf-8")
    assert "\\x1b[2J" in page
    assert "\\u202e" in page


def test_a_line_of_a_megabyte_costs_little() -> None:
    assert len(PAGES["hostile"]) < 400_000


def test_the_policy_names_the_one_script_and_the_one_style() -> None:
    page = PAGES["corrupted"]
    policy = next(a["content"] for _, a in outline(page).elements if a.get("http-equiv"))
    assert policy is not None
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert f"script-src '{html._hash(script)}'" in policy
    assert f"style-src '{html._hash(style)}'" in policy
    assert "default-src 'none'" in policy


def test_the_list_cannot_end_its_element() -> None:
    data = PAGES["hostile"].partition('id="record-data">')[2].partition("</script>")[0]
    assert "<" not in data
    rows = json.loads(data)["rows"]
    assert len(rows) == len(hostile_run())
    assert any("<script>" in row[-1] for row in rows)


def test_ten_thousand_responses_stay_under_15_mb() -> None:
    records = list(large_run(sessions=1_000, turns=10))
    assert len(records) == 10_000
    assert len(html_page(corrupted(records), records).encode()) < MOST_BYTES


@settings(deadline=None, max_examples=40)
@given(changes=st.dictionaries(MEMBERS, ANYTHING, max_size=6))
def test_any_record_makes_a_page(changes: dict[str, Any]) -> None:
    records = [{**full_record(0, 0), **changes}, full_record(1, 0)]
    assert html_page(corrupted(records), records).startswith("<!doctype html>")
