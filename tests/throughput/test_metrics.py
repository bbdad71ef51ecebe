"""The arithmetic of SGLang's keys, against values worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from dsv4doctor.throughput.metrics import duration_s, metrics_of, summary
from dsv4doctor.throughput.sample import Sample, sample_of


def sample(sent: float, *, ttft: float = 100.0, gaps: tuple[float, ...] = (20.0, 20.0, 20.0),
           **given: Any) -> Sample:  # fmt: skip
    fields = {
        "sent_unix": sent, "ttft_ms": ttft, "itl_ms": gaps, "e2e_latency_ms": ttft + sum(gaps),
        "input_tokens": 10, "output_tokens": len(gaps) + 1, "counted": True, "corrupted": False,
        **given,
    }  # fmt: skip
    return Sample(**fields)


def test_two_requests_side_by_side() -> None:
    block = (sample(100.0), sample(100.5, ttft=300.0, gaps=(50.0,)))
    found = metrics_of([block])
    assert duration_s(block) == pytest.approx(0.85)
    assert found["duration"] == pytest.approx(0.85)
    assert found["completed"] == 2
    assert found["total_input_tokens"] == 20
    assert found["total_output_tokens"] == 6
    assert found["output_throughput"] == pytest.approx(6 / 0.85)
    assert found["request_throughput"] == pytest.approx(2 / 0.85)
    assert found["total_throughput"] == pytest.approx(26 / 0.85)
    assert found["concurrency"] == pytest.approx((0.16 + 0.35) / 0.85)
    assert found["mean_ttft_ms"] == pytest.approx(200.0)
    assert found["std_ttft_ms"] == pytest.approx(100.0)  # of the population, as numpy's
    assert found["median_itl_ms"] == pytest.approx(20.0)
    assert found["max_itl_ms"] == 50.0
    assert found["n_itl"] == 4
    # One TPOT a request: 60 ms over three tokens after the first, and 50 ms over one.
    assert found["mean_tpot_ms"] == pytest.approx((20.0 + 50.0) / 2)
    assert found["mean_request_tokens_per_s"] == pytest.approx((50.0 + 20.0) / 2)
    assert found["median_e2e_latency_ms"] == pytest.approx((160.0 + 350.0) / 2)


def test_percentiles_are_linear() -> None:
    found = summary("itl", [float(value) for value in range(1, 12)])
    assert (found["median_itl_ms"], found["p90_itl_ms"]) == (6.0, 10.0)
    assert found["p95_itl_ms"] == pytest.approx(10.5)
    assert found["p99_itl_ms"] == pytest.approx(10.9)


def test_blocks_pool_their_tokens_over_the_sum_of_their_times() -> None:
    one, two = (sample(100.0),), (sample(500.0, gaps=(20.0,) * 9, ttft=60.0),)
    found = metrics_of([one, two])
    assert found["duration"] == pytest.approx(0.16 + 0.24)
    assert found["output_throughput"] == pytest.approx((4 + 10) / 0.40)


def test_a_failed_request_counts_for_the_time_and_for_nothing_else() -> None:
    failed = sample(100.0, e2e_latency_ms=2000.0, failure="stalled", corrupted=None)
    found = metrics_of([(sample(100.0), failed)])
    assert found["duration"] == pytest.approx(2.0)
    assert found["completed"] == 1
    assert found["total_output_tokens"] == 4
    assert found["n_itl"] == 3


def test_corrupted_tokens_are_fast_and_worth_nothing() -> None:
    found = metrics_of([(sample(100.0), sample(100.0, corrupted=True))])
    assert found["output_throughput"] == pytest.approx(8 / 0.16)
    assert found["uncorrupted_output_throughput"] == pytest.approx(4 / 0.16)


def test_one_token_has_no_tpot_and_an_unstreamed_reply_no_ttft() -> None:
    single = sample(100.0, gaps=())
    whole = sample(100.0, gaps=(), ttft_ms=None, output_tokens=9)
    found = metrics_of([(single, whole)])
    assert found["n_tpot"] == 0
    assert found["mean_tpot_ms"] is None
    assert found["n_ttft"] == 1
    assert found["n_itl"] == 0
    assert found["p99_itl_ms"] is None
    assert found["mean_request_tokens_per_s"] is None


def test_nothing_completed_is_no_zero() -> None:
    found = metrics_of([()])
    assert found["duration"] == 0.0
    assert found["completed"] == 0
    for name in ("output_throughput", "mean_ttft_ms", "p99_e2e_latency_ms", "concurrency"):
        assert found[name] is None, name


def test_the_fullest_second() -> None:
    # Ten tokens of each in the first second, and the last two of the second request in the next.
    one = sample(100.0, ttft=10.0, gaps=(10.0,) * 9)
    two = sample(100.2, ttft=10.0, gaps=(10.0,) * 9 + (900.0, 10.0))
    found = metrics_of([(one, two)])
    assert found["max_output_tokens_per_s"] == 20.0
    assert found["max_concurrent_requests"] == 2


def test_chunks_of_several_tokens_show_beside_the_gaps() -> None:
    speculative = sample(100.0, output_tokens=12)
    found = metrics_of([(speculative,)])
    assert found["tokens_per_chunk"] == pytest.approx(3.0)
    assert found["median_tpot_ms"] == pytest.approx(60.0 / 11)


RECORD = {
    "stream": True, "ttft_ms": 12.0, "itl_ms": [1.0, 2.0], "e2e_latency_ms": 16.0,
    "sent_unix": 5.0, "prompt_tokens": None, "completion_tokens": None, "failure": None,
    "primary": "clean", "corrupted": False,
}  # fmt: skip


def test_a_server_that_counts_nothing_is_counted_by_its_chunks() -> None:
    found = sample_of(RECORD)
    assert (found.output_tokens, found.counted, found.corrupted) == (3, False, False)
    assert metrics_of([(found,)])["output_tokens_counted"] is False


def test_records_that_failed_or_were_not_judged() -> None:
    failed = sample_of({**RECORD, "failure": {"kind": "timeout"}, "primary": "timeout"})
    assert (failed.failure, failed.corrupted) == ("timeout", None)
    assert sample_of({**RECORD, "primary": None}).corrupted is None
    whole = sample_of({**RECORD, "stream": False})
    assert (whole.ttft_ms, whole.itl_ms, whole.output_tokens) == (None, (), 0)
