"""Counts of a run: what is judged, what failed, what we hung up on ourselves."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dsv4doctor.finding import Severity
from dsv4doctor.flows.repro_verdict import (
    RunFacts,
    exit_code_of,
    findings_of,
    summarise,
    verdict_of,
)
from dsv4doctor.flows.tally import Tally, context_bin


def record(session: int = 0, turn: int = 0, **changes: Any) -> dict[str, Any]:
    """A clean record, with changes."""
    return {
        "id": f"s{session:04d}-t{turn:02d}",
        "session": session,
        "turn": turn,
        "kind": "tool_call",
        "aborted": False,
        "failure": None,
        "primary": "clean",
        "also": [],
        "evidence": [],
        "corrupted": False,
        "stream": True,
        "prompt_tokens": 3000,
        "completion_tokens": 50,
        "cached_tokens": 0,
        "sent_unix": 1000.0 + turn,
        "ttft_ms": 10.0,
        "itl_ms": [1.0, 2.0],
        "e2e_latency_ms": 500.0,
        **changes,
    }


def corrupt(session: int, turn: int = 0) -> dict[str, Any]:
    evidence = [{"where": "content[0:9]", "what": "DSML"}]
    return record(session, turn, primary="dsml_leak", corrupted=True, evidence=evidence)


def failed(session: int, kind: str = "timeout") -> dict[str, Any]:
    return record(
        session, failure={"kind": kind, "message": "m", "http_status": None}, primary=kind
    )


def facts(**changes: Any) -> RunFacts:
    values: dict[str, Any] = {
        "run_dir": "r", "target": {}, "scenario": "s", "seed": 1, "sessions": 60, "turns": 1,
    }  # fmt: skip
    return RunFacts(**{**values, **changes})


def tally(*records: dict[str, Any]) -> Tally:
    counted = Tally()
    for each in records:
        counted.add(each)
    return counted


def test_failures_and_our_own_aborts_stay_outside_the_rate() -> None:
    counted = tally(
        record(0), corrupt(1), failed(2), record(3, aborted=True), corrupt(1, turn=1), record(1, 2)
    )
    body = summarise(counted, facts())
    assert (body["responses"], body["corrupted_responses"]) == (4, 2)
    assert (body["failures"], body["by_failure"]) == (1, {"timeout": 1})
    assert body["aborted_by_us"] == 1
    assert (body["session_rate"].k, body["session_rate"].n) == (1, 2)
    assert sum(body["by_label"].values()) == body["responses"]


@pytest.mark.parametrize(
    ("records", "verdict", "code"),
    [
        ([record(s) for s in range(60)], "clean", 0),
        ([*[record(s) for s in range(60)], corrupt(60)], "corrupted", 1),
        ([failed(s) for s in range(3)], "undecided", 4),
        ([failed(s, "connection_error") for s in range(3)], "unreachable", 3),
        # 2 of 60 failed: fewer than the 4.9 % that 58 clean sessions exclude
        ([*[record(s) for s in range(58)], failed(58), failed(59)], "clean", 0),
        # 6 of 60 failed: had they been corrupt, the bound would be false
        ([*[record(s) for s in range(54)], *[failed(s) for s in range(54, 60)]], "undecided", 4),
        ([], "undecided", 4),
    ],
    ids=["clean", "corrupted", "nothing judged", "no connection", "few fail", "many fail", "empty"],
)
def test_verdict_and_code(records: list[dict[str, Any]], verdict: str, code: int) -> None:
    counted = tally(*records)
    found = verdict_of(counted, facts())
    assert found == verdict
    assert exit_code_of(found, findings_of(counted, facts(), found), Severity.WARNING) == code


def test_an_interrupted_run_without_corruption_proves_nothing_yet() -> None:
    counted = tally(*[record(s) for s in range(60)])
    assert verdict_of(counted, facts(interrupted=True)) == "undecided"
    assert verdict_of(tally(corrupt(0)), facts(interrupted=True)) == "corrupted"


def test_the_bound_counts_only_sessions_that_went_to_their_end() -> None:
    counted = tally(*[record(s, t) for s in range(10) for t in range(2)], record(10))
    body = summarise(counted, facts(turns=2))
    assert body["clean_bound"].n == body["complete_sessions"] == 10


def test_a_wedge_outranks_corruption_and_names_what_came_before() -> None:
    probe = {"name": "/health", "answered": True, "status": 200, "seconds": 0.01, "detail": ""}
    wedge = {"silent_s": 3.0, "detail": "after our abort of s0003-t01", "probes": [probe]}
    counted = tally(corrupt(0))
    assert verdict_of(counted, facts(wedge=wedge)) == "wedged"
    finding = findings_of(counted, facts(wedge=wedge), "wedged")[0]
    assert finding.rule == "WEDGED"
    assert "abort of s0003-t01" in finding.title
    assert "status 200" in finding.evidence[1].what


def test_a_clean_run_states_the_bound_that_it_proves() -> None:
    body = summarise(tally(*[record(s) for s in range(60)]), facts())
    assert body["clean_bound"].upper == pytest.approx(1 - 0.05 ** (1 / 60))
    assert summarise(tally(corrupt(0)), facts())["clean_bound"] is None


def test_absent_counts_are_none_and_never_zero() -> None:
    body = summarise(Tally(), facts())
    assert body["output_throughput"] is None
    assert body["ttft_ms"].p50 is None
    assert body["response_rate"].estimate is None


def test_context_bins_widen_with_the_context() -> None:
    assert [context_bin(n) for n in (0, 1023, 1024, 16383, 16384, 40000, 80000)] == [
        0, 0, 1024, 15360, 16384, 32768, 65536,
    ]  # fmt: skip


def test_the_order_in_which_replies_ended_does_not_show() -> None:
    told = [
        *(corrupt(session, turn) for session in range(6) for turn in (1, 3)),
        *(record(9, n, primary=label, corrupted=True, also=["salad"])
          for n, label in enumerate(("unknown_tool", "salad", "empty", "unknown_tool"))),
        *(failed(session, kind) for session, kind in ((20, "timeout"), (21, "http_error"))),
        *(record(session) for session in range(30, 40)),
    ]  # fmt: skip

    def shown(records: list[dict[str, Any]]) -> tuple[Any, ...]:
        tally = Tally()
        for each in records:
            tally.add(each)
        found = findings_of(tally, facts(), verdict_of(tally, facts()))
        summary = summarise(tally, facts())
        counts = {name: list(summary[name].items()) for name in ("by_label", "by_failure")}
        return found, counts, dict(tally.examples)

    first = shown(told)
    assert [each.rule for each in first[0][:4]] == [
        "DSML_LEAK", "UNKNOWN_TOOL", "EMPTY", "SALAD",
    ]  # fmt: skip
    for seed in range(20):
        mixed = random.Random(seed).sample(told, len(told))
        assert shown(mixed) == first
