"""`report` over real runs of the lab: every format, killed runs, comparisons, redaction, examples.

`pytest --update-golden` writes `reports/examples/` anew.
"""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cli_runs import COMMAND, LIMIT_S, Done

from tests.report.runs import (
    PROMPT,
    corrupted_record,
    finish_run,
    full_record,
    small_run,
    write_run,
)

EXAMPLES = Path(__file__).parents[2] / "reports" / "examples"
# Pools so small that sixteen sessions are enough to be read too early, with one seed.
FLAGS = (
    "--sessions", "16", "--turns", "5", "--seed", "42", "--no-progress",
    "--lab-option", "device-pages=120", "--lab-option", "slack-ms=0.1",
)  # fmt: skip
FORMATS = ("console", "markdown", "html", "json", "csv")
SUFFIXES = {"console": "txt", "markdown": "md", "html": "html"}


def run_in(folder: Path, *arguments: str | Path, text: bool = True) -> Any:
    """The command in `folder`, so that no report holds a path of this machine."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "NO_COLOR": "1"}
    env.pop("COLUMNS", None)  # whoever runs the tests may have a width of their own
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=text,
        timeout=LIMIT_S,
        check=False,
    )


def report(folder: Path, *arguments: str | Path) -> Done:
    done = run_in(folder, "report", *arguments)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `reports/corrupted` and `reports/clean`, both made by the lab."""
    folder = tmp_path_factory.mktemp("bench")
    for name, code, flags in (("corrupted", 1, ()), ("clean", 0, ("--lab-fix", "index-gate"))):
        done = run_in(folder, "repro", *FLAGS, *flags, "--output-dir", f"made-{name}")
        assert done.returncode == code, done.stderr
        (folder / "reports").mkdir(exist_ok=True)
        next((folder / f"made-{name}").glob("*-repro-*")).rename(folder / "reports" / name)
    return folder


CORRUPTED, CLEAN = Path("reports/corrupted"), Path("reports/clean")


def settled(text: str) -> str:
    """`text` of a console or Markdown report without what depends on the clock and the machine."""
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    # A narrow column parts the two.
    text = re.sub(r"\d{4}-\d\d-\d\d", "DATE", text)
    text = re.sub(r"\d\d:\d\d:\d\d", "TIME", text)
    # From the heading of the latencies to the next heading (or the next title in a terminal).
    text = re.sub(r"(?ms)^### Latency$.*?(?=^### |\Z)", "", text)
    return re.sub(r"(?ms)^Latency$.*?(?=^The server's configuration$|\Z)", "", text)


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("corrupted", (CORRUPTED,)),
        ("clean", (CLEAN,)),
        ("comparison", (CORRUPTED, CLEAN)),
    ],
)
@pytest.mark.parametrize("format_", ["console", "markdown"])
def test_the_committed_examples_are_what_the_lab_gives(
    bench: Path, name: str, runs: tuple[Path, ...], format_: str, update_golden: bool
) -> None:
    example = EXAMPLES / f"{name}.{SUFFIXES[format_]}"
    done = report(bench, *runs, "--format", format_)
    assert done.code == 0, done.stderr
    if update_golden:
        example.write_text(done.stdout, encoding="utf-8")
    assert settled(done.stdout) == settled(example.read_text(encoding="utf-8"))


def listed(page: str) -> dict[str, list[Any]]:
    data = json.loads(page.partition('id="record-data">')[2].partition("</script>")[0])
    place = {name: n for n, name in enumerate(data["columns"])}
    told = ("label", "also", "kind", "corrupted", "why", "text")
    return {row[place["id"]]: [row[place[name]] for name in told] for row in data["rows"]}


def _steady(part: str, page: str) -> list[str]:
    """The matches of `part`, less what only tells how busy the machine was."""
    return [
        found for found in re.findall(part, page, re.DOTALL) if "CLIENT_BOTTLENECK" not in found
    ]


def test_the_committed_page_is_what_the_lab_gives(bench: Path, update_golden: bool) -> None:
    example = EXAMPLES / "corrupted.html"
    if update_golden:
        assert report(bench, CORRUPTED, "--format", "html", "--output", example).code == 0
    done = report(bench, CORRUPTED, "--format", "html", "--output", "run.html")
    assert (done.code, done.stdout) == (0, ""), done.stderr
    made = (bench / "run.html").read_text(encoding="utf-8")
    committed = example.read_text(encoding="utf-8")
    assert listed(made) == listed(committed)
    for part in (r"<p class=\"verdict.*?</p>", r"<h3>.*?</h3>", r"<td class=\"verbatim\">.*?</td>"):
        assert _steady(part, made) == _steady(part, committed)


