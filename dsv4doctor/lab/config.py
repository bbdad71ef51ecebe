"""The engine's settings and the physics behind them, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.lab.model import LOSSES_TO_DERAIL, ModelShape


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """Everything that decides what the engine does.

    Time is virtual. What counts is how many index-K pages a copy stream can land in the slack
    between queueing a batch's loads and its first index-K read: `slack_ms * copy_bytes_per_ms`.
    With the defaults 250 fp8 pages or 128 bf16 pages; a full batch of 13 late sessions loads about
    228. That is why bf16 loses the race and fp8 does not. A main page has 2.39 times the bytes of
    a bf16 index page, so by the second layer's index read all index copies have landed.

    Attributes:
        index_k: how index keys are stored: `fp8`, `bf16` or `fp4`.
        hicache: whether evicted pages have a copy on the host (else they are computed anew).
        faults: names of what is wrong with this engine (`lab.faults`).
        fixes: names of fixes applied (`lab.fixes`).
        seed: orders the requests of a round, and nothing else.
        device_pages: device pool in pages of 256 tokens; 60 sessions of 22 pages need 1,320.
        host_pages: host pool, 4 times the device's, as `--hicache-ratio 4`.
        prefill_batch_requests: most requests in one prefill.
        layers: c4 layers, each with an index-K and a main page for every page id.
        slack_ms: from queueing the loads to the first c4 layer's index-K read.
        copy_bytes_per_ms: bandwidth of each of the two copy streams.
        layer_ms: compute time of a layer after its main read.
        decode_step_ms: one token of every request of the batch.
        reply_block_tokens, reply_block_ms: where replies are stored in the pool (`lab.replies`), a
            decode forward stores a block of so many tokens a request, and takes so long. A real
            step stores one to four: the block shows in sixty sessions what takes a day of them.
        decodes: False for a prefill engine, whose replies are generated elsewhere.
        as_version: the SGLang release whose orderings the engine has (`lab.releases`); None has
            every ordering, so that only `faults` are wrong with it.
        coarse_barrier: SGLANG_FORCE_COARSE_WAR_BARRIER, for releases that read it.
        early_send: SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX.
        overlap_schedule: build the next batch while this one runs; without it the scheduler's own
            `schedule_ms` is added between batches. The index race does not depend on it.
        schedule_ms: what the scheduler needs to build a batch.
        heads, query_noise, losses_to_derail: the model's shape, see `lab.model`.
    """

    index_k: str = "bf16"
    hicache: bool = True
    faults: tuple[str, ...] = ("index-race",)
    fixes: tuple[str, ...] = ()
    seed: int = 0
    device_pages: int = 420
    host_pages: int = 1680
    prefill_batch_requests: int = 13
    layers: int = 2
    slack_ms: float = 1.0
    copy_bytes_per_ms: float = 250 * 8448
    layer_ms: float = 0.05
    decode_step_ms: float = 0.02
    reply_block_tokens: int = 192
    reply_block_ms: float = 3.0
    decodes: bool = True
    as_version: str | None = None
    coarse_barrier: bool = False
    early_send: bool = True
    overlap_schedule: bool = True
    schedule_ms: float = 0.1
    heads: int = 8
    query_noise: float = 1.5
    losses_to_derail: int = LOSSES_TO_DERAIL

    @property
    def model_shape(self) -> ModelShape:
        return ModelShape(
            heads=self.heads,
            query_noise=self.query_noise,
            losses_to_derail=self.losses_to_derail,
        )
