"""Replies in the pool: decode forwards store them, and ended requests leave them to the cache.

With the overlap schedule a step is launched before the results of the one before are looked at. So
when a request turns out to have ended, the forward that stores the last block of its reply is
already on its way, and the scheduler gives the request's pages away behind its back: the full ones
to the prefix cache and to the host, the partly filled one to whoever allocates next.

Batches are served one after the other: the step that ends a batch's longest replies is the one
that still runs when the next batch's loads are queued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dsv4doctor.lab.backups import Backups
from dsv4doctor.lab.content import chain_digest, chain_digests, page_count
from dsv4doctor.lab.layouts import PAGE_SLOTS, PAGE_TOKENS, TOKENS_PER_ENTRY
from dsv4doctor.lab.ordering import Forward
from dsv4doctor.lab.pools import PageContent, SlotWrite, write_slots
from dsv4doctor.lab.prefill import Job, Prefill
from dsv4doctor.lab.radix import Node
from dsv4doctor.lab.requests import Generation
from dsv4doctor.lab.streams import Mark
from dsv4doctor.lab.tokens import EOS_ID, TokenIds, encode

if TYPE_CHECKING:
    from dsv4doctor.lab.observing import EngineObserver


# Room is kept for so much of a reply, whatever its request allows (SGLang clips at 4,096, in pools
# a thousand times as large); what goes beyond is not cached.
_MOST_KEPT_TOKENS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPhysics:
    """A decode forward stores `tokens` of each request's reply and takes `duration_ms`."""

    tokens: int
    duration_ms: float


