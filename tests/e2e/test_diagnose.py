"""`diagnose` on the lab: the fault that is there is named, and none where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runs import Done, doctor

from dsv4doctor.flows.diagnose_text import check_texts
from dsv4doctor.lab.deployment import LabOptions, start_lab
from dsv4doctor.target import parse_endpoint

# A pool so small and a slack so short that twenty sessions show what sixty show at full size.
SMALL = (
    "--sessions", "20", "--turns", "4",
    "--lab-option", "device-pages=160", "--lab-option", "slack-ms=0.1",
    "--lab-option", "ttft-ms=0", "--lab-option", "quiet-ms=120",
)  # fmt: skip
NAMES = {
    "index_k_stale_read", "decode_store", "wedge_after_abort", "wedge_overlap", "foreign_page",
    "early_send", "parser", "model_baseline", "client_bottleneck",
}  # fmt: skip


def diagnose(output_dir: Path, fault: str, itl_ms: int = 0, stall_s: int = 30) -> Done:
    return doctor(
        "diagnose", "--json", "--no-progress", "--output-dir", output_dir, "--lab-fault", fault,
        "--lab-option", f"itl-ms={itl_ms}", "--stall-timeout", str(stall_s), *SMALL,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fault", "cause", "itl_ms"),
    [
        ("index-race", "index_k_stale_read", 0),
        # Replies that take their time, so that there is something to hang up on.
        ("abort-wedge", "wedge_after_abort", 3),
    ],
)
def test_the_fault_that_is_there_is_named_first(
    tmp_path: Path, fault: str, cause: str, itl_ms: int
) -> None:
    # Short where a stall is what is waited for.
    done = diagnose(tmp_path, fault, itl_ms, stall_s=6 if "wedge" in fault else 30)
    assert (done.code, done.document["verdict"]) == (1, "diagnosed"), done.stderr
    causes = done.body["causes"]
    assert {each["name"] for each in causes} == NAMES
    first = causes[0]
    assert (first["name"], first["standing"]) == (cause, "supported"), causes
    assert [each["standing"] for each in causes].count("supported") == 1
    assert first["for"]
    assert first["next"].startswith("dsv4doctor ")
    assert all(each["against"] for each in causes if each["standing"] == "ruled out")
    assert [finding["rule"] for finding in done.document["findings"]] == [cause.upper()]


def test_a_healthy_lab_is_healthy_and_no_cause_is_named(tmp_path: Path) -> None:
    done = diagnose(tmp_path, "none")
    assert (done.code, done.document["verdict"]) == (0, "healthy"), done.stderr
    assert done.body["causes"] == []
    assert done.document["findings"] == []
    assert [arm["name"] for arm in done.body["arms"]] == ["load", "values", "aborts"]
    assert all("fewer than" in arm["said"] for arm in done.body["arms"])
    # What was seen is on disk, and `report` tells it again.
    records = [json.loads(line) for line in (done.run_dir / "records.jsonl").open()]
    assert len({record["id"] for record in records}) == len(records)
    assert {record["arm"] for record in records} == {"load", "values", "aborts"}
    again = doctor("report", done.run_dir)
    assert "healthy" in again.stdout
    assert "Ruled out" in again.stdout
    assert "Ruled out" in (done.run_dir / "report.md").read_text()


def test_saved_texts_are_read_by_the_servers_own_parser_and_by_the_grammar() -> None:
    """A right text that was left in the content, one whose value is another's, and plain prose."""
    canary = {"label": "l", "value": -7, "planted_turn": 0, "tool": "move", "call_index": 0,
              "argument": "n"}  # fmt: skip
    tool = {"type": "function", "function": {"name": "move", "parameters": {"type": "object"}}}
    d = "｜DSML｜"

    def record(value: str) -> dict[str, object]:
        text = (
            f'<{d}tool_calls>\n<{d}invoke name="move">\n<{d}parameter name="n" string="false">'
            f"{value}</{d}parameter>\n</{d}invoke>\n</{d}tool_calls>"
        )
        return {"response": {"content": text}, "canaries": [canary], "tools": [tool]}

    prose = {"response": {"content": "no call"}, "canaries": [canary], "tools": [tool]}
    with start_lab(LabOptions(faults=("none",))) as lab:
        endpoint = parse_endpoint(lab.base_url)
        check = check_texts(endpoint, [record("-7"), record("8"), prose], None)
    assert (check.texts, check.ours, check.servers, check.right) == (2, 1, 1, 1)
    assert "of 2 saved texts 1 are right" in check.said
    assert check_texts(endpoint, [record("-7")], None).servers is None, "the server is gone"
