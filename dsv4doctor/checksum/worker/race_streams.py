"""The race on a GPU: HiCache's copies on one CUDA stream, the index-K read on another."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dsv4doctor.checksum.worker.engine import Pool
from dsv4doctor.checksum.worker.race import Contents, Plan, Reads, waits_for
from dsv4doctor.kernels import reference

CYCLES_PER_US = 1_700  # about an H200's clock; only the length of a layer depends on it


class StreamMachine:
    """Pinned host pool, copy stream, forward stream, one event a layer: as SGLang has them."""

    name = "streams"

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def run(self, plan: Plan, contents: Contents) -> Reads:
        place = self._engine.place
        with torch.cuda.device(place):
            host = torch.from_numpy(contents.new).pin_memory()
            pool = torch.from_numpy(contents.old).to(place)
            other = torch.zeros(plan.pages * plan.other_bytes, dtype=torch.uint8).pin_memory()
            there = torch.empty_like(other, device=place)
            forward, copies = torch.cuda.Stream(), torch.cuda.Stream()
            self._warm(plan, pool[0])
            torch.cuda.synchronize()
            begun, done = [], []
            with torch.cuda.stream(copies):
                for layer in range(plan.layers):
                    there.copy_(other, non_blocking=True)
                    begun.append(_recorded())
                    pool[layer].copy_(host[layer], non_blocking=True)
                    done.append(_recorded())
            found = []
            with torch.cuda.stream(forward):
                for layer in range(plan.layers):
                    awaited = waits_for(plan.gate, layer)
                    if awaited is not None:
                        forward.wait_event(done[awaited])
                    if layer:
                        torch.cuda._sleep(int(plan.layer_us * CYCLES_PER_US))
                    found.append(
                        self._engine.launch(Pool(layout=plan.layout, values=pool[layer])).pages
                    )
            torch.cuda.synchronize()
        digests = np.stack([pages.cpu().numpy().view(np.uint64) for pages in found])
        recovered = [reference.accumulators_of(plan.layout, row) for row in digests]
        windows = [a.elapsed_time(b) * 1e3 for a, b in zip(begun, done, strict=True)]
        return Reads(sums=np.stack(recovered), window_us=tuple(windows))

    def _warm(self, plan: Plan, pages: torch.Tensor) -> None:
        """Compile before the race: a reader that compiles first would find everything copied."""
        self._engine.launch(Pool(layout=plan.layout, values=pages))


def _recorded() -> torch.cuda.Event:
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event