@pytest.mark.parametrize("format_", FORMATS)
def test_each_format_goes_to_stdout_alone_or_to_a_file(bench: Path, format_: str) -> None:
    piped = report(bench, CORRUPTED, "--format", format_)
    filed = report(bench, CORRUPTED, "--format", format_, "--output", f"out.{format_}")
    assert (piped.code, filed.code, piped.stderr) == (0, 0, "")
    assert filed.stdout == ""
    assert piped.stdout == (bench / f"out.{format_}").read_text(encoding="utf-8")
    assert report(bench, CORRUPTED, "--format", format_, "--output", "-").stdout == piped.stdout


def test_the_formats_agree(bench: Path) -> None:
    document = json.loads(report(bench, CORRUPTED, "--format", "json").stdout)
    rows = list(csv.DictReader(io.StringIO(report(bench, CORRUPTED, "--format", "csv").stdout)))
    told = document["repro"]
    assert document["exit_code"] == 1
    assert len(rows) == 80
    assert sum(row["corrupted"] == "True" for row in rows) == told["corrupted_responses"] > 10
    assert sum(row["standing"] == "aborted" for row in rows) == told["aborted_by_us"]
    assert {row["label"] for row in rows if row["standing"] == "judged"} == set(told["by_label"])
    in_flight = [int(row["in_flight"]) for row in rows]
    assert min(in_flight) == 1
    # Wall clocks of two requests part by a millisecond, or by a preemption: one may be seen twice.
    assert 14 <= max(in_flight) <= 17
    summary = json.loads((bench / CORRUPTED / "summary.json").read_text(encoding="utf-8"))["repro"]
    for key in ("responses", "by_label", "response_rate", "session_rate", "ttft_ms"):
        assert told[key] == summary[key]


def test_the_json_document_says_what_was_made(bench: Path) -> None:
    done = report(bench, CORRUPTED, "--json")
    document = done.document
    assert (document["command"], document["verdict"], document["exit_code"]) == (
        "report", "corrupted", 0,
    )  # fmt: skip
    (run,) = document["report"]["runs"]
    assert run["summary"]["corrupted_responses"] > 10
    assert run["recomputed"] is False


