"""What the engine counts, under SGLang's metric names (the server adds the `sglang:`)."""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.lab.layouts import PAGE_TOKENS
from dsv4doctor.lab.pools import PagePool
from dsv4doctor.lab.radix import RadixCache


@dataclass(slots=True, kw_only=True)
class Totals:
    """Counters since the engine began; `device_tokens` and `host_tokens` are prefix hits."""

    requests: int = 0
    aborted: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    device_tokens: int = 0
    host_tokens: int = 0


def gauges(
    device: PagePool, host: PagePool | None, radix: RadixCache, totals: Totals
) -> dict[str, float]:
    """Pools and cache in tokens, as they stand."""
    evictable = radix.evictable_pages
    used = device.capacity - device.free_pages - evictable
    hits = totals.device_tokens + totals.host_tokens
    return {
        "token_usage": used / device.capacity,
        "full_token_usage": used / device.capacity,
        "num_used_tokens": used * PAGE_TOKENS,
        "kv_used_tokens": used * PAGE_TOKENS,
        "kv_available_tokens": device.free_pages * PAGE_TOKENS,
        "kv_evictable_tokens": evictable * PAGE_TOKENS,
        "max_total_num_tokens": device.capacity * PAGE_TOKENS,
        "page_size": PAGE_TOKENS,
        "num_pages": device.capacity,
        "cache_hit_rate": hits / max(totals.prompt_tokens, 1),
        "cached_tokens_total_device": totals.device_tokens,
        "cached_tokens_total_host": totals.host_tokens,
        "evicted_tokens_total": radix.evicted_pages * PAGE_TOKENS,
        "load_back_tokens_total": totals.host_tokens,
        "hicache_host_used_tokens": radix.host_pages * PAGE_TOKENS,
        "hicache_host_total_tokens": (host.capacity if host else 0) * PAGE_TOKENS,
        "hicache_backup_dropped_tokens_total": radix.dropped_backups * PAGE_TOKENS,
        "prompt_tokens_total": totals.prompt_tokens,
        "generation_tokens_total": totals.generation_tokens,
        "num_requests_total": totals.requests,
        "num_aborted_requests_total": totals.aborted,
    }
