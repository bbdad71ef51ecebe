"""Counts of a run, one record at a time, so that a run of any length fits in memory.

The same tally is fed live and, on resume or in `report`, from the records on disk.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Context bins are this wide; further on they double, so that 2k..80k still makes a short table.
BIN_TOKENS = 1024
WIDE_FROM_TOKENS = 16 * 1024
# What a token is worth when the server reports no counts: an estimate, never used for rates.
BYTES_PER_TOKEN = 4
# How many records of each label are kept as examples.
EXAMPLES_PER_LABEL = 3


def context_bin(tokens: int) -> int:
    """The lower edge, in tokens, of the bin that `tokens` falls into."""
    if tokens < WIDE_FROM_TOKENS:
        return tokens // BIN_TOKENS * BIN_TOKENS
    edge = WIDE_FROM_TOKENS
    while tokens >= 2 * edge:
        edge *= 2
    return edge


def commonest(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Names and counts, the commonest first, equal ones by name: the order in which replies
    happened to end must not show."""
    return sorted(counts.items(), key=lambda held: (-held[1], held[0]))


@dataclass(slots=True)
class Share:
    """Judged responses of one group and how many of them were corrupted."""

    responses: int = 0
    corrupted: int = 0

    def add(self, *, corrupted: bool) -> None:
        self.responses += 1
        self.corrupted += corrupted


@dataclass(slots=True)
class Tally:
    """Everything `repro` reports that is a count, a sum or a distribution."""

    by_session: dict[int, Share] = field(default_factory=dict)
    by_turn: dict[int, Share] = field(default_factory=dict)
    by_context: dict[int, Share] = field(default_factory=dict)
    by_kind: dict[str, Share] = field(default_factory=dict)
    by_label: Counter[str] = field(default_factory=Counter)
    also_label: Counter[str] = field(default_factory=Counter)
    by_failure: Counter[str] = field(default_factory=Counter)
    ended_turns: Counter[int] = field(default_factory=Counter)
    failed_sessions: set[int] = field(default_factory=set)
    aborted_by_us: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    prompt_tokens: int = 0
    ttft_ms: array[float] = field(default_factory=lambda: array("d"))
    itl_ms: array[float] = field(default_factory=lambda: array("d"))
    e2e_latency_ms: array[float] = field(default_factory=lambda: array("d"))
    first_sent_unix: float | None = None
    last_end_unix: float | None = None
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def responses(self) -> int:
        return sum(self.by_label.values())

    @property
    def corrupted_responses(self) -> int:
        return sum(share.corrupted for share in self.by_session.values())

    @property
    def corrupted_sessions(self) -> int:
        return sum(share.corrupted > 0 for share in self.by_session.values())

    def complete_sessions(self, turns: int) -> int:
        """Judged sessions that went to their end without a failure: what a clean run counts on."""
        return sum(
            self.ended_turns[session] >= turns and session not in self.failed_sessions
            for session in self.by_session
        )

    @property
    def failures(self) -> int:
        return sum(self.by_failure.values())

    @property
    def output_throughput(self) -> float | None:
        """Generated tokens a second over the wall time with requests; None without counts."""
        if self.first_sent_unix is None or self.last_end_unix is None or not self.completion_tokens:
            return None
        seconds = self.last_end_unix - self.first_sent_unix
        return self.completion_tokens / seconds if seconds > 0 else None

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one record in the form of `record.record_of`."""
        self._add_usage(record)
        self.ended_turns[record["session"]] += 1
        if record["aborted"]:
            self.aborted_by_us += 1
            return
        if record["failure"]:
            self.by_failure[record["failure"]["kind"]] += 1
            self.failed_sessions.add(record["session"])
            self._keep_example(record["failure"]["kind"], record)
            return
        corrupted = bool(record["corrupted"])
        self.by_label[record["primary"]] += 1
        self.also_label.update(record["also"])
        for table, key in (
            (self.by_session, record["session"]),
            (self.by_turn, record["turn"]),
            (self.by_context, context_bin(_context_tokens(record))),
        ):
            table.setdefault(key, Share()).add(corrupted=corrupted)
        self.by_kind.setdefault(record["kind"], Share()).add(corrupted=corrupted)
        self._add_latency(record)
        if corrupted:
            self._keep_example(record["primary"], record)

    def _add_latency(self, record: Mapping[str, Any]) -> None:
        if record["stream"] and record["ttft_ms"] is not None:
            self.ttft_ms.append(record["ttft_ms"])
            self.itl_ms.extend(record["itl_ms"])
        self.e2e_latency_ms.append(record["e2e_latency_ms"])

    def _add_usage(self, record: Mapping[str, Any]) -> None:
        self.completion_tokens += record["completion_tokens"] or 0
        self.prompt_tokens += record["prompt_tokens"] or 0
        self.cached_tokens += record["cached_tokens"] or 0
        sent = record["sent_unix"]
        end = sent + record["e2e_latency_ms"] / 1000
        self.first_sent_unix = min(sent, self.first_sent_unix or sent)
        self.last_end_unix = max(end, self.last_end_unix or end)

    def _keep_example(self, label: str, record: Mapping[str, Any]) -> None:
        """The first turns of the first sessions, in whatever order they ended."""
        kept = self.examples.setdefault(label, [])
        if len(kept) == EXAMPLES_PER_LABEL and _place(record) >= _place(kept[-1]):
            return
        kept.append(dict(record))
        kept.sort(key=_place)
        del kept[EXAMPLES_PER_LABEL:]


def _place(record: Mapping[str, Any]) -> tuple[int, int]:
    return record["turn"], record["session"]


def _context_tokens(record: Mapping[str, Any]) -> int:
    tokens = record["prompt_tokens"]
    if isinstance(tokens, int):
        return tokens
    return int(record.get("prompt_bytes") or 0) // BYTES_PER_TOKEN
