"""`bench` as a user runs it, against a server of a known pace that logs what it really sent.

How fast anything is, no test asserts: only what the log, the records and the summary say alike.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cli_runs import COMMAND, LIMIT_S, Done, doctor
from servers.running import canned

__all__ = ["canned"]

PACED = Path(__file__).parents[1] / "servers" / "paced.py"
# Short prompts and replies; a warm-up reply has at most 32 tokens, a measured one more.
LENGTHS = ("--input-len", "300", "--output-len", "60")
WARMUP_TOKENS = 32


@contextlib.contextmanager
def paced(tokens_per_s: float) -> Iterator[str]:
    """The address of a paced server that lives inside the block."""
    flags = ["--tokens-per-s", str(tokens_per_s), "--first-ms", "20"]
    with subprocess.Popen(
        [sys.executable, str(PACED), *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        yield f"127.0.0.1:{int(server.stdout.readline())}"
        server.kill()


@pytest.fixture(scope="module")
def quick() -> Iterator[str]:
    with paced(600) as address:
        yield address


def sent_by(address: str) -> dict[str, list[float]]:
    """When the server sent the pieces of each measured reply, by request id."""
    with urllib.request.urlopen(f"http://{address}/log") as answer:
        log = json.load(answer)
    return {each["id"]: each["sent"] for each in log if len(each["sent"]) > WARMUP_TOKENS}


def bench(output_dir: Path, address: str, *arguments: str | Path) -> Done:
    return doctor(
        "bench", "--json", "--no-progress", "--output-dir", output_dir, "--base-url", address,
        *LENGTHS, *arguments,
    )  # fmt: skip


@pytest.fixture(scope="module")
def measured(
    quick: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Done, dict[str, list[float]], Path]:
    """One bench at two levels, what the server logged of it, and SGLang's file."""
    folder = tmp_path_factory.mktemp("bench")
    sent_by(quick)
    done = bench(
        folder, quick, "--max-concurrency", "1", "--max-concurrency", "4", "--blocks", "2",
        "--num-prompts", "4", "--output-file", folder / "sglang.jsonl", "--output-details",
    )  # fmt: skip
    return done, sent_by(quick), folder / "sglang.jsonl"


def test_every_token_that_the_server_sent_is_counted(measured: tuple[Any, Any, Any]) -> None:
    done, log, _ = measured
    assert (done.code, done.document["verdict"]) == (0, "measured"), done.stderr
    body = done.body
    assert (body["responses"], body["errors"], body["corrupted_responses"]) == (16, 0, 0)
    records = {record["request_id"]: record for record in done.records()}
    assert records.keys() == log.keys()
    for request_id, record in records.items():
        assert record["completion_tokens"] == len(log[request_id])
        # The streams' own gaps: how many, and that they make up the time of the whole stream.
        assert len(record["itl_ms"]) == len(log[request_id]) - 1
        assert record["e2e_latency_ms"] >= record["ttft_ms"] + sum(record["itl_ms"]) - 0.1
    for number, level in enumerate(body["levels"]):
        mine = [r["request_id"] for r in records.values() if r["level"] == number]
        assert level["total_output_tokens"] == sum(len(log[each]) for each in mine)
        assert level["n_itl"] == sum(len(log[each]) - 1 for each in mine)
        assert (level["completed"], len(level["blocks"])) == (8, 2)
        assert level["output_tokens_counted"] is True
        assert level["client_lag_ms"]["n"] > 0
        assert level["timings_valid"] in {True, False}
    assert [level["max_concurrency"] for level in body["levels"]] == [1, 4]


def test_no_stream_is_shown_to_begin_before_it_was_sent(measured: tuple[Any, Any, Any]) -> None:
    """Chunks are stamped when they arrive: never before the server had them out of its hands,
    and each after the one before it."""
    done, log, _ = measured
    for record in done.records():
        sent = log[record["request_id"]]
        first = record["sent_unix"] + record["ttft_ms"] / 1000
        assert first >= sent[0] - 0.01
        assert min(record["itl_ms"]) >= 0
        assert all(later >= earlier for earlier, later in pairwise(sent))


def test_at_most_so_many_are_in_flight(measured: tuple[Any, Any, Any]) -> None:
    done, _, _ = measured
    for number, limit in ((0, 1), (1, 4)):
        spans = [
            (r["sent_unix"], r["sent_unix"] + r["e2e_latency_ms"] / 1000)
            for r in done.records()
            if r["level"] == number
        ]
        # Two clocks tell beginning and length, so an end may seem to overlap by a moment.
        flying = [sum(a <= at < b - 0.005 for a, b in spans) for at, _ in spans]
        assert max(flying) <= limit


