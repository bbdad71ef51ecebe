"""The report of a run: every format against its golden file, and no text in it acts."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from dsv4doctor.finding import Evidence, Finding, Severity
from dsv4doctor.report.build import build_repro_report
from dsv4doctor.report.document import Report
from dsv4doctor.report.examples import worst_examples
from dsv4doctor.report.formats import FORMATS
from dsv4doctor.report.formats.console import print_report
from tests.report.sample import (
    HOSTILE_TEXTS,
    clean_summary,
    hostile_record,
    leak_record,
    record,
    summary,
    wedged_summary,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "report"
FINDING = Finding(
    rule="DSML_LEAK",
    severity=Severity.ERROR,
    title="40 of 341 responses: dsml_leak",
    evidence=(Evidence(where="records.jsonl s0031-t05 content", what="opener"),),
)


def corrupted() -> Report:
    return build_repro_report(
        "corrupted",
        summary(),
        findings=[FINDING],
        examples=[record(), leak_record(), record("s0013-t05")],
        exit_code=1,
    )


def unreachable() -> Report:
    nothing = summary(
        responses=0,
        failures=60,
        by_failure={"connection_error": 60},
        by_label={},
        also_label={},
        by_turn=[],
        by_context=[],
        ttft_ms={"p50": None, "p90": None, "p99": None, "n": 0},
        itl_ms=None,
        e2e_latency_ms=None,
        target={"base_url": "http://gpu7:30000"},
    )
    return build_repro_report("unreachable", nothing, exit_code=3)


REPORTS = {
    "corrupted": corrupted(),
    "clean": build_repro_report("clean", clean_summary(), exit_code=0),
    "wedged": build_repro_report("wedged", wedged_summary(), exit_code=1),
    "unreachable": unreachable(),
}


# The page's look is checked in a browser; its every byte is nobody's business.
@pytest.mark.parametrize("format_", FORMATS[:3], ids=lambda format_: format_.name)
@pytest.mark.parametrize("name", REPORTS)
def test_golden(name: str, format_: Any, update_golden: bool) -> None:
    path = GOLDEN / f"{name}{format_.suffix}"
    text = format_.render(REPORTS[name])
    if update_golden:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_formats_are_all_there() -> None:
    folder = Path(__file__).parents[2] / "dsv4doctor" / "report" / "formats"
    # csv makes tables of records, not of a report; it stands beside.
    assert {format_.name for format_ in FORMATS} | {"__init__", "csv"} == {
        path.stem for path in folder.glob("*.py")
    }


def test_the_json_format_is_the_envelope() -> None:
    document = json.loads(FORMATS[2].render(REPORTS["corrupted"]))
    assert list(document) == [
        "schema_version",
        "dsv4doctor_version",
        "command",
        "verdict",
        "exit_code",
        "findings",
        "repro",
    ]
    assert document["findings"][0]["rule"] == "DSML_LEAK"
    assert document["repro"]["session_rate"]["k"] == 39


def test_a_summary_read_back_from_disk_gives_the_same_report() -> None:
    read = json.loads(json.dumps(dict(REPORTS["clean"].data)))
    again = build_repro_report("clean", read, exit_code=0)
    for format_ in FORMATS:
        assert format_.render(again) == format_.render(REPORTS["clean"])


@pytest.mark.parametrize("verdict", ["corrupted", "clean", "wedged", "undecided", "unreachable"])
@pytest.mark.parametrize("given", [{}, {"by_label": 3, "wedge": [], "target": "x", "ttft_ms": 1}])
def test_a_summary_that_lacks_everything_still_makes_a_report(
    verdict: str, given: dict[str, Any]
) -> None:
    report = build_repro_report(verdict, given, examples=[{"corrupted": True}])
    for format_ in FORMATS:
        assert verdict in format_.render(report)


def hostile_report(text: str) -> Report:
    """`text` wherever a server, a model or a damaged file could put it."""
    short = text[:300]
    broken = summary(
        run_dir=short,
        scenario=short,
        target={
            "base_url": short,
            "engine": short,
            "version": short,
            "model": short,
            "server_args": {short: short, "model_path": text, "kv_cache_dtype": [text]},
        },
        by_label={short: 1, "clean": 3},
        by_failure={short: 1},
        also_label={short: 2},
        by_kind=[{"kind": short, "responses": 1, "corrupted": 1}] * 2,
        notes=[text],
        wedge={"after": text, "detail": text, "probes": {short: text}, "gauges": {short: 1.0}},
        client_lag_ms={short: 1.0},
    )
    return build_repro_report("wedged", broken, examples=[hostile_record(text)])


SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_hostile_text_does_nothing_on_a_terminal(name: str) -> None:
    text = HOSTILE_TEXTS[name]
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True, color_system="truecolor")
    print_report(hostile_report(text), console)
    written = file.getvalue()
    seen = SGR.sub("", written)
    hidden = {c for c in seen if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert hidden <= {"\n"}
    # The only styles are ours, so no text switched a colour on or off.
    assert set(SGR.findall(written)) <= {"\x1b[0m", "\x1b[1m", "\x1b[1;4m", "\x1b[1;31m"}
    assert len(written) < 60_000


def test_rich_markup_is_text() -> None:
    shown = FORMATS[0].render(hostile_report(HOSTILE_TEXTS["markup"]))
    assert "[bold red]x[/bold red] [/] [link=http://evil]y[/link] :smiley:" in shown


@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_hostile_text_does_nothing_in_markdown(name: str) -> None:
    text = HOSTILE_TEXTS[name]
    written = FORMATS[1].render(hostile_report(text))
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = markdown.parse(written)
    kinds = {token.type for token in tokens}
    inside = {child.type for token in tokens for child in token.children or []}
    assert not (kinds | inside) & {"html_block", "html_inline", "link_open", "image", "hr"}
    harmless = markdown.parse(FORMATS[1].render(hostile_report("harmless")))
    assert outline(tokens) == outline(harmless)
    written.encode("utf-8")
    assert len(written) < 60_000


def outline(tokens: list[Any]) -> list[str]:
    """The document's skeleton: what hostile text must not change."""
    return [token.type for token in tokens if token.nesting >= 0 and token.type != "inline"]


