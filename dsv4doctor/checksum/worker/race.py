"""HiCache's load against the index-K read: one stream copies layer by layer, another reads.

The program is SGLang's (`start_loading`, then the getter's wait): the copy stream restores every
queued page of layer 0, records an event, goes on to layer 1; the forward stream computes a layer
and reads its index pages. Three gates: `own` waits for the layer's event before it reads, `none`
does not, `wrong-layer` waits for the layer before. A page is *stale* if its reader found the bytes
that lay there before, *torn* if half of each. Machines: a virtual clock, threads, CUDA streams.

On the virtual clock a copy takes bytes / bandwidth. A page restores its latents (37,440 bytes at
ratio 4) before its index keys, as the pools are ordered. `window_us` is how long the index-K pages
of one layer are in flight, first byte to last: proportional to bytes a token, so bf16 (256) has
1.94 times fp8's (132). A reader inside it reads what is not there yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from dsv4doctor.checksum.worker.engine import Engine
from dsv4doctor.checksum.worker.keys import random_keys, store_keys
from dsv4doctor.kernels import reference, reference_scores
from dsv4doctor.kernels.layouts import PageLayout, index_layout
from dsv4doctor.kernels.reference import Bytes, Digests

GATES = ("own", "none", "wrong-layer")
DTYPES = ("fp8", "bf16", "fp4")
TOPK = 512
QUERY_HEADS = 8  # enough to rank 2048 keys; a real indexer has 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is restored and read. Defaults: 8 K tokens a request, PCIe 5.0 x16, short prefills."""

    layout: PageLayout
    gate: str = "own"
    queue_depth: int = 1  # requests restored ahead of the forward
    pages_per_request: int = 32
    layers: int = 10
    other_bytes: int = 37_440  # of the same page in other pools, copied before its index keys
    bandwidth_gb_per_s: float = 50.0
    layer_us: float = 150.0  # the forward's time a layer

    @property
    def pages(self) -> int:
        """Pages of one layer that are restored and read."""
        return self.queue_depth * self.pages_per_request

    def seconds_for(self, nbytes: int) -> float:
        """How long the link takes for `nbytes`."""
        return nbytes / (self.bandwidth_gb_per_s * 1e9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Index pages of every layer, [layers, pages, bytes]: what lay there, what is restored."""

    old: Bytes
    new: Bytes
    old_sums: Digests
    new_sums: Digests


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What the forward found: accumulators [layers, pages], and each layer's window."""

    sums: Digests
    window_us: tuple[float, ...]


class Machine(Protocol):
    """Two streams. `name` is the contract's word for what they are made of."""

    name: str

    def run(self, plan: Plan, contents: Contents) -> Reads: ...


def waits_for(gate: str, layer: int) -> int | None:
    """The layer whose event the read of `layer` waits for; None: it does not wait."""
    if gate == "own":
        return layer
    if gate == "wrong-layer" and layer > 0:
        return layer - 1
    return None


def make_contents(plan: Plan, seed: int) -> Contents:
    """Keys of two tenants of the same pages; each layer has them in another order."""
    rng = np.random.default_rng([seed, plan.layout.code])

    def pages() -> Bytes:
        made = store_keys(plan.layout, random_keys(plan.pages * plan.layout.rows, rng))
        return np.stack([np.roll(made, layer, axis=0) for layer in range(plan.layers)])

    old, new = pages(), pages()
    return Contents(
        old=old, new=new, old_sums=sums(plan.layout, old), new_sums=sums(plan.layout, new)
    )


def sums(layout: PageLayout, pages: Bytes) -> Digests:
    """Accumulators of pages [..., bytes]: equal bytes, equal value, wherever they lie."""
    flat = pages.reshape(-1, pages.shape[-1])
    return reference.accumulate(reference.digest_rows(layout, flat)).reshape(pages.shape[:-1])


def judge(machine: Machine, plan: Plan, contents: Contents) -> tuple[dict[str, Any], Reads]:
    """One row of the report: how much of what was read was not there yet."""
    reads = machine.run(plan, contents)
    fresh = reads.sums == contents.new_sums
    stale = reads.sums == contents.old_sums
    row = {
        "machine": machine.name,
        "dtype": plan.layout.name,
        "gate": plan.gate,
        "queue_depth": plan.queue_depth,
        "bytes_per_token": plan.layout.page_bytes // plan.layout.rows,
        "reads": int(fresh.size),
        "stale": int(stale.sum()),
        "torn": int((~fresh & ~stale).sum()),
        "stale_share": float((~fresh).mean()),
        "window_us": float(np.median(reads.window_us)),
    }
    return row, reads


def selection_overlap(plan: Plan, contents: Contents, reads: Reads, seed: int) -> float | None:
    """Mean share of the right top-512 that a query still selects, at the layer read worst.

    None where nothing stale was read or the context is too short for scores to matter.
    """
    bad = reads.sums != contents.new_sums
    layer = int(bad.sum(axis=1).argmax())
    first = slice(0, plan.pages_per_request)
    if not bad[layer, first].any() or plan.pages_per_request * plan.layout.rows <= TOPK:
        return None
    seen = contents.new[layer, first].copy()
    seen[bad[layer, first]] = contents.old[layer, first][bad[layer, first]]
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((4, QUERY_HEADS, 128)).astype(np.float32)
    weights = np.abs(rng.standard_normal((4, QUERY_HEADS))).astype(np.float32)
    chosen = []
    for pages in (contents.new[layer, first], seen):
        keys, scale = reference_scores.decode_keys(plan.layout, pages)
        scores = reference_scores.index_scores(keys, scale, vectors, weights)
        chosen.append(reference_scores.select_topk(scores, TOPK))
    return float(reference_scores.overlap(*chosen).mean())


def race(
    machine: Machine, dtypes: Sequence[str], depths: Sequence[int], seed: int, **settings: Any
) -> list[dict[str, Any]]:
    """Every dtype, queue depth and gate on one machine; the overlap at the deepest queue."""
    rows = []
    for dtype in dtypes:
        for depth in depths:
            plan = Plan(layout=index_layout(dtype), queue_depth=depth, **settings)
            contents = make_contents(plan, seed)
            for gate in GATES:
                gated = replace(plan, gate=gate)
                row, reads = judge(machine, gated, contents)
                deepest = depth == max(depths) and gate == "none"
                overlap = selection_overlap(gated, contents, reads, seed) if deepest else None
                rows.append(row | {"top512_overlap": overlap})
    return rows


def machine_for(engine: Engine) -> list[Machine]:
    """The machines that this device has: streams on a GPU; a clock and threads on a CPU."""
    if engine.backend in ("cuda", "hip"):
        from dsv4doctor.checksum.worker.race_streams import StreamMachine

        return [StreamMachine(engine)]
    from dsv4doctor.checksum.worker.race_clock import ClockMachine
    from dsv4doctor.checksum.worker.race_threads import ThreadMachine

    return [ClockMachine(), ThreadMachine()]
