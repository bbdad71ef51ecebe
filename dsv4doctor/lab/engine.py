"""The lab's engine: rounds of requests in, replies out, on a virtual clock.

A round is served the same whatever order it arrived in and however long that took: its requests are
sorted by a hash of how their conversation begins, cut into prefill batches, and ordered within a
batch by a hash of the prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dsv4doctor.errors import UsageError
from dsv4doctor.lab.assembly import check, physics_of, stores_replies
from dsv4doctor.lab.backups import Backups
from dsv4doctor.lab.clock import TransferThreadDead
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.content import ContentStore, chain_digests, page_count
from dsv4doctor.lab.faults import standing
from dsv4doctor.lab.gauges import Totals, gauges
from dsv4doctor.lab.groundtruth import GroundTruth
from dsv4doctor.lab.latents import MAIN_PAGE_BYTES
from dsv4doctor.lab.layouts import INDEX_FORMATS, PAGE_TOKENS
from dsv4doctor.lab.model import Gathered, generate
from dsv4doctor.lab.plan import Plan
from dsv4doctor.lab.pools import PagePool
from dsv4doctor.lab.prefill import Job, Prefill
from dsv4doctor.lab.ranks import Demand, TensorRanks
from dsv4doctor.lab.reader import read
from dsv4doctor.lab.recording import Recorder
from dsv4doctor.lab.rendering import render
from dsv4doctor.lab.replies import BlockPhysics, Replies, reply_tokens
from dsv4doctor.lab.requests import EngineRequest, Generation

if TYPE_CHECKING:
    from dsv4doctor.lab.observing import EngineObserver

# How a conversation begins: past any shared system prompt, so that sessions differ here.
_OPENING_TOKENS = 1024
# Encoded pages kept for reuse: a fresh fp8 page costs 0.6 ms, a bf16 one is 32 KiB.
_STORE_PAGES = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Wedge:
    """What stands still: `what`, since `since_ms` (virtual), after the abort of `after_rid`."""

    what: str
    since_ms: float
    after_rid: str


@dataclass(slots=True, kw_only=True)
class _Work:
    """One request of a round with all that is known of it before it runs."""

    request: EngineRequest
    job: Job
    plan: Plan
    round_key: bytes
    batch_key: bytes


class Engine:
    """A miniature SGLang engine; not thread-safe: one caller at a time."""

    def __init__(
        self,
        config: EngineConfig,
        ground_truth: Path | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        check(config)
        self._recorder = recorder
        self.config = config
        self.ground_truth = GroundTruth(ground_truth)
        self.wedged: Wedge | None = None
        form = INDEX_FORMATS[config.index_k]
        self._store = ContentStore(form, config.layers, _STORE_PAGES)
        pool = (config.layers, form.page_bytes, MAIN_PAGE_BYTES)
        self._device = PagePool(config.device_pages + 1, *pool)
        self._host = PagePool(config.host_pages + 1, *pool) if config.hicache else None
        self._prefill = Prefill(self._device, self._host, self._store, physics_of(config))
        self._replies = self._make_replies() if stores_replies(config) else None
        self._faults = standing(config.faults, config.fixes)
        self._killed_by: str | None = None
        self._totals = Totals()
        self._ranks = TensorRanks(
            overlap=config.overlap_schedule,
            await_results=all(fault.ranks_await_results for fault in self._faults),
            schedule_ms=config.schedule_ms,
        )
        # Told of every batch that was prefilled, before its pages may be given up.
        self.on_prefilled: Callable[[Sequence[tuple[EngineRequest, Job]]], None] | None = None

    @property
    def prefill(self) -> Prefill:
        """The device's streams and cache, for whoever takes pages away while it runs."""
        return self._prefill

    def observe(self, observer: EngineObserver) -> None:
        """Have `observer` told of everything that touches a page."""
        self._prefill.observer = observer
        if self._replies is not None:
            self._replies.observe(observer)

    @property
    def device(self) -> PagePool:
        """The device's pages."""
        return self._device

    def _make_replies(self) -> Replies:
        backups = None
        if self._host is not None:
            backups = Backups(
                self._prefill.streams,
                self._prefill.clock,
                self._prefill.radix,
                (self._device, self._host),
                self.config.copy_bytes_per_ms,
            )
        block = BlockPhysics(
            tokens=self.config.reply_block_tokens, duration_ms=self.config.reply_block_ms
        )
        return Replies(self._prefill, block, backups)

    @property
    def max_prompt_tokens(self) -> int:
        """The longest prompt that fits the device pool."""
        return self._device.capacity * PAGE_TOKENS

    @property
    def parser_leaks_negative_numbers(self) -> bool:
        """Whether the output parser is to have the fault `parser-negative-number`."""
        return any(fault.parser_leaks_negative_numbers for fault in self._faults)

    def prompt_tokens(self, request: EngineRequest) -> int:
        """The length of the request's prompt."""
        return len(render(request.messages, request.tools).tokens)

    def _work(self, request: EngineRequest) -> _Work:
        prompt = render(request.messages, request.tools)
        tokens = prompt.tokens
        salt = self.config.seed.to_bytes(8, "little", signed=True)
        return _Work(
            request=request,
            job=Job(
                rid=request.rid,
                room=request.room.number if request.room else None,
                tokens=tokens,
                digests=chain_digests(tokens),
            ),
            plan=read(request, prompt),
            round_key=blake2b(tokens[:_OPENING_TOKENS].tobytes(), key=salt).digest(),
            batch_key=blake2b(tokens.tobytes(), key=salt).digest(),
        )

    def serve_round(self, requests: Sequence[EngineRequest]) -> list[Generation]:
        """Serve requests that arrived together; the answers are in the requests' order.

        Raises:
            UsageError: if a prompt is longer than `max_prompt_tokens`.
        """
        work = [self._work(request) for request in requests]
        for item in work:
            if page_count(item.job.tokens) > self._device.capacity:
                raise UsageError(
                    f"the prompt has {len(item.job.tokens)} tokens, the pool holds "
                    f"{self.max_prompt_tokens}"
                )
        # Between rounds the device comes to rest.
        self._prefill.clock.rest()
        self._ranks.rest()
        # Equal prompts are told apart by name; which of them comes first then changes nothing.
        waiting = sorted(work, key=lambda w: (w.round_key, w.batch_key, w.request.rid))
        answers: dict[int, Generation] = {}
        while waiting:
            batch, waiting = self._next_batch(waiting)
            for item, generation in zip(batch, self._serve(batch), strict=True):
                answers[id(item)] = generation
                self.ground_truth.served(item.request, generation)
        if self._prefill.observer is not None and self.wedged is None:
            # As before the next round: what is still under way can then be told.
            self._prefill.clock.rest()
        self.ground_truth.flush()
        generations = [answers[id(item)] for item in work]
        if self._recorder is not None:
            self._recorder.round(requests, generations)
        return generations

    def _next_batch(self, waiting: list[_Work]) -> tuple[list[_Work], list[_Work]]:
        """As many as a batch and the pool may hold, admitted, in the order of the batch."""
        size = self.config.prefill_batch_requests
        batch = sorted(waiting[:size], key=lambda w: (w.batch_key, w.request.rid))
        if self.wedged is not None:
            return batch, waiting[size:]
        available = self._device.free_pages + self._prefill.radix.evictable_pages
        admitted: list[_Work] = []
        for item in batch:
            if not self._admit(item):
                break
            admitted.append(item)
        self._meet([item.job for item in admitted], available)
        return admitted, batch[len(admitted) :] + waiting[size:]

    def _meet(self, jobs: Sequence[Job], available: int) -> None:
        """Both ranks enter the batch's first collective; for ever, if they bring different ones."""
        demands = []
        seen: set[int] = set()
        for job in jobs:
            pages = {node.serial for node in job.path} - seen
            seen |= pages
            taken = len(job.loads) + len(job.fresh)
            demands.append(Demand(taken=taken, locked=max(0, len(pages) - len(job.loads))))
        apart = self._ranks.disagree(available, demands)
        if apart is not None:
            brought = " and ".join(map(str, apart.requests))
            self.wedged = Wedge(
                what=f"two ranks wait in collectives of {brought} requests",
                since_ms=self._prefill.clock.now_ms,
                after_rid="",
            )

    def _admit(self, item: _Work) -> bool:
        job, replies = item.job, self._replies
        if replies is None:
            return self._prefill.admit(job)
        replies.settle()
        job.reply_pages = replies.reply_pages(len(job.tokens), item.request.max_tokens)
        while not self._prefill.admit(job):
            if not replies.make_room():
                return False
        return True

    def _serve(self, batch: list[_Work]) -> list[Generation]:
        jobs = [item.job for item in batch]
        if self.wedged is None:
            try:
                self._prefill.run(jobs)
            except TransferThreadDead:
                self.wedged = Wedge(
                    what="the compute stream waits for a layer's load event",
                    since_ms=self._prefill.clock.now_ms,
                    after_rid=self._killed_by or "",
                )
        if self.wedged is not None:
            return [
                Generation(rid=item.request.rid, prompt_tokens=len(item.job.tokens), hung=True)
                for item in batch
            ]
        if self.on_prefilled is not None:
            self.on_prefilled([(item.request, item.job) for item in batch])
        generations = [self._reply(item) for item in batch]
        if self._replies is not None:
            ends = zip(jobs, generations, strict=True)
            self._replies.run([(job, reply_tokens(generation)) for job, generation in ends])
        else:
            for item in batch:
                self._prefill.finish(item.job)
            steps = max(len(generation.pieces) for generation in generations)
            self._prefill.clock.work(steps * self.config.decode_step_ms)
        if not self.config.overlap_schedule:
            self._prefill.clock.work(self.config.schedule_ms)
        self._ranks.ran(len(batch), len({page for job in jobs for page in job.row}))
        return generations

    def _reply(self, item: _Work) -> Generation:
        job = item.job
        for read_ in job.stale:
            self.ground_truth.stale_read(read_, item.request)
        gathered = job.gathered(self.config.index_k)
        if self._recorder is not None:
            self._recorder.read(job.rid, gathered)
        pieces, finish_reason = generate(
            job.tokens,
            item.plan,
            gathered,
            self.config.model_shape,
            item.request.max_tokens,
        )
        self._totals.requests += 1
        self._totals.prompt_tokens += len(job.tokens)
        self._totals.generation_tokens += len(pieces)
        self._totals.device_tokens += job.cached_device_tokens
        self._totals.host_tokens += job.cached_host_tokens
        return Generation(
            rid=job.rid,
            prompt_tokens=len(job.tokens),
            cached_tokens=job.cached_device_tokens + job.cached_host_tokens,
            cached_device_tokens=job.cached_device_tokens,
            cached_host_tokens=job.cached_host_tokens,
            pieces=pieces,
            finish_reason=finish_reason,
        )

    def right_bytes(self, request: EngineRequest) -> Gathered:
        """What a prefill of `request` would read if every byte were its own."""
        tokens = render(request.messages, request.tools).tokens
        digests = chain_digests(tokens)
        pages = self._store.pages(tokens, range(len(digests)), digests, request.rid)
        return Gathered(
            index_format=self.config.index_k,
            index_k=tuple(
                np.stack([page.index_k[layer] for page in pages])
                for layer in range(self.config.layers)
            ),
            latents=np.stack([page.main for page in pages]),
        )

    def generate_from(self, request: EngineRequest, gathered: Gathered) -> str:
        """The text that the model makes of a request and what was read for it."""
        prompt = render(request.messages, request.tools)
        pieces, _ = generate(
            prompt.tokens,
            read(request, prompt),
            gathered,
            self.config.model_shape,
            request.max_tokens,
        )
        return "".join(pieces)

    def healthy_text(self, request: EngineRequest) -> str:
        """The same model's reply on right bytes."""
        return self.generate_from(request, self.right_bytes(request))

    def on_abort(self, rid: str) -> None:
        """A client hung up on a request that is not finished."""
        self._totals.aborted += 1
        if self._recorder is not None:
            self._recorder.abort(rid)
        kills = (fault.abort_kills_transfer_thread for fault in self._faults)
        if any(kills) and self._killed_by is None:
            self._killed_by = rid
            self._prefill.index_stream.drop()
            self._prefill.main_stream.drop()

    def flush_cache(self) -> bool:
        """Forget every cached prefix; False when the engine no longer moves."""
        if self.wedged is not None:
            return False
        if self._recorder is not None:
            self._recorder.flush()
        self._prefill.radix.clear()
        return True

    def gauges(self) -> dict[str, float]:
        """SGLang's metrics of pools and cache, without their `sglang:` prefix."""
        return gauges(self._device, self._host, self._prefill.radix, self._totals)

    def close(self) -> None:
        self.ground_truth.close()
        if self._recorder is not None:
            self._recorder.close()
