"""The report's page in a real headless Chromium: silent, alone, searchable, readable by all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from needs import program

from dsv4doctor.flows.report_page import html_page
from dsv4doctor.report.build import build_repro_report
from tests.report.browser import Page, chromium
from tests.report.runs import STARTED_UNIX, failed_record, full_record, large_run, small_run
from tests.report.sample import HOSTILE_TEXTS, summary, wedged_summary
from tests.report.test_html import hostile_report

EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "corrupted.html"
WIDE, NARROW = 1280, 400
PAPER = 794  # A4, in CSS pixels
# What axe calls serious or critical keeps somebody from reading.
GRAVE = {"serious", "critical"}


def wedged_page() -> str:
    """Twelve sessions whose last turn never answers."""
    records = [record for record in small_run(turns=3) if not record["failure"]]
    records += [failed_record(session, 3) for session in range(12)]
    wedge = {**wedged_summary()["wedge"], "since_unix": STARTED_UNIX + 13.0}
    made = build_repro_report("wedged", {**wedged_summary(), "wedge": wedge})
    return html_page(made, records)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Name -> file URL of each page."""
    folder = tmp_path_factory.mktemp("pages")
    many = list(large_run(sessions=1_000, turns=10))
    made = {
        "hostile": html_page(*hostile_report()),
        "wedged": wedged_page(),
        "clean": html_page(build_repro_report("clean", summary()), [full_record(0, 0)]),
        "large": html_page(build_repro_report("corrupted", summary(), examples=many), many),
    }
    for name, page in made.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    urls = {name: (folder / f"{name}.html").as_uri() for name in made}
    return {"example": EXAMPLE.as_uri(), **urls}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    found = program("chromium", package="chromium")
    with chromium(found, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def page(browser: Page) -> Page:
    """The browser's page with nothing said and nothing asked for yet."""
    browser.console.clear()
    browser.requests.clear()
    browser.blocked.clear()
    browser.media(prefers_color_scheme="light")
    return browser


NAMES = ("example", "hostile", "wedged", "clean", "large")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_it_opens_in_silence_and_asks_for_nothing(
    page: Page, pages: dict[str, str], name: str, width: int
) -> None:
    page.open(pages[name], width=width)
    assert page.run("document.readyState") == "complete"
    assert page.console == []
    assert page.requests == [pages[name]]
    # Nothing sticks out: wide tables and drawings scroll in themselves.
    assert page.run("document.documentElement.scrollWidth") <= width


def shown(page: Page) -> list[str]:
    return page.run("[...document.querySelectorAll('#list tbody th')].map((c) => c.textContent)")


def column(page: Page, place: int) -> list[str]:
    return page.run(
        f"[...document.querySelectorAll('#list tbody td:nth-child({place})')]"
        ".map((c) => c.textContent)"
    )


def matches(page: Page) -> int:
    return int(page.run("document.getElementById('shown').textContent").split()[0].replace(",", ""))


def choose(page: Page, field: str, value: str) -> None:
    page.run(
        f"(() => {{ const f = document.getElementById('{field}'); f.value = '{value}';"
        " f.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )


def test_filters_narrow_the_list_and_reset_widens_it(page: Page, pages: dict[str, str]) -> None:
    page.open(pages["example"])
    everything = matches(page)
    assert everything == len(shown(page)) == 80
    choose(page, "which", "corrupted")
    corrupted = matches(page)
    assert 10 < corrupted < 80
    choose(page, "turn", "4")
    assert 0 < matches(page) < corrupted
    assert all(name.endswith("-t04") for name in shown(page))
    choose(page, "session", "3")
    assert matches(page) <= 1
    page.run("document.querySelector('#filter button').click()")
    page.run("new Promise((done) => setTimeout(done))")
    assert matches(page) == everything
    choose(page, "label", "canary_mismatch")
    labels = column(page, 2)
    assert 0 < len(labels) < everything
    assert all(label.startswith("canary_mismatch") for label in labels)


def test_a_typed_search_finds_by_id_and_by_text(page: Page, pages: dict[str, str]) -> None:
    page.open(pages["example"])
    page.type("#search", "S0007-T03")
    assert shown(page) == ["s0007-t03"]
    page.run("document.getElementById('search').value = ''")
    page.type("#search", "no such text anywhere")
    assert shown(page) == []
    assert matches(page) == 0


def test_hostile_text_is_text(page: Page, pages: dict[str, str]) -> None:
    page.open(pages["hostile"])
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.console == []
    assert page.run("document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert page.run("document.scripts.length") == 2
    page.type("#search", "<script>alert(1)</script>")
    assert matches(page) >= 1
    text = page.run("document.querySelector('#list tbody').textContent")
    assert "<script>alert(1)</script>" in text
    assert len(shown(page)) < len(HOSTILE_TEXTS)
    # The policy stops what might slip through all the same.
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=\"http://127.0.0.1:9/x\">')")
    page.run("new Promise((done) => setTimeout(done, 50))")
    assert page.blocked == ["csp"]


def test_the_grid_is_read_by_keyboard(page: Page, pages: dict[str, str]) -> None:
    page.open(pages["example"])
    page.run("document.querySelector('#grid .scroll').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
        page.press(key)
    said = page.run("document.getElementById('grid-status').textContent")
    assert said.startswith("Session 2, turn 1: ")
    page.press("Enter")
    page.run("new Promise((done) => setTimeout(done, 20))")
    assert shown(page) == ["s0002-t01"]
    assert page.run("document.activeElement.id") == "session"


def test_everything_that_scrolls_or_acts_is_reached_by_tab(
    page: Page, pages: dict[str, str]
) -> None:
    page.open(pages["example"], width=NARROW)
    missed = page.run(
        "[...document.querySelectorAll('*')].filter((e) => e.scrollWidth > e.clientWidth + 1"
        " && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) && e.tabIndex < 0)"
        ".map((e) => e.outerHTML.slice(0, 80))"
    )
    assert missed == []
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"


def axe_source() -> str:
    try:
        return (resources.files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        reason = "axe-core-python is missing: install the dev extra"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("example", WIDE, "light"),
        ("example", NARROW, "dark"),
        ("wedged", WIDE, "dark"),
        ("hostile", NARROW, "light"),
    ],
)
def test_axe_finds_nothing_grave(
    page: Page, pages: dict[str, str], name: str, width: int, scheme: str
) -> None:
    source = axe_source()
    page.media(prefers_color_scheme=scheme)
    page.open(pages[name], width=width)
    page.run(f"{source}; null")
    found: list[Any] = page.run(
        "axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map("
        "(v) => [v.impact, v.id, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 120))]))"
    )
    assert [violation for violation in found if violation[0] in GRAVE] == []


def test_dark_mode_is_dark_and_paper_is_white(page: Page, pages: dict[str, str]) -> None:
    page.open(pages["example"])
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.run(colour) == "rgb(255, 255, 255)"
    page.media(prefers_color_scheme="dark")
    assert page.run(colour) != "rgb(255, 255, 255)"
    page.media(media="print", prefers_color_scheme="dark")
    assert page.run(colour) == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.getElementById('filter')).display") == "none"
    page.media(prefers_color_scheme="light")
    assert page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("name", ["example", "hostile"])
def test_nothing_is_cut_off_on_paper(page: Page, pages: dict[str, str], name: str) -> None:
    page.media(media="print")
    page.open(pages[name], width=PAPER)
    assert page.run("document.documentElement.scrollWidth") <= PAPER
    page.media()


def test_a_wedge_stands_out(page: Page, pages: dict[str, str]) -> None:
    page.open(pages["wedged"])
    band = page.run("document.querySelector('rect.wedge').getBoundingClientRect().width")
    chart = page.run("document.querySelector('rect.wedge').closest('svg').clientWidth")
    assert band > chart / 3
    assert "wedged" in page.run("document.querySelector('main').textContent")


def test_ten_thousand_responses_are_listed_page_by_page(page: Page, pages: dict[str, str]) -> None:
    page.open(pages["large"])
    assert matches(page) == 10_000
    assert len(shown(page)) == 100
    page.run("document.getElementById('more').click()")
    assert len(shown(page)) == 200
    choose(page, "order", "e2e_ms")
    times = [float(cell.removesuffix(" ms").replace(",", "")) for cell in column(page, 9)]
    assert times == sorted(times, reverse=True)
