"""What the probe costs a step: time and bytes, off, within several bounds, and unbounded.

Usage: python benchmarks/probe.py [--device cpu|cuda] [--seconds 6] [--write FILE]

A stand-in for the model works for a fixed time a step on the device that serves (on a CPU: on the
same core), in steps of 8192 new tokens over a prefix of 8192, 21 indexer layers of fp8 pages, as
V4-Flash has them: every step fills 32 pages and reads 32. The hooks are those that run in SGLang.
Cost is the probe's own account, and beside it the step's time with the probe off and on. On a CPU
all times are the processor's, so that what else the machine does stays out of it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "probe"))
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from builders_probe import TOKENS, make_batch, make_pool  # noqa: E402

from dsv4doctor.probe.budget import Budget  # noqa: E402
from dsv4doctor.probe.guard import Guard  # noqa: E402
from dsv4doctor.probe.observer import Observer  # noqa: E402
from dsv4doctor.probe.rank import RankProbe  # noqa: E402
from dsv4doctor.probe.steps import StepHops  # noqa: E402
from dsv4doctor.probe_protocol import arm  # noqa: E402

RATIOS = (0, 0, *((4, 128) * 20), 4)
INDEX_LAYERS = tuple(layer for layer, ratio in enumerate(RATIOS) if ratio == 4)
CHUNK = 8192
PAGES = 1 + 2 * CHUNK // TOKENS
STEP_MS = {"cpu": 50.0, "cuda": 20.0}
MIB = 1 << 20
# name -> max_share, max_bytes_per_step; None: not armed
CASES: tuple[tuple[str, tuple[float, int] | None], ...] = (
    ("off", None),
    ("share 0.5 %", (0.005, 64 * MIB)),
    ("share 2 % (default)", (0.02, 64 * MIB)),
    ("share 10 %", (0.10, 64 * MIB)),
    ("1 MiB a step", (1.0, MIB)),
    ("all pages", (1.0, 1 << 40)),
)


class Bench:
    """A rank whose steps can be timed."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.clock = time.thread_time if device == "cpu" else time.perf_counter
        self.pool = make_pool(PAGES, RATIOS, device)
        self.probe = RankProbe(Observer())
        self.probe.observer.budget = Budget(self.clock)
        self.probe.observer.adopt(self.pool)
        self.probe.drainer.start()
        self.batch = make_batch(2 * CHUNK, prefix=CHUNK)
        if device == "cuda":
            table = self.batch.req_to_token_pool
            table.req_to_token = table.req_to_token.cuda()
        self.scheduler = SimpleNamespace(forward_ct=0, enable_overlap=False)
        steps = StepHops(self.probe.observer)
        guard = Guard(self.probe.observer, "bench", ())
        self._step = guard.around(steps.enter_step, steps.leave_step)
        self._read = guard.around(steps.enter_getter, steps.leave_index_read)

    def step(self) -> float:
        """Milliseconds of one step; the getters are called in every layer, as the indexer does."""
        began = self.clock()
        self._step(self._forward, self.scheduler, self.batch)
        if self.device == "cuda":
            torch.cuda.synchronize()
        return (self.clock() - began) * 1e3

    def _forward(self, _scheduler: Any, _batch: Any) -> None:
        for layer in INDEX_LAYERS:
            self._read(self._get, self.pool, layer)
        self._work(STEP_MS[self.device])

    def _get(self, pool: Any, layer: int) -> Any:
        return pool.c4_indexer_kv_pool.index_k_with_scale_buffer[0]

    def _work(self, ms: float) -> None:
        if self.device == "cuda":
            torch.cuda._sleep(int(ms * 1.7e6))  # cycles of an H200
            return
        end = self.clock() + ms / 1e3
        while self.clock() < end:
            pass


def run(bench: Bench, bounds: tuple[float, int] | None, seconds: float) -> dict[str, float]:
    """The probe's own account and the steps' median, over some seconds."""
    observer = bench.probe.observer
    observer.disarm()
    if bounds is not None:
        share, most = bounds
        observer.arm(arm("bench", max_share=share, max_bytes_per_step=most), None)
    began, times = bench.clock(), []
    while bench.clock() - began < seconds:
        times.append(bench.step())
        observer.journal.take(1 << 60, 0)  # somebody fetches
    elapsed_ms = (bench.clock() - began) * 1e3
    budget, steps = observer.budget, len(times)
    is_on = bounds is not None
    return {
        "steps": steps,
        "step_ms": statistics.median(times),
        "mib": budget.bytes / steps / MIB if is_on else 0.0,
        "probe_ms": budget.spent_ms / steps if is_on else 0.0,
        "share": budget.spent_ms / elapsed_ms if is_on else 0.0,
    }


def idle_ns(bench: Bench) -> float:
    """What a hooked call costs while the probe is off."""
    bench.probe.observer.disarm()

    def timed(call: Callable[[], Any], count: int = 200_000) -> float:
        began = bench.clock()
        for _ in range(count):
            call()
        return (bench.clock() - began) / count * 1e9

    plain = timed(lambda: bench._get(bench.pool, 3))
    return timed(lambda: bench._read(bench._get, bench.pool, 3)) - plain


def report(device: str, seconds: float) -> str:
    bench = Bench(device)
    name = torch.cuda.get_device_name() if device == "cuda" else "one CPU core"
    lines = [
        f"Device: {name}; torch {torch.__version__}. Steps of {STEP_MS[device]:g} ms and more: 32 "
        f"pages filled, 32 read, {len(INDEX_LAYERS)} layers of 8448 bytes.",
        "",
        "| bound | steps | step, median ms | MiB digested a step | probe, ms a step | share of the "
        "time |",
        "|---|---|---|---|---|---|",
    ]
    bench.step()
    for case, bounds in CASES:
        found = run(bench, bounds, seconds)
        lines.append(
            f"| {case} | {found['steps']} | {found['step_ms']:.2f} | {found['mib']:.2f} | "
            f"{found['probe_ms']:.2f} | {found['share']:.2%} |"
        )
    lines += ["", f"A hooked call while the probe is off: {idle_ns(bench):.0f} ns more."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default=None)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--write", type=Path)
    flags = parser.parse_args()
    torch.set_num_threads(1)
    device = flags.device or ("cuda" if torch.cuda.is_available() else "cpu")
    text = report(device, flags.seconds)
    print(text)
    if flags.write:
        head = (__doc__ or "").split("\n\n", 2)[2].strip()
        flags.write.write_text(f"# The probe's cost\n\n{head}\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
