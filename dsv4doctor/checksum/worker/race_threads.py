"""The race with a real thread for the copy stream: time passes, bytes move, order is the kernel's.

Python's threads are slower than a GPU's streams, so the link is slowed to match: what is kept is
the ratio of copying to computing, and the program.
"""

from __future__ import annotations

import threading
import time

import numpy as np

from dsv4doctor.checksum.worker.race import Contents, Plan, Reads, sums, waits_for

SLOWER = 200  # a layer of 150 µs takes 30 ms: far above a thread switch


class ThreadMachine:
    """One copying thread, events that it sets, and a reader that waits for them or does not."""

    name = "threads"

    def run(self, plan: Plan, contents: Contents) -> Reads:
        pool = contents.old.copy()
        events = [threading.Event() for _ in range(plan.layers)]
        windows = [0.0] * plan.layers
        ready = threading.Event()

        def copy_layers() -> None:
            ready.wait()
            due = time.perf_counter()
            for layer in range(plan.layers):
                due += SLOWER * plan.seconds_for(plan.pages * plan.other_bytes)
                _sleep_until(due)
                begun = time.perf_counter()
                for page in range(plan.pages):
                    np.copyto(pool[layer, page], contents.new[layer, page])
                    due += SLOWER * plan.seconds_for(plan.layout.page_bytes)
                    _sleep_until(due)
                windows[layer] = (time.perf_counter() - begun) * 1e6 / SLOWER
                events[layer].set()

        copier = threading.Thread(target=copy_layers)
        copier.start()
        found = np.zeros(contents.new_sums.shape, dtype=np.uint64)
        ready.set()
        for layer in range(plan.layers):
            awaited = waits_for(plan.gate, layer)
            if awaited is not None:
                events[awaited].wait()
            if layer:
                time.sleep(SLOWER * plan.layer_us / 1e6)
            found[layer] = sums(plan.layout, pool[layer].copy())
        copier.join()
        return Reads(sums=found, window_us=tuple(windows))


def _sleep_until(due: float) -> None:
    """Sleeps only where there is a millisecond to sleep: shorter ones would add up to lateness."""
    left = due - time.perf_counter()
    if left > 1e-3:
        time.sleep(left)