@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_hostile_text_survives_json_unchanged(name: str) -> None:
    text = HOSTILE_TEXTS[name]
    document = json.loads(FORMATS[2].render(hostile_report(text)))
    assert document["repro"]["notes"] == [text]


def test_a_terminal_that_knows_no_unicode_gets_escapes(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with path.open("w", encoding="ascii") as file:
        print_report(REPORTS["corrupted"], Console(file=file, width=80))
    assert "\\uff5cDSML\\uff5c" in path.read_text(encoding="ascii")


def test_eighty_columns_are_enough() -> None:
    file = io.StringIO()
    print_report(REPORTS["corrupted"], Console(file=file, width=80))
    lines = file.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines if not line.startswith("  $ "))
    # Commands are never broken, so that they can be copied.
    commands = [line for line in lines if line.startswith("  $ ")]
    assert any(line.endswith("--sessions 60 --turns 6") for line in commands)


def test_the_worst_examples_show_the_gravest_kind_and_no_kind_twice() -> None:
    records = [
        record("a", primary="empty"),
        record("b", primary="canary_mismatch"),
        record("c", primary="canary_mismatch", also=["truncated"]),
        record("d", primary="foreign_content"),
        record("e", primary="clean", corrupted=False),
        record("f", primary="something_new"),
    ]
    assert [chosen["id"] for chosen in worst_examples(records, 3)] == ["d", "c", "a"]
    assert [chosen["id"] for chosen in worst_examples(records, 9)] == ["d", "c", "a", "f", "b"]


@pytest.mark.parametrize(
    ("response", "received"),
    [
        ({"tool_calls": None}, "(no calls)"),
        ({"tool_calls": []}, "(no calls)"),
        ({"tool_calls": [{"function": {"arguments": "{"}}]}, "(arguments are no JSON)"),
        ({"tool_calls": [{"function": {"arguments": "[1]"}}]}, "no JSON object"),
        ({"tool_calls": [{"function": {"arguments": "{}"}}]}, "(no such argument)"),
        ({"tool_calls": [7]}, "no JSON object"),
    ],
)
def test_what_came_instead_of_the_expected_value_is_said(
    response: dict[str, Any], received: str
) -> None:
    canaries = record()["canaries"][1:]
    report = build_repro_report(
        "corrupted", summary(), examples=[record(response=response, canaries=canaries)]
    )
    assert received in FORMATS[1].render(report)


def test_a_passage_is_compared_from_where_it_parts() -> None:
    passage = "The captain painted the gate. " * 20
    broken = passage[:200] + "gate gate gate"
    report = build_repro_report(
        "corrupted",
        summary(),
        examples=[
            record(
                response={"content": broken},
                canaries=[{"label": "x", "value": passage, "planted_turn": 1, "tool": None}],
            )
        ],
    )
    assert "content, from character 200; planted in turn 1" in FORMATS[1].render(report)


def test_times_that_cannot_be_believed_are_marked() -> None:
    shown = FORMATS[0].render(build_repro_report("clean", summary(timings_valid=False)))
    assert "Do not believe these times" in shown
    assert "99th" not in shown
    assert "Under 100 samples p99 is the maximum: whole response." in shown


@pytest.mark.parametrize(
    ("lab", "again"),
    [
        (True, "$ dsv4doctor repro --seed 42 --sessions 60"),
        (
            {"index_k": "bf16", "hicache": True, "faults": ["index-race"], "fixes": []},
            "$ dsv4doctor repro --seed 42 --sessions 60 --turns 6 --context-tokens 2000:9000\n",
        ),
        (
            {
                "index_k": "fp8",
                "hicache": False,
                "faults": ["none", "x y"],
                "fixes": ["index-gate"],
                "switches": [["device-pages", "120"]],
            },
            "$ dsv4doctor repro --lab-index-k fp8 --lab-hicache off --lab-fault none --lab-fault "
            "'x y' --lab-fix index-gate --lab-option device-pages=120 --seed 42 --sessions 60",
        ),
    ],
)
def test_the_lab_is_named_and_its_flags_return_in_the_commands(lab: Any, again: str) -> None:
    target = {"base_url": "http://127.0.0.1:4242", "lab": lab}
    shown = FORMATS[0].render(
        build_repro_report("corrupted", summary(target=target, context_tokens=[2000, 9000]))
    )
    assert "the built-in lab" in shown
    assert again in shown
    assert "--base-url" not in shown


def test_the_labs_suspects_are_changed_one_at_a_time() -> None:
    lab = {"index_k": "bf16", "hicache": True, "faults": ["index-race"], "fixes": []}
    shown = FORMATS[0].render(build_repro_report("corrupted", summary(target={"lab": lab})))
    assert "$ dsv4doctor repro --lab-hicache off --seed 42\n" in shown
    assert "$ dsv4doctor repro --lab-index-k fp8 --seed 42\n" in shown
    assert "$ dsv4doctor repro --lab-fix index-gate --seed 42\n" in shown
