"""How fast pages go from a prefill to a decode engine, in virtual time, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.lab.config import EngineConfig

# SGLANG_DISAGGREGATION_THREAD_POOL_SIZE of one rank, as upstream's default on a small machine.
TRANSFER_WORKERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PdPhysics:
    """What counts is who is faster.

    One transfer worker has half a copy stream's bandwidth, so that a prefix which is sent while it
    is still being loaded is overtaken by its loads only where they had a start. The decode engine
    stores index-K at `store_bytes_per_ms`: more than one worker's share of index bytes (0.3 of
    bf16's pages, 0.18 of fp8's), less than four workers' in bf16. So the store keeps up with any
    single request and with fp8, and falls behind by the bytes of a batch in bf16.

    Attributes:
        workers: transfer workers of the prefill engine; each takes one request's pages at a time.
        link_bytes_per_ms: bandwidth of one worker.
        store_bytes_per_ms: bandwidth of the decode engine's index-K store.
        poll_ms: from a request's last page to its first decode step: the poll and the batch's
            making. What the store has left to do by then is late.
    """

    workers: int = TRANSFER_WORKERS
    link_bytes_per_ms: float = 125 * 8448
    store_bytes_per_ms: float = 100 * 8448
    poll_ms: float = 3.0


def physics_of(config: EngineConfig) -> PdPhysics:
    """The physics beside an engine of these settings: the link keeps half a copy stream's speed."""
    link = config.copy_bytes_per_ms / 2
    return PdPhysics(link_bytes_per_ms=link, store_bytes_per_ms=0.8 * link)