@dataclass(slots=True, kw_only=True)
class _Reply:
    """One request that decodes: its whole sequence, `path` of it cached and `pages` not yet."""

    job: Job
    tokens: TokenIds
    digests: list[bytes]
    path: list[Node]
    pages: list[int]
    contents: list[PageContent] = field(default_factory=list)

    @property
    def prompt_length(self) -> int:
        return len(self.job.tokens)

    def blocks(self, block_tokens: int) -> int:
        """Forwards that it takes to store the reply: at least one, be it for the end token."""
        return max(1, -(-(len(self.tokens) - self.prompt_length) // block_tokens))


def reply_tokens(generation: Generation) -> TokenIds:
    """The tokens of a reply, the end token with them if it came to it."""
    parts = [encode(piece) for piece in generation.pieces]
    if generation.finish_reason == "stop":
        parts.append(np.array([EOS_ID], dtype=np.uint64))
    return np.concatenate(parts) if parts else np.array([], dtype=np.uint64)


class Replies:
    """What happens between a batch's prefill and the next one's."""

    def __init__(self, prefill: Prefill, block: BlockPhysics, backups: Backups | None) -> None:
        self._prefill = prefill
        self._block = block
        self._backups = backups

    def reply_pages(self, prompt_tokens: int, max_tokens: int) -> int:
        """Pages that a request may need beside its prompt's."""
        kept = min(max_tokens, _MOST_KEPT_TOKENS) + 1
        most = min(_pages_of(prompt_tokens + kept), self._prefill.device.capacity)
        return max(0, most - _pages_of(prompt_tokens))

    def make_room(self) -> bool:
        """Wait for the oldest of the backups, which hold pages; whether there was any."""
        return self._backups is not None and self._backups.wait_for_one()

    def settle(self) -> None:
        """Take note of what is done: before a batch is built."""
        if self._backups is not None:
            self._backups.poll()

    def run(self, batch: Sequence[tuple[Job, TokenIds]]) -> None:
        """Decode a batch whose prefill is done: each job with the tokens of its reply."""
        replies = [self._begin(job, tokens) for job, tokens in batch]
        blocks = [reply.blocks(self._block.tokens) for reply in replies]
        results: Mark | None = None
        for step in range(max(blocks)):
            running = [reply for reply, count in zip(replies, blocks, strict=True) if count > step]
            launched = self._launch(running, step)
            # Of the step before; of this one where nothing is launched ahead.
            results = results if self._prefill.streams.orderings.overlap else launched
            if results is not None:
                self._prefill.clock.wait(results)
            results = launched
            for reply, count in zip(replies, blocks, strict=True):
                if step == 0:
                    self._cache(reply, reply.prompt_length)
                if count == step + 1:
                    self._end(reply)
            self.settle()

    def _begin(self, job: Job, reply_tokens: TokenIds) -> _Reply:
        prompt_pages = page_count(job.tokens)
        tokens = np.concatenate([job.tokens, reply_tokens])
        tokens = tokens[: (prompt_pages + job.reply_pages) * PAGE_TOKENS]
        more = page_count(tokens) - prompt_pages
        # Room for it was kept when the request was admitted; a backup may still hold it.
        pages = self._prefill.radix.allocate(more)
        while pages is None and self.make_room():
            pages = self._prefill.radix.allocate(more)
        assert pages is not None
        digests = chain_digests(tokens)
        first = len(job.tokens) // PAGE_TOKENS
        wanted = range(first, page_count(tokens))
        return _Reply(
            job=job,
            tokens=tokens,
            digests=digests,
            path=list(job.path),
            pages=[*job.fresh, *pages],
            contents=self._prefill.store.pages(tokens, wanted, digests, job.rid),
        )

    def _launch(self, running: Sequence[_Reply], step: int) -> Mark:
        """Give out one decode forward; the event at its end."""
        writes = [write for reply in running for write in self._writes(reply, step)]
        layers = self._prefill.layers
        self._prefill.streams.begin_step()
        with self._prefill.streams.forward_pass(Forward.GRAPH_DECODE) as forward:
            for layer in range(layers):
                store = partial(self._store, writes, layer)
                forward.run("decode", store, self._block.duration_ms / layers)
            if self._prefill.observer is not None:
                for reply in running:
                    for index, page in self._filled(reply, step):
                        self._prefill.observer.filled(forward, reply.job.rid, index, page)
            return forward.record()

    def _store(self, writes: Sequence[SlotWrite], layer: int) -> None:
        for write in writes:
            write_slots(self._prefill.device, layer, write)

    def observe(self, observer: EngineObserver) -> None:
        """Have `observer` told of backups; of stores the prefill's is told."""
        if self._backups is not None:
            self._backups.observer = observer

    def _span(self, reply: _Reply, step: int) -> tuple[int, int]:
        """The tokens of a reply's block, from and to."""
        start = reply.prompt_length + step * self._block.tokens
        return start, min(start + self._block.tokens, len(reply.tokens))

    def _filled(self, reply: _Reply, step: int) -> list[tuple[int, int]]:
        """(place in the request, device page) of the pages whose last slot the block stores."""
        start, end = self._span(reply, step)
        cached = len(reply.path)
        whole = range(start // PAGE_TOKENS, end // PAGE_TOKENS)
        return [(page, reply.pages[page - cached]) for page in whole]

    def _writes(self, reply: _Reply, step: int) -> list[SlotWrite]:
        """The stores of a reply's block: whole entries, page by page as the row names them now."""
        start, end = self._span(reply, step)
        first, last = start // TOKENS_PER_ENTRY, end // TOKENS_PER_ENTRY
        cached = len(reply.path)
        writes = []
        for page in range(first // PAGE_SLOTS, -(-last // PAGE_SLOTS)):
            slots = (max(first - page * PAGE_SLOTS, 0), min(last - page * PAGE_SLOTS, PAGE_SLOTS))
            if slots[0] < slots[1]:
                content = self._content(reply, page, end)
                where = reply.pages[page - cached]
                writes.append(self._prefill.store.slot_write(where, content, *slots))
        return writes

    def _content(self, reply: _Reply, page: int, end: int) -> PageContent:
        """A page's content, owned by the sequence up to `end`: that is how far it is stored."""
        content = reply.contents[page - reply.prompt_length // PAGE_TOKENS]
        parent = reply.digests[page - 1] if page else b""
        so_far = reply.tokens[page * PAGE_TOKENS : min(end, (page + 1) * PAGE_TOKENS)]
        owner = replace(content.owner, digest=chain_digest(parent, so_far))
        return replace(content, owner=owner)

    def _cache(self, reply: _Reply, tokens: int) -> None:
        """Give the full pages of so many tokens to the prefix cache, and back them up."""
        radix = self._prefill.radix
        digests = reply.digests[len(reply.path) : tokens // PAGE_TOKENS]
        radix.insert(reply.path, digests, reply.pages[: len(digests)])
        nodes = [node for digest in digests if (node := radix.get(digest)) is not None]
        radix.lock(nodes)
        reply.path.extend(nodes)
        del reply.pages[: len(digests)]
        if self._backups is not None:
            self._backups.start(nodes)

    def _end(self, reply: _Reply) -> None:
        """A request has ended: cache what it leaves, free its partly filled page."""
        self._cache(reply, len(reply.tokens))
        for page in reply.pages:
            self._prefill.device.release(page)
        self._prefill.radix.unlock(reply.path)
        self._prefill.give_up_room(reply.job)


def _pages_of(tokens: int) -> int:
    """Pages of so many tokens."""
    return -(-tokens // PAGE_TOKENS)
