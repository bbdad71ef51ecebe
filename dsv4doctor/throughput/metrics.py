"""SGLang's keys over one or more blocks of requests, by SGLang's definitions.

- TTFT: request sent to the first chunk that carries output. ITL: every gap between two such chunks,
  all requests pooled. TPOT: (E2E - TTFT) / (output tokens - 1), one a request of at least two
  tokens. E2E: request sent to the last byte read.
- Throughputs: totals of completed requests over the time from the first request sent to the last
  byte of the last one; over several blocks, totals over the sum of their times.
- `concurrency`: the sum of E2E over that time. `max_output_tokens_per_s` and
  `max_concurrent_requests`: the fullest second, counted from the first request's sending.
- Percentiles by the linear method. No samples give None, where upstream prints 0.

Source: python/sglang/benchmark/serving.py of SGLang (`calculate_metrics`), read at 00f9ec47.
Beyond it: `n_*` beside every distribution, `tokens_per_chunk`, and the pace of single streams.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dsv4doctor.throughput.sample import Sample

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PERCENTILES = (90, 95, 99)
# Distributions in the order in which SGLang prints them.
LATENCIES = ("e2e_latency", "ttft", "tpot", "itl")

Block = Sequence[Sample]


def metrics_of(blocks: Sequence[Block]) -> dict[str, Any]:
    """SGLang's keys over the completed requests of `blocks`; failed ones only stretch the time."""
    whole = [sample for block in blocks for sample in block if sample.failure is None]
    seconds = sum(map(duration_s, blocks))
    return {
        "duration": seconds,
        "completed": len(whole),
        **_throughputs(whole, seconds),
        **_latencies(whole),
        **_paces(whole),
        "concurrency": _per_second(sum(s.e2e_latency_ms for s in whole) / 1000, seconds),
        **_fullest_seconds(blocks),
    }


def duration_s(block: Block) -> float:
    """Seconds from the first request sent to the end of the last; 0 over none."""
    if not block:
        return 0.0
    return max(s.end_unix for s in block) - min(s.sent_unix for s in block)


def _throughputs(whole: Block, seconds: float) -> dict[str, Any]:
    inputs = sum(sample.input_tokens for sample in whole)
    outputs = sum(sample.output_tokens for sample in whole)
    clean = sum(sample.output_tokens for sample in whole if not sample.corrupted)
    return {
        "total_input_tokens": inputs,
        "total_output_tokens": outputs,
        "output_tokens_counted": all(sample.counted for sample in whole) if whole else None,
        "request_throughput": _per_second(len(whole), seconds),
        "input_throughput": _per_second(inputs, seconds),
        "output_throughput": _per_second(outputs, seconds),
        "total_throughput": _per_second(inputs + outputs, seconds),
        "uncorrupted_output_throughput": _per_second(clean, seconds),
    }


def _latencies(whole: Block) -> dict[str, Any]:
    samples: dict[str, list[float | None]] = {
        "e2e_latency": [sample.e2e_latency_ms for sample in whole],
        "ttft": [sample.ttft_ms for sample in whole],
        "tpot": [sample.tpot_ms for sample in whole],
        "itl": [gap for sample in whole for gap in sample.itl_ms],
    }
    found: dict[str, Any] = {}
    for name in LATENCIES:
        values = [value for value in samples[name] if value is not None]
        found.update(summary(name, values))
    return found


def summary(name: str, values: Sequence[float]) -> dict[str, Any]:
    """SGLang's keys of one distribution in ms, with its `n`; None over no samples."""
    import numpy as np

    keys = [f"{kind}_{name}_ms" for kind in ("mean", "median", "std")]
    keys += [*(f"p{share}_{name}_ms" for share in PERCENTILES), f"max_{name}_ms"]
    if not values:
        return {**dict.fromkeys(keys), f"n_{name}": 0}
    held: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    points = [float(held.mean()), float(np.median(held)), float(held.std())]
    points += [*map(float, np.percentile(held, PERCENTILES)), float(held.max())]
    return {**dict(zip(keys, points, strict=True)), f"n_{name}": len(values)}


def _paces(whole: Block) -> dict[str, Any]:
    import numpy as np

    paces = [pace for pace in (sample.tokens_per_s for sample in whole) if pace is not None]
    chunks = sum(sample.chunks for sample in whole)
    tokens = sum(sample.output_tokens for sample in whole if sample.chunks)
    return {
        "mean_request_tokens_per_s": float(np.mean(paces)) if paces else None,
        "median_request_tokens_per_s": float(np.median(paces)) if paces else None,
        "p10_request_tokens_per_s": float(np.percentile(paces, 10)) if paces else None,
        "tokens_per_chunk": tokens / chunks if chunks else None,
    }


def _fullest_seconds(blocks: Sequence[Block]) -> dict[str, Any]:
    tokens, requests = 0, 0
    for block in blocks:
        whole = [sample for sample in block if sample.failure is None]
        if whole:
            tokens = max(tokens, _most_tokens(whole))
            requests = max(requests, _most_requests(whole))
    return {"max_output_tokens_per_s": float(tokens), "max_concurrent_requests": requests}


def _most_tokens(whole: Block) -> int:
    import numpy as np

    began = min(sample.sent_unix for sample in whole)
    seconds = [
        sample.sent_unix - began + (sample.ttft_ms + np.cumsum((0.0, *sample.itl_ms))) / 1000
        for sample in whole
        if sample.ttft_ms is not None
    ]
    if not seconds:
        return 0
    return int(np.bincount(np.concatenate(seconds).astype(np.int64)).max())


def _most_requests(whole: Block) -> int:
    began = min(sample.sent_unix for sample in whole)
    last = max(sample.end_unix for sample in whole)
    busy = [0] * (math.floor(last - began) + 1)
    for sample in whole:
        for second in range(int(sample.sent_unix - began), int(sample.end_unix - began) + 1):
            busy[second] += 1
    return max(busy)


def _per_second(count: float, seconds: float) -> float | None:
    return count / seconds if seconds > 0 else None
