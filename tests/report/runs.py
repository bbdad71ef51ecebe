"""Run directories made by the store itself, from records that any server could give."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RunDirectory
from tests.report.sample import HOSTILE_TEXTS, hostile_record, record

STARTED_UNIX = 1_796_000_000.0
PROMPT = "The keeper of the harbour counted the lanterns twice and wrote the sum into the log."


def full_record(session: int, turn: int, **changes: Any) -> dict[str, Any]:
    """A record with every member that a run writes; clean unless `changes` say otherwise."""
    sent = STARTED_UNIX + 4.0 * turn + 0.01 * session
    made = {
        **record(f"s{session:04d}-t{turn:02d}"),
        "session": session,
        "turn": turn,
        "prompt": PROMPT,
        "tools": [],
        "tool_choice": "required",
        "max_tokens": 512,
        "primary": "clean",
        "also": [],
        "evidence": [],
        "corrupted": False,
        "aborted": False,
        "failure": None,
        "stream": True,
        "prompt_tokens": 2600 + 500 * turn,
        "cached_tokens": None if turn == 0 else 512 * turn,
        "completion_tokens": 40,
        "sent_unix": sent,
        "ttft_ms": 800.0 + 10 * session,
        "itl_ms": [18.0, 0.0, 22.5],
        "e2e_latency_ms": 2900.0 + 20 * session,
        "raw": None,
    }
    return {**made, **changes}


def corrupted_record(
    session: int, turn: int, primary: str = "canary_mismatch", **changes: Any
) -> dict[str, Any]:
    """As `full_record`, wrong in one value."""
    evidence = [{"where": "tool_calls[0].arguments.site", "what": "nobody's value"}]
    return full_record(session, turn, primary=primary, corrupted=True, evidence=evidence, **changes)


def failed_record(session: int, turn: int, kind: str = "stalled") -> dict[str, Any]:
    """A request that never became a response."""
    failure = {"kind": kind, "message": f"no token for 30 s from http://gpu7:30000 ({kind})",
               "http_status": None}  # fmt: skip
    return full_record(
        session, turn, primary=kind, failure=failure, response=None, ttft_ms=None, itl_ms=[],
        e2e_latency_ms=30_000.0,
    )  # fmt: skip


def small_run(sessions: int = 12, turns: int = 4) -> list[dict[str, Any]]:
    """A run in the order in which its replies ended: a third of the last turns corrupted."""
    made = []
    for turn in range(turns):
        for session in range(sessions):
            if turn == turns - 1 and session % 3 == 0:
                made.append(corrupted_record(session, turn))
            elif (session, turn) == (1, 1):
                made.append(full_record(session, turn, aborted=True, primary=None))
            elif (session, turn) == (2, 2):
                made.append(failed_record(session, turn))
            else:
                made.append(full_record(session, turn))
    return made


def hostile_run() -> list[dict[str, Any]]:
    """A run in which every text that a server can set is hostile."""
    return [
        {**corrupted_record(place, 0), **hostile_record(text), "session": place, "turn": 0}
        for place, text in enumerate(HOSTILE_TEXTS.values())
    ]


def large_run(sessions: int, turns: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """A run of real weight: prompts, gaps and replies as long as the lab's; 15 % corrupted."""
    source = random.Random(seed)
    words = ("the", "worn", "teacher", "watched", "a", "late", "tunnel", "and", "3F7K-QM2X", "it")
    labels = ("dsml_leak", "canary_mismatch", "schema_violation", "token_salad", "truncated")
    for turn in range(turns):
        for session in range(sessions):
            reply = " ".join(source.choices(words, k=source.choice((30, 160))))
            response = {"content": reply, "reasoning_content": None, "tool_calls": None,
                        "finish_reason": "stop"}  # fmt: skip
            more: dict[str, Any] = {
                "prompt": " ".join(source.choices(words, k=400)),
                "response": response,
                "itl_ms": [round(source.expovariate(1 / 20), 3) for _ in range(30)],
                "ttft_ms": round(source.expovariate(1 / 900), 3),
            }
            if source.random() < 0.15:
                yield corrupted_record(session, turn, source.choice(labels), **more)
            else:
                yield full_record(session, turn, **more)


def write_run(
    output_dir: Path,
    records: Iterable[Mapping[str, Any]],
    *,
    label: str = "tool-calls",
    base_url: str = "http://gpu7:30000",
    sessions: int = 12,
    turns: int = 4,
    command: str = "repro",
) -> Path:
    """A run directory as a killed process leaves it: records and a manifest, and no summary."""
    plan = {
        "scenario": {"name": label, "turns": turns},
        "sessions": sessions,
        "turns": None,
        "seed": 42,
        "context_tokens": None,
        "base_url": base_url,
        "lab": None,
        "model": None,
    }
    new = NewRun(
        command=command,
        label=label,
        argv=("dsv4doctor", command, "--base-url", base_url),
        details={"seed": 42, "plan": plan},
    )
    run = RunDirectory.create(output_dir, new)
    for each in records:
        run.append_record(each)
    run.close()
    return run.path


def finish_run(path: Path, document: Mapping[str, Any], findings: Iterable[Any] = ()) -> Path:
    """Give the run at `path` the summary and findings of an ended one."""
    run = RunDirectory.resume(path, argv=("dsv4doctor",))
    run.write_findings(findings)
    run.write_summary(json.loads(json.dumps(document)))
    run.finish()
    return path
