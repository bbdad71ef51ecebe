"""What the lab counts, as `/metrics` and `/v1/loads` show it under SGLang's names."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dsv4doctor.lab.http_launch import UNIFIED
from dsv4doctor.lab.requests import Generation
from dsv4doctor.lab.rounds import Desk, JobState

PREFIX = "sglang:"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# SGLang's own buckets begin finer and end later; these keep what the lab's latencies tell apart.
_BUCKETS_S = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
# Over how long the generation throughput is averaged.
_THROUGHPUT_WINDOW_S = 2.0

Gauges = Mapping[str, float]

# What only the engine knows. Requests and their tokens are counted here, as delivered.
_POOL_GAUGES = (
    "token_usage",
    "full_token_usage",
    "num_used_tokens",
    "kv_used_tokens",
    "kv_available_tokens",
    "kv_evictable_tokens",
    "max_total_num_tokens",
    "page_size",
    "num_pages",
    "hicache_host_used_tokens",
    "hicache_host_total_tokens",
)
_POOL_COUNTERS = (
    "evicted_tokens_total",
    "load_back_tokens_total",
    "hicache_backup_dropped_tokens_total",
)


@dataclass(slots=True)
class Histogram:
    """Observations in seconds, cumulative over the buckets as Prometheus wants them."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(_BUCKETS_S) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        self.total += seconds
        place = next((i for i, edge in enumerate(_BUCKETS_S) if seconds <= edge), len(_BUCKETS_S))
        self.counts[place] += 1

    def lines(self, name: str, labels: str) -> Iterable[str]:
        seen = 0
        for edge, count in zip((*map(str, _BUCKETS_S), "+Inf"), self.counts, strict=True):
            seen += count
            yield f'{name}_bucket{{{labels},le="{edge}"}} {seen}'
        yield f"{name}_sum{{{labels}}} {self.total}"
        yield f"{name}_count{{{labels}}} {seen}"


class Meter:
    """Counters since the launch. Every one counts what really happened."""

    def __init__(self) -> None:
        self.requests = 0
        self.aborted = 0
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.cached_device_tokens = 0
        self.cached_host_tokens = 0
        self.http_requests: dict[tuple[str, str, int], int] = {}
        self.ttft = Histogram()
        self.e2e = Histogram()
        self._delivered: deque[tuple[float, int]] = deque()

    def count_generation(self, generation: Generation, tokens: int, e2e_s: float) -> None:
        """One finished response; an aborted one counts what was delivered of it."""
        self.requests += 1
        self.prompt_tokens += generation.prompt_tokens
        self.generation_tokens += tokens
        self.cached_device_tokens += generation.cached_device_tokens
        self.cached_host_tokens += generation.cached_host_tokens
        self.e2e.observe(e2e_s)
        self._delivered.append((time.monotonic(), tokens))

    def count_http(self, method: str, path: str, status: int) -> None:
        key = (method, path, status)
        self.http_requests[key] = self.http_requests.get(key, 0) + 1

    def throughput(self) -> float:
        """Generated tokens a second over the last moments; 0 when nothing runs."""
        horizon = time.monotonic() - _THROUGHPUT_WINDOW_S
        while self._delivered and self._delivered[0][0] < horizon:
            self._delivered.popleft()
        return sum(tokens for _, tokens in self._delivered) / _THROUGHPUT_WINDOW_S


def render_metrics(meter: Meter, rounds: Desk, model: str, mode: str) -> str:
    """All metrics in Prometheus' text form; `mode` is the disaggregation mode."""
    labels = _labels(model, mode)
    lines: list[str] = []
    for name, value in {**_gauges(meter, rounds), **_pool_gauges(rounds.gauges)}.items():
        lines += [f"# TYPE {PREFIX}{name} gauge", f"{PREFIX}{name}{{{labels}}} {value}"]
    for name, extra, value in _counters(meter, rounds.gauges):
        if not lines[-1].startswith(f"{PREFIX}{name}{{"):
            lines.append(f"# TYPE {PREFIX}{name} counter")
        lines.append(f"{PREFIX}{name}{{{labels}{extra}}} {value}")
    for name, histogram in (
        ("time_to_first_token_seconds", meter.ttft),
        ("e2e_request_latency_seconds", meter.e2e),
    ):
        lines.append(f"# TYPE {PREFIX}{name} histogram")
        lines.extend(histogram.lines(f"{PREFIX}{name}", labels))
    return "\n".join(lines) + "\n"