def test_the_summary_is_what_its_records_say(measured: tuple[Any, Any, Any]) -> None:
    import numpy as np

    done, _, _ = measured
    for number, level in enumerate(done.body["levels"]):
        mine = [record for record in done.records() if record["level"] == number]
        gaps = [gap for record in mine for gap in record["itl_ms"]]
        seconds = 0.0
        for block in (0, 1):
            held = [record for record in mine if record["block"] == block]
            ends = [r["sent_unix"] + r["e2e_latency_ms"] / 1000 for r in held]
            seconds += max(ends) - min(record["sent_unix"] for record in held)
        tokens = sum(record["completion_tokens"] for record in mine)
        assert level["output_throughput"] == pytest.approx(tokens / seconds)
        assert level["p99_itl_ms"] == pytest.approx(np.percentile(gaps, 99))
        assert level["median_ttft_ms"] == pytest.approx(np.median([r["ttft_ms"] for r in mine]))


def test_sglangs_file_has_a_line_a_level(measured: tuple[Any, Any, Any]) -> None:
    done, log, path = measured
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["max_concurrency"] for line in lines] == [1, 4]
    for line, level in zip(lines, done.body["levels"], strict=True):
        assert line["output_throughput"] == level["output_throughput"]
        assert sum(map(len, line["itls"])) == level["n_itl"]
        assert all(text.endswith(".") for text in line["generated_texts"])
    assert sum(line["total_output_tokens"] for line in lines) == sum(map(len, log.values()))


def test_it_is_told_and_told_again(measured: tuple[Any, Any, Any]) -> None:
    done, _, _ = measured
    assert "Throughput" in (done.run_dir / "report.md").read_text(encoding="utf-8")
    assert (done.run_dir / "report.html").stat().st_size > 0
    again = doctor("report", done.run_dir)
    assert again.code == 0
    assert "tokens/s" in again.stdout
    assert "of 16 responses (0.0 %) corrupted" in " ".join(again.stdout.split())


def test_a_baseline_that_is_twenty_times_as_fast(
    measured: tuple[Any, Any, Any], tmp_path: Path
) -> None:
    before = measured[0].run_dir
    with paced(30) as address:
        done = bench(
            tmp_path, address, "--max-concurrency", "4", "--blocks", "2", "--num-prompts", "4",
            "--warmup-requests", "0", "--baseline", before, "--no-color",
        )  # fmt: skip
    (level,) = done.body["levels"]
    # On a machine where the client itself was too late, the comparison says so and nothing else.
    if level["timings_valid"] and measured[0].body["levels"][1]["timings_valid"]:
        assert (done.code, done.document["verdict"]) == (1, "worse")
        assert level["comparison"]["output_throughput"]["verdict"] == "worse"
        assert [finding["rule"] for finding in done.document["findings"]] == ["SLOWER"]
    else:
        assert (done.code, done.document["verdict"]) == (4, "undecided")


def test_a_baseline_with_other_prompts_is_refused(
    measured: tuple[Any, Any, Any], quick: str, tmp_path: Path
) -> None:
    done = bench(tmp_path, quick, "--input-len", "400", "--baseline", measured[0].run_dir)
    assert done.code == 2
    assert "input_len 300, not 400" in done.stderr
    assert not list(tmp_path.iterdir())


