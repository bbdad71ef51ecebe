"""Questions to a server that has gone silent: its health routes, a real generation, its gauges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass

from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.openai import ChatRequest, chat, encode_body
from dsv4doctor.client.sglang import ask_route, gauges
from dsv4doctor.client.watch import Deadlines, Watchdog
from dsv4doctor.load.events import Probe
from dsv4doctor.load.options import RunOptions
from dsv4doctor.target import Endpoint

# Gauges and counters worth showing beside a silence, as substrings of their names.
_TELLING = ("num_running", "num_queue", "queue_reqs", "num_requests", "inflight", "token_usage",
            "cache_usage", "gen_throughput", "retracted", "aborted", "failed", "utilization",
            "tokens_total", "load_back", "num_paused")  # fmt: skip

_QUEUES = ("sglang:num_queue_reqs", "vllm:num_requests_waiting")

# Counters that grow while a server works, whatever our streams show.
_PROGRESS = ("prompt_tokens_total", "generation_tokens_total")

_GENERATION = "generation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """All answers; `works` says that tokens were counted by the server while we asked, `refusal`
    why the generation was turned down, None where it was served or met silence."""

    probes: tuple[Probe, ...]
    gauges: Mapping[str, float]
    works: bool
    refusal: str | None = None

    @property
    def generates(self) -> bool:
        return any(probe.answered for probe in self.probes if probe.name == _GENERATION)


async def probe_server(endpoint: Endpoint, options: RunOptions) -> Probed:
    """Ask everything at once over fresh connections, each within `probe_timeout_s`."""
    limit_s = options.probe_timeout_s
    async with HttpClient(endpoint, connect_timeout_s=min(limit_s, 5.0)) as http:
        before = await gauges(http, deadline_s=min(limit_s, 5.0))
        health, health_generate, (generation, refusal) = await asyncio.gather(
            _route(http, "/health", limit_s),
            _route(http, "/health_generate", limit_s),
            _generate(http, options),
        )
        after = await gauges(http, deadline_s=min(limit_s, 5.0))
    return Probed(
        probes=(health, health_generate, generation),
        gauges=_telling(after or before or {}),
        # Our own small generation moves the counters as well, if it was answered.
        works=not generation.answered and _has_progressed(before, after),
        refusal=refusal,
    )


async def queue_length(endpoint: Endpoint) -> float | None:
    """Requests that the server says are waiting; None when it does not say."""
    async with HttpClient(endpoint, connect_timeout_s=5.0) as http:
        samples = await gauges(http)
    return next((samples[name] for name in _QUEUES if name in samples), None) if samples else None


async def _route(http: HttpClient, route: str, limit_s: float) -> Probe:
    answer = await ask_route(http, route, deadline_s=limit_s)
    return Probe(
        name=route,
        answered=answer.status is not None,
        status=answer.status,
        seconds=answer.seconds,
        detail=answer.problem or "",
    )


async def _generate(http: HttpClient, options: RunOptions) -> tuple[Probe, str | None]:
    """The probe, and the refusal that it met, if it met one."""
    body = {
        "model": options.model,
        "messages": [{"role": "user", "content": "Say yes."}],
        "max_tokens": 1,
        "temperature": 0.0,
        "stream": True,
    }
    limits = Deadlines(stall_s=None, total_s=options.probe_timeout_s)
    watchdog = Watchdog(limits)
    guard = asyncio.create_task(watchdog.run())
    start = time.perf_counter()
    request = ChatRequest(
        body=encode_body(body),
        stream=True,
        headers={**dict(options.headers), "X-Request-Id": f"{options.run_prefix}-probe"},
    )
    try:
        reply = (await chat(http, request, watchdog)).reply
    finally:
        guard.cancel()
    failure = reply.failure
    # Any answer proves that a request passes through, an odd one as well.
    answered = failure is None or reply.timing.ttft_ms is not None
    is_refused = failure is not None and failure.is_refusal and not answered
    probe = Probe(
        name=_GENERATION,
        answered=answered,
        status=200 if failure is None else failure.http_status,
        seconds=time.perf_counter() - start,
        detail="" if failure is None else failure.message,
    )
    return probe, probe.detail if is_refused else None


def _telling(samples: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in samples.items() if any(t in name for t in _TELLING)}


def _has_progressed(before: Mapping[str, float] | None, after: Mapping[str, float] | None) -> bool:
    if before is None or after is None:
        return False
    return any(
        after[name] > before[name] for name in after if name in before and name.endswith(_PROGRESS)
    )