def render_loads(meter: Meter, rounds: Desk, version: str) -> dict[str, Any]:
    """The body of `/v1/loads`: one rank."""
    gauges = _gauges(meter, rounds)
    pools = _pool_gauges(rounds.gauges)
    used = pools.get("num_used_tokens", 0)
    load: dict[str, Any] = {
        "timestamp": time.time(),
        "dp_rank": 0,
        "num_running_reqs": gauges["num_running_reqs"],
        "num_waiting_reqs": gauges["num_queue_reqs"],
        "num_used_tokens": used,
        "num_total_tokens": used,
        "max_total_num_tokens": pools.get("max_total_num_tokens", 0),
        "token_usage": pools.get("token_usage", 0.0),
        "gen_throughput": gauges["gen_throughput"],
        "cache_hit_rate": gauges["cache_hit_rate"],
        "queues": {
            "waiting": rounds.count(JobState.WAITING),
            "prefill_bootstrap": gauges["num_prefill_bootstrap_queue_reqs"],
            "prefill_inflight": gauges["num_prefill_inflight_queue_reqs"],
            "decode_prealloc": gauges["num_decode_prealloc_queue_reqs"],
            "decode_transfer": gauges["num_decode_transfer_queue_reqs"],
        },
    }
    return {
        "timestamp": datetime.now(UTC).isoformat(),
        "version": version,
        "accelerator": None,
        "num_accelerators": 0,
        "loads": [load],
    }


def _gauges(meter: Meter, rounds: Desk) -> dict[str, float]:
    cached = meter.cached_device_tokens + meter.cached_host_tokens
    return {
        "num_running_reqs": rounds.count(JobState.COMPUTING, JobState.DELIVERING),
        "num_queue_reqs": rounds.prompts_waiting(),
        **rounds.transfer_queues(),
        "num_grammar_queue_reqs": 0,
        "num_paused_reqs": 0,
        "num_retracted_reqs": 0,
        "gen_throughput": round(meter.throughput(), 2),
        "cache_hit_rate": round(cached / meter.prompt_tokens, 4) if meter.prompt_tokens else 0.0,
    }


def _pool_gauges(engine: Gauges) -> dict[str, float]:
    return {name: engine[name] for name in _POOL_GAUGES if name in engine}


def _counters(meter: Meter, engine: Gauges) -> Iterable[tuple[str, str, float]]:
    yield "num_requests_total", "", meter.requests
    yield "num_aborted_requests_total", "", meter.aborted
    yield "prompt_tokens_total", "", meter.prompt_tokens
    yield "generation_tokens_total", "", meter.generation_tokens
    yield "cached_tokens_total", ',cache_source="device"', meter.cached_device_tokens
    yield "cached_tokens_total", ',cache_source="host"', meter.cached_host_tokens
    for (method, path, status), count in meter.http_requests.items():
        extra = f',endpoint="{path}",method="{method}",status_code="{status}"'
        yield "http_responses_total", extra, count
    for name in _POOL_COUNTERS:
        if name in engine:
            yield name, "", engine[name]


def _labels(model: str, mode: str) -> str:
    engine_type = "unified" if mode == UNIFIED else mode
    quoted = model.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return (
        f'model_name="{quoted}",engine_type="{engine_type}",tp_rank="0",pp_rank="0",'
        'dp_rank="0",moe_ep_rank="0"'
    )