def wait_for_blocks(folder: Path, count: int) -> Path:
    """The run directory, once so many of its blocks are whole."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        for path in folder.glob("*/run.json"):
            if len(json.loads(path.read_text(encoding="utf-8")).get("blocks") or ()) >= count:
                return path.parent
        time.sleep(0.05)
    raise AssertionError("no block came to its end")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "killed"])
def test_a_bench_that_was_cut_short_is_told_and_finished(
    how: signal.Signals, tmp_path: Path
) -> None:
    with paced(60) as address:
        process = subprocess.Popen(
            [*COMMAND, "bench", "--no-progress", "--json", "--output-dir", str(tmp_path),
             "--base-url", address, *LENGTHS, "--max-concurrency", "2", "--blocks", "3",
             "--num-prompts", "2", "--warmup-requests", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        run_dir = wait_for_blocks(tmp_path, 1)
        process.send_signal(how)
        _, said = process.communicate(timeout=LIMIT_S)
        assert process.returncode == (130 if how is signal.SIGINT else -how)
        assert (f"--resume {run_dir}" in said) == (how is signal.SIGINT)
        told = doctor("report", "--json", run_dir)
        assert told.code == 0
        (run,) = told.body["runs"]
        assert run["summary"]["interrupted"] is True
        assert 1 <= len(run["summary"]["levels"][0]["blocks"]) < 3
        done = doctor("bench", "--json", "--no-progress", "--resume", run_dir)
    body = done.body
    (level,) = body["levels"]
    assert (done.code, body["segments"], body["interrupted"]) == (0, 2, False), done.stderr
    assert [block["block"] for block in level["blocks"]] == [0, 1, 2]
    assert level["completed"] == 6


def test_a_fast_wrong_answer_is_no_answer(canned: str, tmp_path: Path) -> None:
    done = bench(
        tmp_path, f"{canned}/leaked_dsml", "--model", "m", "--max-concurrency", "2", "--blocks",
        "1", "--num-prompts", "2",
    )  # fmt: skip
    (level,) = done.body["levels"]
    assert (done.code, done.document["verdict"]) == (1, "corrupted")
    assert (level["corrupted_responses"], level["completed"]) == (2, 2)
    assert level["uncorrupted_output_throughput"] == 0
    assert (done.run_dir / "raw").is_dir()


def test_a_server_that_serves_nothing(canned: str, tmp_path: Path) -> None:
    done = bench(tmp_path, f"{canned}/status_503", "--model", "m", "--blocks", "1")
    assert (done.code, done.document["verdict"]) == (3, "unreachable")
    assert "no warm-up request was served" in done.stderr


def test_a_server_that_goes_silent(canned: str, tmp_path: Path) -> None:
    done = bench(
        tmp_path, f"{canned}/mute", "--model", "m", "--blocks", "1", "--num-prompts", "2",
        "--stall-timeout", "1",
    )  # fmt: skip
    assert (done.code, done.document["verdict"]) == (1, "wedged")
    assert done.body["wedge"]["stuck"]
    assert "2 requests a block never fill 32" in done.stderr


def test_prompts_of_a_file_at_a_rate_of_arrivals(canned: str, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "Say hello."}\n"And again."\n', encoding="utf-8")
    done = bench(
        tmp_path, f"{canned}/good.file", "--model", "m", "--dataset-path", prompts,
        "--request-rate", "40", "--arrival", "fixed", "--num-prompts", "5", "--blocks", "1",
        "--ignore-eos", "--keep-prefixes",
    )  # fmt: skip
    (level,) = done.body["levels"]
    assert done.code == 0, done.stderr
    assert (level["max_concurrency"], level["completed"]) == (None, 5)
    assert level["corrupted_responses"] is None
    sent = sorted(record["sent_unix"] for record in done.records())
    assert sent[-1] - sent[0] >= 4 / 40 - 0.05
    with urllib.request.urlopen(f"{canned}/good.file/seen") as answer:
        bodies = [call["body"] for call in json.load(answer)]
    assert {body["messages"][0]["content"] for body in bodies} == {"Say hello.", "And again."}
    assert all(body["ignore_eos"] is True for body in bodies)


def test_without_a_server_it_is_the_lab(tmp_path: Path) -> None:
    done = doctor(
        "bench", "--json", "--no-progress", "--output-dir", tmp_path, "--max-concurrency", "3",
        "--blocks", "1", "--num-prompts", "3", *LENGTHS, "--lab-hicache", "off",
    )  # fmt: skip
    assert (done.code, done.document["verdict"]) == (0, "measured"), done.stderr
    assert "starting the lab" in done.stderr
    assert done.body["target"]["lab"]["hicache"] is False
    assert done.body["levels"][0]["corrupted_responses"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("--request-rate", "5", "--ramp-up", "2"), "--ramp-up", id="rate-and-ramp"),
        pytest.param(("--input-len", "100"), "--input-len", id="passage-too-long"),
        pytest.param(("--dataset-path", "none.jsonl"), "cannot read none.jsonl", id="no-file"),
        pytest.param(("--baseline", "none"), "no run directory none", id="no-baseline"),
        pytest.param(("--resume", "none"), "no run directory none", id="no-run"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_sent(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = doctor(
        "bench", "--json", "--output-dir", tmp_path, "--base-url", "127.0.0.1:9", *arguments
    )
    assert done.code == 2
    assert said in done.stderr
    assert "try: " in done.stderr
    assert not list(tmp_path.iterdir())
