"""The server's counters that tell what a block really used: host hits, cached tokens, drafts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dsv4doctor.client.chunk import decode_text
from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.http_errors import HttpFailure
from dsv4doctor.client.sglang import parse_metrics
from dsv4doctor.target import Endpoint

DEADLINE_S = 10.0
_HOST_HITS = re.compile(
    r'^sglang:cached_tokens_total\{[^}]*source="host"[^}]*\}\s+(\S+)', re.MULTILINE
)
# Releases without the label have this one; it counts the same tokens when they are loaded.
_LOAD_BACK = "sglang:load_back_tokens_total"
_CACHED = "sglang:cached_tokens_total"
_ACCEPT_LENGTH = "sglang:spec_accept_length"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Counters since the launch, summed over servers; None where no server has them.

    `accept_length` is a gauge, the last server's that has it.
    """

    host_hit_tokens: float | None = None
    cached_tokens: float | None = None
    accept_length: float | None = None

    def since(self, earlier: Counters) -> Counters:
        """What was counted after `earlier`; a counter that began anew counts from its start."""
        return Counters(
            host_hit_tokens=_grown(self.host_hit_tokens, earlier.host_hit_tokens),
            cached_tokens=_grown(self.cached_tokens, earlier.cached_tokens),
            accept_length=self.accept_length,
        )


def read_counters(endpoints: Sequence[Endpoint]) -> Counters:
    """The counters of all `endpoints` together; one that has no `/metrics` adds nothing."""
    total = Counters()
    for text in asyncio.run(_fetch_all(endpoints)):
        one = counters_of(text)
        total = Counters(
            host_hit_tokens=_sum(total.host_hit_tokens, one.host_hit_tokens),
            cached_tokens=_sum(total.cached_tokens, one.cached_tokens),
            accept_length=one.accept_length or total.accept_length,
        )
    return total


def counters_of(text: str) -> Counters:
    """The counters in one server's metrics, Prometheus' text form."""
    samples = parse_metrics(text)
    by_label = [float(value) for value in _HOST_HITS.findall(text)]
    host_hits = sum(by_label) if by_label else samples.get(_LOAD_BACK)
    return Counters(
        host_hit_tokens=host_hits,
        cached_tokens=samples.get(_CACHED),
        accept_length=samples.get(_ACCEPT_LENGTH),
    )


async def _fetch_all(endpoints: Sequence[Endpoint]) -> list[str]:
    return [text for text in await asyncio.gather(*map(_fetch, endpoints)) if text is not None]


async def _fetch(endpoint: Endpoint) -> str | None:
    async with HttpClient(endpoint, connect_timeout_s=DEADLINE_S) as http:
        try:
            answer = await http.fetch("/metrics", deadline_s=DEADLINE_S)
        except HttpFailure:
            return None
    return decode_text(answer.body) if answer.status == 200 else None


def _sum(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other


def _grown(now: float | None, before: float | None) -> float | None:
    if now is None:
        return None
    return now - before if before is not None and now >= before else now
