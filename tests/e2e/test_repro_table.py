"""The record's experiment table, from `repro --json` at 60 sessions against the lab.

One seed an arm here; `make soak` runs ten. What each arm shows is decided by bytes alone, so the
zeros are exact.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any

import pytest
from cli_runs import UNPACED, Done, repro

SEED = "1"
# The switch that makes pools so small that even short contexts are loaded late.
TINY_POOL = ("--lab-option", "device-pages=120", "--lab-option", "slack-ms=0.1")
# fp8 narrows the window and does not close it: larger prefill batches queue more copies.
LARGER_BATCHES = ("--lab-option", "prefill-batch=20")
SUBTLE_TOKENS = 5
# About what a tokenizer makes of text: pieces of words, and each other character.
TOKEN = re.compile(r"\w{1,4}|\W")

ARMS: dict[str, tuple[str, ...]] = {
    "bf16": (),
    "gate": ("--lab-fix", "index-gate"),
    "fp8": ("--lab-index-k", "fp8"),
    "hicache off": ("--lab-hicache", "off"),
    "one session": ("--sessions", "1"),
    "short context": ("--scenario", "short-context"),
    "short context, tiny pool": ("--scenario", "short-context", *TINY_POOL),
    "no fault": ("--lab-fault", "none"),
    "fp8, longer contexts": ("--scenario", "long-context", "--lab-index-k", "fp8"),
    "fp8, larger batches": ("--lab-index-k", "fp8", *LARGER_BATCHES),
}

AS_A_PERSON_RUNS_IT = ("bf16", "gate")  # whose replies are compared with each other


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Done]:
    """Runs an arm once, with its ground truth beside it."""
    kept: dict[str, Done] = {}

    def run(name: str) -> Done:
        if name not in kept:
            folder = tmp_path_factory.mktemp("arm")
            truth = ("--lab-option", f"ground-truth={folder / 'truth.jsonl'}")
            pace = () if name in AS_A_PERSON_RUNS_IT else UNPACED
            flags = ("--sessions", "60", "--seed", SEED, *truth, *pace)
            kept[name] = repro(folder, *flags, *ARMS[name])
        return kept[name]

    return run


def stale_index_reads(done: Done) -> set[tuple[int, int]]:
    """(session, turn) of every request that read a stale index-K page."""
    truth = done.run_dir.parent / "truth.jsonl"
    events = [json.loads(line) for line in truth.read_text(encoding="utf-8").splitlines()]
    return {
        (event["session"], event["turn"])
        for event in events
        if event["kind"] == "stale_read" and event["pool"] == "index_k"
    }


def test_bf16_with_hicache_corrupts_about_as_often_as_on_the_record(
    arm: Callable[[str], Done],
) -> None:
    done = arm("bf16")
    assert (done.code, done.document["verdict"]) == (1, "corrupted"), done.stderr
    rate = done.body["response_rate"]
    assert 0.08 <= rate["estimate"] <= 0.30
    assert rate["low"] < rate["estimate"] < rate["high"]
    assert done.body["failures"] == 0
    assert done.body["responses"] + done.body["aborted_by_us"] == 360


@pytest.mark.parametrize(
    "name",
    ["fp8", "hicache off", "one session", "gate", "short context", "short context, tiny pool",
     "no fault"],
)  # fmt: skip
def test_the_other_arms_are_exactly_clean(arm: Callable[[str], Done], name: str) -> None:
    done = arm(name)
    assert (done.code, done.document["verdict"]) == (0, "clean"), done.stderr
    assert done.body["corrupted_responses"] == 0
    assert done.body["responses"] > 0
    assert done.body["failures"] == 0
    assert done.body["clean_bound"]["upper"] < (0.05 if name != "one session" else 0.96)


def test_short_contexts_are_immune_although_they_read_stale_pages(
    arm: Callable[[str], Done],
) -> None:
    assert len(stale_index_reads(arm("short context, tiny pool"))) > 20


@pytest.mark.parametrize("name", ["fp8, longer contexts", "fp8, larger batches"])
def test_fp8_narrows_the_window_and_does_not_close_it(
    arm: Callable[[str], Done], name: str
) -> None:
    done = arm(name)
    assert (done.code, done.document["verdict"]) == (1, "corrupted"), done.stderr
    assert stale_index_reads(done)


def served(record: dict[str, Any]) -> Any:
    """What the user of a response gets: its text, and its calls without their random ids."""
    response = record["response"]
    calls = [call["function"] for call in response["tool_calls"] or ()]
    return response["content"] or "", calls, response["finish_reason"]


def form_of(sick: dict[str, Any], healthy: dict[str, Any]) -> str:
    """How a damaged response differs: in one argument, in a few tokens, or grossly."""
    text, calls, finish = served(sick)
    right_text, right_calls, right_finish = served(healthy)
    if finish != right_finish:
        return "gross"
    same_tools = [c["name"] for c in calls] == [c["name"] for c in right_calls]
    if calls and text == right_text and same_tools and _arguments_apart(calls, right_calls) == 1:
        return "one argument"
    apart = _tokens_apart(json.dumps([text, calls]), json.dumps([right_text, right_calls]))
    return "few tokens" if apart <= SUBTLE_TOKENS else "gross"


def _tokens_apart(text: str, right: str) -> int:
    """Tokens of the right text that are missing or replaced, and those that came in addition."""
    tokens, wanted = TOKEN.findall(text), TOKEN.findall(right)
    matcher = SequenceMatcher(a=wanted, b=tokens, autojunk=False)
    kept = sum(block.size for block in matcher.get_matching_blocks())
    return max(len(wanted), len(tokens)) - kept


def _arguments_apart(calls: list[dict[str, Any]], right: list[dict[str, Any]]) -> int:
    apart = 0
    for call, wanted in zip(calls, right, strict=True):
        try:
            got, planted = json.loads(call["arguments"]), json.loads(wanted["arguments"])
        except ValueError:
            return 99
        apart += sum(got.get(key) != planted.get(key) for key in got.keys() | planted.keys())
    return apart


def test_detection_agrees_with_the_healthy_lab_response_by_response(
    arm: Callable[[str], Done], record_property: Callable[[str, object], None]
) -> None:
    """The same prompts at the gated lab give the healthy text of every response."""
    healthy = {(r["session"], r["turn"]): r for r in arm("gate").records()}
    found: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for record in arm("bf16").records():
        right = healthy[record["session"], record["turn"]]
        if record["aborted"] or right["aborted"]:
            continue
        if served(record) == served(right):
            assert not record["corrupted"], f"false alarm: {record['id']} {record['evidence']}"
            continue
        form = form_of(record, right)
        found[form] += record["corrupted"]
        missed[form] += not record["corrupted"]
    damaged = found.total() + missed.total()
    record_property("recall_by_form", {form: (found[form], missed[form]) for form in found})
    assert damaged > 20
    assert found.total() / damaged >= 0.99, dict(missed)
    subtle = sum(found[form] + missed[form] for form in ("one argument", "few tokens"))
    assert subtle >= damaged / 5, dict(found)


def test_nothing_is_corrupted_that_read_no_stale_page(arm: Callable[[str], Done]) -> None:
    done = arm("bf16")
    stale = stale_index_reads(done)
    corrupted = {(r["session"], r["turn"]) for r in done.records() if r["corrupted"]}
    assert corrupted <= stale
