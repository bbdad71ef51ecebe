"""One pulse: the server asked for its health, a few tokens, and a canary tool call or more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.openai import ChatRequest, chat, encode_body
from dsv4doctor.client.sglang import ask_route, gauges
from dsv4doctor.client.watch import Deadlines, Watchdog
from dsv4doctor.flows.watch_plan import WatchPlan
from dsv4doctor.flows.watch_rules import Canary, Pulse
from dsv4doctor.label import Label
from dsv4doctor.load.history import request_body
from dsv4doctor.load.options import RunOptions
from dsv4doctor.record import exchange_of, record_of
from dsv4doctor.reply import Failure, Reply
from dsv4doctor.session import SessionScript

ROUTE_DEADLINE_S = 5.0
# A few tokens prove that prefill, transfer and decode work; a minute of them would be load.
BEAT_TOKENS = 8
_PROGRESS = ("prompt_tokens_total", "generation_tokens_total")
# Told beside every pulse, and passed on in our own metrics.
TELLING = (
    "num_running_reqs", "num_queue_reqs", "num_prefill_bootstrap_queue_reqs",
    "num_prefill_inflight_queue_reqs", "num_decode_prealloc_queue_reqs",
    "num_decode_transfer_queue_reqs", "gen_throughput", "token_usage", "num_retracted_reqs",
    "load_back_tokens_total", "num_requests_running", "num_requests_waiting",
)  # fmt: skip

Kept = Callable[[dict[str, Any], bytes], None]


@dataclass(slots=True)
class Sender:
    """What every request of a watch shares. `keep` is given the records of what went wrong."""

    plan: WatchPlan
    options: RunOptions
    keep: Kept
    number: int = 0


async def take_pulse(
    sender: Sender, http: HttpClient, turns: list[tuple[SessionScript, int]]
) -> Pulse:
    """One look. Nothing in it takes longer than the plan's time-out, and it never raises."""
    sender.number += 1
    began, at_unix = time.perf_counter(), time.time()
    half = asyncio.create_task(_halfway(http, sender.plan.timeout_s / 2))
    health, (beat, canaries) = await asyncio.gather(
        ask_route(http, "/health", deadline_s=ROUTE_DEADLINE_S), _requests(sender, http, turns)
    )
    answered = _is_answer(beat) and all(canary.answered for canary in canaries)
    before = None if answered or not half.done() else half.result()
    half.cancel()
    after = await gauges(http, deadline_s=ROUTE_DEADLINE_S)
    failure = beat.failure
    is_lost = failure is not None and failure.kind is Label.CONNECTION_ERROR
    is_refused = failure is not None and failure.is_refusal and not _is_answer(beat)
    return Pulse(
        at_unix=at_unix,
        connected=not is_refused and not (is_lost and health.status is None),
        health_status=health.status,
        answered=_is_answer(beat),
        ttft_ms=beat.timing.ttft_ms,
        seconds=time.perf_counter() - began,
        problem=_problem(beat, canaries),
        progressed=None if answered else _has_progressed(before, after),
        canaries=tuple(canaries),
        gauges=_telling(after or before or {}),
    )


async def _halfway(http: HttpClient, wait_s: float) -> dict[str, float] | None:
    """The gauges when half the time is over: what still grows after that is no left-over."""
    await asyncio.sleep(wait_s)
    return await gauges(http, deadline_s=ROUTE_DEADLINE_S)


async def _requests(
    sender: Sender, http: HttpClient, turns: list[tuple[SessionScript, int]]
) -> tuple[Reply, list[Canary]]:
    """The small generation and the canaries, at the same time: each may be what hangs."""
    watchdog = Watchdog(Deadlines(stall_s=None, total_s=sender.plan.timeout_s))
    guard = asyncio.create_task(watchdog.run())
    try:
        beat, canaries = await asyncio.gather(
            _beat(sender, http, watchdog),
            asyncio.gather(
                *(_canary(sender, http, watchdog, script, turn) for script, turn in turns)
            ),
        )
    finally:
        guard.cancel()
    return beat, canaries


async def _beat(sender: Sender, http: HttpClient, watchdog: Watchdog) -> Reply:
    body = {
        "model": sender.options.model,
        "messages": [{"role": "user", "content": f"Count to five. ({sender.number})"}],
        "max_tokens": BEAT_TOKENS,
        "temperature": 0.0,
        "stream": True,
        **sender.options.extra_body,
    }
    request_id = f"{sender.options.run_prefix}-beat-{sender.number}"
    return await _send(http, watchdog, body, request_id)


async def _send(
    http: HttpClient, watchdog: Watchdog, body: Mapping[str, Any], request_id: str
) -> Reply:
    request = ChatRequest(
        body=encode_body(body), stream=bool(body["stream"]), headers={"X-Request-Id": request_id}
    )
    return (await chat(http, request, watchdog)).reply


async def _canary(
    sender: Sender, http: HttpClient, watchdog: Watchdog, script: SessionScript, turn: int
) -> Canary:
    canary = await _ask(sender, http, watchdog, script, turn)
    if not canary.corrupted:
        return canary
    # The same request with nothing cached before it: is it the model, or what it was shown?
    salted = replace(script, salts_prompts=True)
    afresh = await _ask(sender, http, watchdog, salted, turn)
    return replace(canary, afresh=None if not afresh.answered else not afresh.corrupted)


async def _ask(
    sender: Sender, http: HttpClient, watchdog: Watchdog, script: SessionScript, turn: int
) -> Canary:
    from dsv4doctor.detect import judge

    options = sender.options
    body = request_body(script, turn, script.messages(turn), options)
    salted = "-afresh" if script.salts_prompts else ""
    pulse = f"{options.run_prefix}-p{sender.number:05d}{salted}"
    request_id = f"{pulse}-s{script.session:04d}-t{turn:02d}"
    reply = await _send(http, watchdog, body, request_id)
    if reply.failure is not None:
        return Canary(answered=False, request_id=request_id, evidence=reply.failure.message)
    judgement = judge(exchange_of(script, script.turns[turn], reply))
    if judgement.corrupted:
        record = record_of(
            script, script.turns[turn], reply, judgement, request_id=request_id, segment=1
        )
        sender.keep(record, reply.raw)
    first = judgement.evidence[0] if judgement.evidence else None
    return Canary(
        answered=True,
        corrupted=judgement.corrupted,
        label=judgement.primary.value,
        evidence=f"{first.where}: {first.what}" if first else "",
        request_id=request_id,
    )


def _is_answer(reply: Reply) -> bool:
    """Any token proves that a request passes through, an odd reply as well."""
    return reply.failure is None or reply.timing.ttft_ms is not None


def _problem(beat: Reply, canaries: list[Canary]) -> str:
    failure: Failure | None = beat.failure
    if failure is not None:
        return f"small generation: {failure.message}"
    silent = [canary for canary in canaries if not canary.answered]
    return f"canary {silent[0].request_id}: {silent[0].evidence}" if silent else ""


def _has_progressed(
    before: Mapping[str, float] | None, after: Mapping[str, float] | None
) -> bool | None:
    if before is None or after is None:
        return None
    return any(
        after[name] > before[name] for name in after if name in before and name.endswith(_PROGRESS)
    )


def _telling(samples: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in samples.items() if name.rpartition(":")[2] in TELLING}