def test_a_killed_run_says_the_same_from_its_records(bench: Path) -> None:
    killed = bench / "reports" / "killed"
    shutil.copytree(bench / CORRUPTED, killed, dirs_exist_ok=True)
    for name in ("summary.json", "findings.jsonl", "report.md"):
        (killed / name).unlink()
    manifest = json.loads((killed / "run.json").read_text(encoding="utf-8"))
    manifest["ended"] = manifest["segments"][-1]["ended"] = None
    (killed / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
    with (killed / "records.jsonl").open("ab") as records:
        records.write(b'{"id": "s0015-t04", "sess')
    done = report(bench, "reports/killed", "--json")
    assert done.code == 0, done.stderr
    assert "killed" in done.stderr
    assert "dsv4doctor repro --resume reports/killed" in done.stderr
    (run,) = done.body["runs"]
    assert (run["verdict"], run["recomputed"]) == ("corrupted", True)
    whole = report(bench, CORRUPTED, "--json").body["runs"][0]["summary"]
    keys = ("responses", "corrupted_sessions", "by_label", "by_turn", "by_context",
            "response_rate", "session_rate", "ttft_ms", "itl_ms", "e2e_latency_ms")  # fmt: skip
    for key in keys:
        assert run["summary"][key] == whole[key], key
    assert run["summary"]["torn_lines"] == 1
    assert run["summary"]["interrupted"] is True
    page = report(bench, "reports/killed", "--format", "html").stdout
    assert "The run was interrupted" in page


def test_two_runs_are_told_apart_only_by_the_test(bench: Path) -> None:
    done = report(bench, CORRUPTED, CLEAN, "--json")
    assert done.code == 0
    (pair,) = done.body["comparisons"]
    assert pair["verdict"] == done.document["verdict"] == "differ"
    assert pair["difference"]["low"] > 0
    assert pair["p_value_adjusted"] < 0.05


def test_runs_that_hardly_differ_are_not_said_to(tmp_path: Path) -> None:
    def made(name: str, bad: int) -> Path:
        records = [corrupted_record(n, 0) if n < bad else full_record(n, 0) for n in range(33)]
        return write_run(tmp_path / name, records, sessions=33, turns=1)

    # Boschloo's p of 6 against 2 of 33 is 0.175: noise.
    done = report(tmp_path, made("a", 6), made("b", 2), "--json")
    (pair,) = done.body["comparisons"]
    assert (done.code, pair["verdict"]) == (0, "undecided")
    assert pair["p_value"] == pytest.approx(0.175, abs=0.001)
    other = write_run(tmp_path / "c", small_run(), label="long-text", turns=4)
    done = report(tmp_path, made("d", 6), other, "--json")
    assert done.body["comparisons"] == []
    assert "different scenario" in done.body["undecidable"]


SECRET = "sk-abcdefghijklmnopqrstuv"


def secret_run(tmp_path: Path) -> Path:
    reply = {"content": f"{PROMPT} then salad http://gpu7.corp:30000 {SECRET}",
             "reasoning_content": None, "tool_calls": None, "finish_reason": "stop"}  # fmt: skip
    records = [*small_run(), corrupted_record(13, 3, response=reply)]
    return write_run(tmp_path, records, base_url="http://gpu7.corp:30000")


@pytest.mark.parametrize("format_", FORMATS)
def test_redaction_leaves_no_host_prompt_or_key(tmp_path: Path, format_: str) -> None:
    path = secret_run(tmp_path)
    bare = report(tmp_path, path, "--format", format_)
    assert "gpu7.corp" in bare.stdout
    done = report(tmp_path, path, "--format", format_, "--redact")
    assert done.code == 0, done.stderr
    for secret in ("gpu7", SECRET, PROMPT[:30], str(tmp_path)):
        assert secret not in done.stdout, secret
    assert re.search(
        r"removed: \d+ hosts?, 49 prompts, \d+ repeated prompt pieces?, 1 key", done.stderr
    )


def test_a_run_of_another_command_is_told_too(tmp_path: Path) -> None:
    path = write_run(tmp_path, [], command="watch", label="levels")
    done = report(tmp_path, path)
    assert done.code == 3
    assert "cut short" in done.stderr
    body = {"levels": [{"max_concurrency": 1, "output_throughput": 54.3}], "errors": 0}
    document = {"verdict": "fine", "exit_code": 0, "watch": body}
    finish_run(path, document)
    done = report(tmp_path, path, "--format", "markdown")
    assert done.code == 0
    assert "| 1 | 54.3 |" in done.stdout
    assert report(tmp_path, path, path.parent / path.name, "--json").code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere",), 2, "there is no run directory nowhere"),
        ((".",), 2, "is no run directory"),
        ((CORRUPTED, "--format", "pdf"), 2, "pdf"),
        ((CORRUPTED, CORRUPTED), 2, "given twice"),
        ((CORRUPTED, CLEAN, "--format", "csv"), 2, "one run"),
        ((CORRUPTED, "--output", "no/such/folder.txt"), 3, "there is no directory no/such"),
        ((CORRUPTED, "--output", "reports"), 3, "it is a directory"),
        ((), 2, "RUN_DIR"),
    ],
)
def test_what_cannot_be_done_is_said_in_two_lines(
    bench: Path, arguments: tuple[Any, ...], code: int, said: str
) -> None:
    done = report(bench, *arguments)
    assert (done.code, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "try: " in done.stderr


def test_two_documents_on_stdout_are_none(bench: Path) -> None:
    done = report(bench, CORRUPTED, "--json", "--output", "-")
    assert (done.code, json.loads(done.stdout)["verdict"]) == (2, "usage")
    assert "both want stdout" in done.stderr


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = write_run(tmp_path, small_run(1, 1))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Both ends, so that neither waits for the other.
    end = os.open(pipe, os.O_RDWR)
    try:
        done = report(tmp_path, path, "--format", "json", "--output", pipe)
        said = os.read(end, 1 << 16)
    finally:
        os.close(end)
    assert done.code == 0, done.stderr
    assert json.loads(said)["command"] == "repro"
    assert pipe.is_fifo()


def test_parquet_holds_every_response(bench: Path) -> None:
    assert report(bench, CORRUPTED, "--format", "parquet", "--output", "x.parquet").code == 0
    frame = pd.read_parquet(bench / "x.parquet")
    assert len(frame) == 80
    assert frame["in_flight"].max() <= 17


def test_a_page_is_not_poured_onto_a_terminal(bench: Path) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "dsv4doctor", "report", str(CORRUPTED), "--format", "html"],
        cwd=bench,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=theirs,
        stderr=subprocess.PIPE,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert "--output" in done.stderr


def test_cells_are_no_formulas_and_no_escapes(tmp_path: Path) -> None:
    poison = "=HYPERLINK(1)\x1b[2J\nsecond line"
    record = corrupted_record(0, 0, response={"content": poison, "finish_reason": "stop"})
    done = report(tmp_path, write_run(tmp_path, [record]), "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert row["reply"] == "'=HYPERLINK(1)\\x1b[2J\\nsecond line"
    assert "\x1b" not in done.stdout


def test_records_that_no_run_of_ours_wrote_are_counted_and_left(tmp_path: Path) -> None:
    path = write_run(tmp_path, small_run())
    with (path / "records.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "alien", "response": {"content": "hello"}}\nnot json\n')
    done = report(tmp_path, path, "--format", "html")
    assert done.code == 0
    assert "Not counted: 1 record without" in done.stderr
    assert "1 unreadable (line 50)" in done.stderr
