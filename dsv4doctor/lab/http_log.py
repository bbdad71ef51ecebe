"""The lab's log on stderr, in SGLang's form: the same prefix, the same lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsv4doctor.lab.http_info import ARCHITECTURE
from dsv4doctor.lab.http_launch import PREFILL, LaunchOptions
from dsv4doctor.lab.layouts import PAGE_TOKENS
from dsv4doctor.lab.requests import Generation

READY_LINE = "The server is fired up and ready to roll!"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSizes:
    """The engine's pools: pages, layers, and bytes of one page in one layer."""

    device_pages: int
    host_pages: int
    layers: int
    index_item_bytes: int
    main_item_bytes: int


def log(message: str, *, rank: str = " TP0") -> None:
    """One line `[2029-01-31 12:00:00 TP0] message`; the HTTP process has no rank (`rank=""`)."""
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    try:
        print(f"[{stamp}{rank}] {message}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        return


def log_boot(options: LaunchOptions, pool: PoolSizes) -> None:
    """What SGLang tells of a DeepSeek-V4 deployment's memory while it boots."""
    log(f"Use dsv4 attention backend for {ARCHITECTURE}, setting page_size to {PAGE_TOKENS}.")
    full = pool.device_pages * PAGE_TOKENS
    log(
        f"DSV4 pool sizes: full={full}, swa=0, c4={full // 4}, c128={full // 128}, "
        "c4_state=0, c128_state=0"
    )
    if not options.hicache:
        return
    for name, item_bytes in (
        ("deepseek_v4_c4_indexer", pool.index_item_bytes),
        ("deepseek_v4_c4", pool.main_item_bytes),
    ):
        size_gb = pool.host_pages * pool.layers * item_bytes / 2**30
        log(
            f"Allocating {size_gb:.2f} GB host memory for V4 paged pool '{name}' "
            f"(layers={pool.layers}, pages={pool.host_pages}, item_bytes={item_bytes}, "
            "layout=page_first)."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLog:
    """What a batch line says beside its requests: `queues` are the desk's transfer queues."""

    mode: str
    queues: Mapping[str, int]
    queued: int
    gauges: Mapping[str, float]
    seconds: float


def log_prefill(generations: Sequence[Generation], facts: RoundLog) -> None:
    """The batch line; the engine's batches of one round are told in one line."""
    served = [generation for generation in generations if not generation.hung]
    if not served:
        return
    cached = sum(generation.cached_tokens for generation in served)
    fresh = sum(generation.prompt_tokens for generation in served) - cached
    queues = ""
    if facts.mode == PREFILL:
        bootstrapping = facts.queues["num_prefill_bootstrap_queue_reqs"]
        inflight = facts.queues["num_prefill_inflight_queue_reqs"]
        queues = f"#bootstrap-req: {bootstrapping}, #inflight-req: {inflight}, "
    usage = facts.gauges.get("token_usage", 0.0)
    log(
        f"Prefill batch, #new-seq: {len(served)}, #new-token: {fresh}, #cached-token: {cached}, "
        f"full token usage: {usage:.2f}, swa token usage: 0.00, "
        f"#running-req: {len(served)}, #queue-req: {facts.queued}, #pending-token: 0, {queues}"
        f"cuda graph: False, input throughput (token/s): {fresh / max(facts.seconds, 1e-6):.2f}"
    )


def log_decode(generations: Sequence[Generation], facts: RoundLog) -> None:
    """A decode engine's batch line: one for each batch that came over."""
    tokens = sum(generation.prompt_tokens for generation in generations)
    made = sum(len(generation.pieces) for generation in generations)
    usage = tokens / max(facts.gauges.get("max_total_num_tokens", 0.0), 1.0)
    log(
        f"Decode batch, #running-req: {len(generations)}, #full token: {tokens}, "
        f"full token usage: {usage:.2f}, #swa token: 0, swa token usage: 0.00, "
        "pre-allocated usage: 0.00, "
        f"#prealloc-req: {facts.queues['num_decode_prealloc_queue_reqs']}, "
        f"#transfer-req: {facts.queues['num_decode_transfer_queue_reqs']}, #retracted-req: 0, "
        f"cuda graph: True, gen throughput (token/s): {made / max(facts.seconds, 1e-6):.2f}, "
        f"#queue-req: {facts.queued}"
    )
