"""The race on a virtual clock: the same seed, the same answer; the bytes are real."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dsv4doctor.checksum.worker.race import Contents, Plan, Reads, sums, waits_for
from dsv4doctor.kernels.reference import Bytes

Times = NDArray[np.float64]  # seconds, [pages] or [layers, pages]


class ClockMachine:
    """A copy stream and a forward stream whose time is counted, not spent."""

    name = "virtual clock"

    def run(self, plan: Plan, contents: Contents) -> Reads:
        begins, ends, events = self._copy_times(plan)
        found = np.zeros(contents.new_sums.shape, dtype=np.uint64)
        now = 0.0
        for layer in range(plan.layers):
            awaited = waits_for(plan.gate, layer)
            if awaited is not None:
                now = max(now, events[awaited])
            now += plan.layer_us / 1e6 if layer else 0.0
            pages = self._pool_at(now, contents, layer, (begins[layer], ends[layer]))
            found[layer] = sums(plan.layout, pages)
        windows = tuple(
            plan.seconds_for(plan.pages * plan.layout.page_bytes) * 1e6 for _ in range(plan.layers)
        )
        return Reads(sums=found, window_us=windows)

    @staticmethod
    def _copy_times(plan: Plan) -> tuple[Times, Times, list[float]]:
        """When each page's copy begins and ends [layers, pages], and each layer's event."""
        one, other = plan.layout.page_bytes, plan.other_bytes
        begins = np.zeros((plan.layers, plan.pages))
        now, events = 0.0, []
        for layer in range(plan.layers):
            now += plan.seconds_for(plan.pages * other)
            begins[layer] = now + plan.seconds_for(one) * np.arange(plan.pages)
            now += plan.seconds_for(plan.pages * one)
            events.append(now)
        return begins, begins + plan.seconds_for(one), events

    @staticmethod
    def _pool_at(now: float, contents: Contents, layer: int, times: tuple[Times, Times]) -> Bytes:
        """The layer's pages at `now`: a copy in progress has written its first bytes."""
        begins, ends = times
        pages: Bytes = contents.old[layer].copy()
        done = np.clip((now - begins) / (ends - begins), 0.0, 1.0)
        # An event at the very end of the last copy: rounding must not leave its last bytes out.
        lengths = np.floor(done * pages.shape[1] + 1e-6).astype(int)
        for page, length in enumerate(lengths):
            pages[page, :length] = contents.new[layer, page, :length]
        return pages
