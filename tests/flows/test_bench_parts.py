"""The parts of `bench` between its flags and its numbers: plan, counts, comparison, verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dsv4doctor.artifacts.prompts import FilePrompt
from dsv4doctor.errors import UsageError
from dsv4doctor.finding import Severity
from dsv4doctor.flows.bench_book import BenchBook, BlockFacts, facts_in
from dsv4doctor.flows.bench_compare import Baseline, check_comparable, compare, overall
from dsv4doctor.flows.bench_output import sglang_line
from dsv4doctor.flows.bench_plan import Arrival, BenchPlan, BlockPlan, plan_from
from dsv4doctor.flows.bench_prompts import check_lengths, scripts_of, warmup_scripts
from dsv4doctor.flows.bench_summary import BenchFacts, summarise_bench
from dsv4doctor.flows.bench_verdict import bench_findings, exit_code_of, verdict_of
from dsv4doctor.load.lengths import message_tokens, text_tokens
from dsv4doctor.stats.blocks import Trend

PLAN = BenchPlan(seed=42, output_dir=Path("reports"))


def test_levels_and_their_blocks_take_turns() -> None:
    plan = replace(PLAN, concurrencies=(1, 32), blocks=3)
    assert [level.max_concurrency for level in plan.levels] == [1, 32]
    assert [level.num_prompts for level in plan.levels] == [4, 64]
    assert [(block.level, block.number) for block in plan.order()] == [
        (0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2),
    ]  # fmt: skip


def test_a_rate_measures_one_level_without_a_limit() -> None:
    (level,) = replace(PLAN, request_rate=2.5).levels
    assert (level.max_concurrency, level.num_prompts) == (None, 25)
    (limited,) = replace(PLAN, request_rate=0.1, concurrencies=(7, 7)).levels
    assert (limited.max_concurrency, limited.num_prompts) == (7, 4)


def test_every_request_of_a_bench_has_a_session_of_its_own() -> None:
    plan = replace(PLAN, concurrencies=(1, 3), blocks=2, num_prompts=5, warmup_requests=2)
    numbers = [script.session for block in plan.order() for script in scripts_of(plan, block)]
    numbers += [script.session for level in (0, 1) for script in warmup_scripts(plan, level)]
    assert sorted(numbers) == list(range(24))


def test_prompts_are_as_long_as_asked_for_and_replies_too() -> None:
    plan = replace(PLAN, input_len=2000, output_len=300)
    for script in list(scripts_of(plan, BlockPlan(level=0, number=1))):
        length = sum(map(message_tokens, script.messages(0)))
        assert length == pytest.approx(2000, rel=0.1)
        (turn,) = script.turns
        assert text_tokens(turn.expected_reply["content"]) == pytest.approx(300, rel=0.25)
        assert turn.max_tokens > 300
        assert script.tools == ()
        assert script.salts_prompts


def test_the_same_seed_sends_the_same_prompts() -> None:
    block = BlockPlan(level=1, number=0)
    assert list(scripts_of(PLAN, block)) == list(scripts_of(PLAN, block))
    other = replace(PLAN, seed=43)
    assert list(scripts_of(PLAN, block)) != list(scripts_of(other, block))


def test_a_passage_that_does_not_fit_its_prompt_is_refused() -> None:
    with pytest.raises(UsageError, match="--input-len 300") as told:
        check_lengths(replace(PLAN, input_len=300, output_len=256))
    needed = int(told.value.hint.split("--input-len ")[1].split()[0])
    check_lengths(replace(PLAN, input_len=needed, output_len=256))
    with pytest.raises(UsageError, match="--output-len 8"):
        check_lengths(replace(PLAN, output_len=8))


def test_prompts_of_a_file_are_sent_as_they_are_and_again_from_the_first() -> None:
    prompts = tuple(
        FilePrompt(messages=({"role": "user", "content": text},), max_tokens=limit)
        for text, limit in (("a", 5), ("b", None))
    )
    plan = replace(PLAN, prompts=prompts, num_prompts=3, output_len=99, ignore_eos=True)
    scripts = list(scripts_of(plan, BlockPlan(level=0, number=0)))
    assert [script.messages(0)[0]["content"] for script in scripts] == ["a", "b", "a"]
    assert [script.turns[0].max_tokens for script in scripts] == [5, 99, 5]
    assert scripts[0].sampling["ignore_eos"] is True
    parts = FilePrompt(messages=({"role": "user", "content": [{"type": "text"}]},))
    (script,) = scripts_of(
        replace(plan, prompts=(parts,), num_prompts=1), BlockPlan(level=0, number=0)
    )
    assert not script.salts_prompts  # a salt is put before a text


def test_a_plan_survives_its_manifest() -> None:
    plan = replace(
        PLAN, concurrencies=(2,), request_rate=3.0, arrival=Arrival.FIXED, length_jitter=0.2,
        dataset_path=Path("p.jsonl"), salts_prompts=False, stream=False, extra_body={"top_k": 1},
    )  # fmt: skip
    blank = BenchPlan(seed=0, output_dir=Path("reports"))
    again = plan_from(plan.manifest(), blank)
    assert again.workload() == plan.workload()
    assert again.levels == plan.levels
    assert again.extra_body == {"top_k": 1}


def record(level: int, block: int, *, sent: float = 0.0, gap: float = 20.0, **given: Any) -> dict:
    """A reply of five tokens, `gap` ms apart, after 100 ms."""
    return {
        "session": 0, "turn": 0, "kind": "long_text", "response": {"content": "abc"},
        "level": level, "block": block, "segment": 1,
        "aborted": False, "failure": None, "primary": "clean", "also": [], "corrupted": False,
        "evidence": [], "stream": True, "prompt_tokens": 50, "completion_tokens": 5,
        "cached_tokens": 0, "sent_unix": 1000.0 + sent, "ttft_ms": 100.0, "itl_ms": [gap] * 4,
        "e2e_latency_ms": 100.0 + 4 * gap, **given,
    }  # fmt: skip


def facts(**given: Any) -> BenchFacts:
    fields = {
        "run_dir": "reports/x", "target": {"base_url": "http://h"}, "workload": PLAN.workload(),
        "concurrencies": (1, 8), "num_prompts": (2, 2), "blocks": 3, **given,
    }  # fmt: skip
    return BenchFacts(**fields)


def whole(level: int, block: int, **given: Any) -> BlockFacts:
    fields = {
        "level": level, "block": block, "segment": 1, "timings_valid": True,
        "client_lag_ms": {"p50": 0.5, "p99": 2.0 + block, "max": 9.0, "n": 100}, **given,
    }  # fmt: skip
    return BlockFacts(**fields)


def summary_of(records: list[dict], blocks: list[BlockFacts], **given: Any) -> tuple[Any, Any, Any]:
    book = BenchBook()
    for each in records:
        book.add(each)
    told = facts(**given)
    return book, told, summarise_bench(book, blocks, told)


def run_at(gaps: tuple[float, ...], **given: Any) -> tuple[Any, Any, Any]:
    """A bench whose blocks have these gaps at both levels."""
    records = [
        record(level, block, gap=gap, sent=sent, **given)
        for level in (0, 1)
        for block, gap in enumerate(gaps)
        for sent in (0.0, 0.05)
    ]
    blocks = [whole(level, block) for level in (0, 1) for block in range(len(gaps))]
    return summary_of(records, blocks)


def test_a_level_is_summed_over_its_blocks() -> None:
    _, _, summary = run_at((20.0, 30.0, 40.0))
    level = summary["levels"][1]
    seconds = (0.05 + 0.18) + (0.05 + 0.22) + (0.05 + 0.26)
    assert level["max_concurrency"] == 8
    assert level["duration"] == pytest.approx(seconds)
    assert level["output_throughput"] == pytest.approx(30 / seconds)
    assert level["median_itl_ms"] == 30.0
    assert level["mean_tpot_ms"] == pytest.approx(30.0)
    assert [block["median_itl_ms"] for block in level["blocks"]] == [20.0, 30.0, 40.0]
    interval = level["intervals"]["median_itl_ms"]
    assert (interval["mean"], interval["n"]) == (30.0, 3)
    assert interval["low"] < 30.0 < interval["high"]
    assert level["client_lag_ms"] == {"p50": 0.5, "p99": 4.0, "max": 9.0, "n": 300}


def test_a_block_that_was_cut_short_is_counted_and_not_measured() -> None:
    records = [record(0, 0), record(0, 1, gap=900.0, primary="token_salad", corrupted=True)]
    book, told, summary = summary_of(records, [whole(0, 0)])
    level = summary["levels"][0]
    assert (level["responses"], level["corrupted_responses"]) == (2, 1)
    assert level["max_itl_ms"] == 20.0
    assert len(level["blocks"]) == 1
    assert verdict_of(book, told, summary) == "corrupted"


def test_a_block_that_was_run_again_is_measured_once() -> None:
    records = [record(0, 0, gap=900.0), record(0, 0, segment=2)]
    held = {"blocks": [{"level": 0, "block": 0, "segment": 2, "client_lag_ms": {}}, "torn", 7]}
    (fact,) = facts_in(held)
    _, _, summary = summary_of(records, [fact])
    assert summary["levels"][0]["max_itl_ms"] == 20.0
    assert facts_in({}) == []


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        pytest.param((20.0, 20.1, 19.9), "same", id="same"),
        pytest.param((40.0, 40.1, 39.9), "worse", id="worse"),
        pytest.param((10.0, 10.1, 9.9), "better", id="better"),
        pytest.param((10.0, 20.0, 60.0), "undecided", id="undecided"),
    ],
)
def test_against_a_baseline(now: tuple[float, ...], verdict: str) -> None:
    _, _, before = run_at((20.0, 20.1, 19.9))
    book, told, summary = run_at(now)
    compare(summary, Baseline(run_dir="reports/before", summary=before), margin=0.05)
    assert summary["comparison"] == verdict
    assert verdict_of(book, told, summary) == verdict
    change = summary["levels"][1]["comparison"]["median_itl_ms"]
    assert change["low"] <= change["change"] <= change["high"]
    # Twelve comparisons share the five in a hundred.
    assert change["level"] == pytest.approx(1 - 0.05 / 12)
    assert summary["levels"][0]["comparison"]["median_ttft_ms"]["verdict"] == "same"
    findings = bench_findings(book, told, summary, verdict)
    code = exit_code_of(verdict, findings, Severity.WARNING)
    assert code == {"same": 0, "better": 0, "worse": 1, "undecided": 4}[verdict]
    assert any(each.rule == "SLOWER" for each in findings) == (verdict == "worse")


def test_a_late_client_compares_nothing() -> None:
    _, _, before = run_at((20.0, 20.1, 19.9))
    book, told, summary = run_at((40.0, 40.1, 39.9))
    for level in summary["levels"]:
        level["timings_valid"] = False
    compare(summary, Baseline(run_dir="reports/before", summary=before), margin=0.05)
    assert verdict_of(book, told, summary) == "undecided"
    assert "late itself" in summary["levels"][0]["comparison"]["output_throughput"]["reason"]


def test_a_baseline_of_something_else_is_refused() -> None:
    _, _, before = run_at((20.0, 20.1))
    baseline = Baseline(run_dir="reports/before", summary=before)
    check_comparable(baseline, PLAN.workload(), [8])
    with pytest.raises(UsageError, match="input_len 1024, not 4096"):
        check_comparable(baseline, replace(PLAN, input_len=4096).workload(), [8])
    with pytest.raises(UsageError, match="none of the concurrencies"):
        check_comparable(baseline, PLAN.workload(), [64])
    check_comparable(baseline, replace(PLAN, seed=7).workload(), [1])


def test_what_outweighs_what() -> None:
    worse, unsure, same, better = Trend.WORSE, Trend.UNDECIDED, Trend.SAME, Trend.BETTER
    assert overall([(better, True), (worse, False)]) is worse
    assert overall([(better, True), (unsure, True)]) is unsure
    assert overall([(better, True), (unsure, False), (same, True)]) is better
    assert overall([(same, True), (unsure, False)]) is same
    assert overall([]) is unsure


def test_verdicts_without_a_baseline() -> None:
    book, told, summary = run_at((20.0,))
    assert verdict_of(book, told, summary) == "measured"
    failed = {"kind": "timeout", "message": "late", "http_status": None}
    book, told, summary = summary_of(
        [record(0, 0), record(0, 0, failure=failed, primary="timeout")], [whole(0, 0)]
    )
    assert verdict_of(book, told, summary) == "errors"
    findings = bench_findings(book, told, summary, "errors")
    assert exit_code_of("errors", findings, Severity.WARNING) == 1
    assert exit_code_of("errors", findings, Severity.ERROR) == 0
    nothing = summary_of([], [], unreachable="no route")
    assert verdict_of(*nothing) == "unreachable"
    stopped = summary_of([record(0, 0)], [], interrupted=True)
    assert verdict_of(*stopped) == "undecided"
    wedged = summary_of(
        [record(0, 0)], [], wedge={"silent_s": 31.0, "detail": "load", "probes": []}
    )
    assert verdict_of(*wedged) == "wedged"


def test_replies_that_were_not_judged_are_not_called_clean() -> None:
    _, _, summary = summary_of([record(0, 0, primary=None)], [whole(0, 0)])
    assert summary["corrupted_responses"] is None
    assert summary["levels"][0]["corrupted_responses"] is None
    assert summary["levels"][1]["corrupted_responses"] == 0
    assert summary["responses"] == 1


def test_the_line_that_sglang_writes() -> None:
    _, _, summary = run_at((20.0,))
    line = sglang_line(summary, summary["levels"][1], [record(1, 0)])
    assert line["max_concurrency"] == 8
    assert line["request_rate"] == "inf"
    assert line["ttfts"] == [0.1]
    assert line["itls"] == [[0.02] * 4]
    assert (line["input_lens"], line["generated_texts"]) == ([50], ["abc"])
    # What existing notebooks read; the list is the one that upstream writes.
    assert set(line) >= {
        "tag", "backend", "dataset_name", "duration", "completed", "total_input_tokens",
        "total_output_tokens", "total_output_tokens_retokenized", "request_throughput",
        "input_throughput", "output_throughput", "total_throughput", "concurrency",
        "accept_length", "max_output_tokens_per_s", "max_concurrent_requests", "max_itl_ms",
        "server_info", "random_input_len", "random_output_len", "random_range_ratio",
        "sharegpt_output_len", "total_input_text_tokens", "total_input_vision_tokens",
        *(f"{kind}_{name}_ms" for kind in ("mean", "median", "std", "p90", "p95", "p99")
          for name in ("e2e_latency", "ttft", "tpot", "itl")),
    }  # fmt: skip
