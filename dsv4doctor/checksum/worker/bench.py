"""How fast a digest reads, against a copy of the same device in the same run.

`gb_per_s` counts bytes read; `copy_gb_per_s` bytes read plus written on a GPU (what its memory
moves), bytes copied on a CPU (memcpy's usual figure). `ratio` is the one over the other.
"""

from __future__ import annotations

from typing import Any

from dsv4doctor.checksum.worker.engine import Engine, NumpyEngine
from dsv4doctor.kernels.layouts import layout_named
from dsv4doctor.kernels.stamp import Stamp

LAYOUTS = ("fp8", "bf16", "fp4", "fp4-rocm", "c4", "swa")
GPU_BYTES = 2 << 30  # far beyond any GPU's cache
CPU_BYTES = 64 << 20  # beyond a core's share of cache
SLOW_BYTES = 8 << 20  # plain numpy takes a second for 400 MB
GPU_REPEATS = 15
CPU_REPEATS = 2
TURNS = 3


def bench(engine: Engine, budget_bytes: int) -> list[dict[str, Any]]:
    """One row a layout, the copy measured beside each."""
    on_gpu = engine.backend in ("cuda", "hip")
    runner = engine if on_gpu else NumpyEngine(engine.device)
    repeats = GPU_REPEATS if on_gpu else CPU_REPEATS
    most = GPU_BYTES if on_gpu else CPU_BYTES
    if isinstance(runner, NumpyEngine) and not runner.is_fast:
        most = SLOW_BYTES
    wanted = min(most, budget_bytes // 3)
    rows = []
    for name in LAYOUTS:
        layout = layout_named(name)
        count = max(1, wanted // (layout.page_bytes + layout.scale_page_bytes))
        pool = runner.fill(layout, count, Stamp())
        copied = count * layout.page_bytes
        # By turns, so that what else the machine does meets both alike.
        turns = [
            (runner.seconds(pool, repeats=repeats), runner.copy_seconds(copied, repeats=repeats))
            for _ in range(TURNS)
        ]
        seconds = min(turn[0] for turn in turns)
        copy_seconds = min(turn[1] for turn in turns)
        speed = pool.nbytes / seconds / 1e9
        copy_speed = (2 if on_gpu else 1) * copied / copy_seconds / 1e9
        rows.append(
            {
                "layout": name,
                "pages": count,
                "bytes": pool.nbytes,
                "seconds": seconds,
                "gb_per_s": speed,
                "copy_gb_per_s": copy_speed,
                "ratio": speed / copy_speed,
            }
        )
        del pool
    return rows
