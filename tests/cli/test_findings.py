"""Findings on the console: nothing in them acts, and what belongs to one stands below it."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from dsv4doctor.cli.app import main
from dsv4doctor.cli.findings import print_finding
from dsv4doctor.finding import Evidence, Finding, Severity
from tests.report.sample import HOSTILE_TEXTS


def printed(finding: Finding, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, highlight=False)
    print_finding(console, finding, mark="critical", aside="SG-03 (reported)")
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_evidence_and_remedy_stand_further_in_on_every_line() -> None:
    long = "a word after another " * 20
    evidence = (Evidence(where="a.log:7", what=long),)
    finding = Finding(
        rule="R", severity=Severity.ERROR, title="a title", evidence=evidence, remedy=long
    )
    head, *below = printed(finding)
    assert head == "critical SG-03 (reported) a title"
    assert len(below) > 10
    assert all(line.startswith("    ") and cell_len(line) <= 80 for line in below)


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_hostile_text_is_shown_and_does_nothing(text: str) -> None:
    evidence = (Evidence(where=text, what=text),)
    finding = Finding(rule="R", severity=Severity.INFO, title=text, evidence=evidence, remedy=text)
    lines = printed(finding)
    assert len(lines) < 120
    assert all(character.isprintable() for line in lines for character in line)


def test_markup_in_a_models_name_is_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    launch = "python -m sglang.launch_server --model-path '[/red]DeepSeek-V4-Flash'"
    with pytest.raises(SystemExit):
        main(["size", "--launch", launch])
    assert capsys.readouterr().out.startswith("[/red]DeepSeek-V4-Flash on sglang ")
