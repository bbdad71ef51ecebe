"""`size`: a cold start to the printed answer, and rows a second with `--batch` on one core.

    python benchmarks/size.py [--starts 15] [--rows 10000] [--write FILE]

Both are measured on the command as installed, in a process of its own. CPU (user and system) stands
beside wall time, since other work on the machine stretches the second and not the first. The rows
cycle over releases, models, formats and drafts, so that no cache of one shape flatters them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

AIM_START_S = 0.5
AIM_ROWS_PER_S = 2000
RELEASES = tuple(f"0.5.{n}" for n in range(12, 24))
MODELS = ("V4-Flash", "V4-Pro", "V4-Flash(44-entry HF list)")
FORMATS = ("fp8", "bf16", "bf16_priced", "fp4")
DRAFTS = (None, "EAGLE")


def rows(count: int) -> Iterator[str]:
    """`count` specs, each with its own byte budget."""
    shapes = itertools.cycle(itertools.product(RELEASES, MODELS, FORMATS, DRAFTS))
    for number, (version, model, index, draft) in enumerate(itertools.islice(shapes, count)):
        yield json.dumps(
            {
                "version": version,
                "model": model,
                "index_dtype": index,
                "speculative": draft,
                "available_bytes": (20 << 30) + number * 65_536,
                "max_running_requests": 32 + number % 224,
            }
        )


def run(arguments: Sequence[str]) -> tuple[float, float]:
    """(wall, CPU) seconds of one `dsv4doctor` process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "dsv4doctor", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{arguments} ended with {done.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu


def starts(count: int, *arguments: str) -> tuple[float, float]:
    """Median (wall, CPU) seconds of `count` cold starts."""
    samples = [run(arguments) for _ in range(count)]
    return statistics.median(s[0] for s in samples), statistics.median(s[1] for s in samples)


def batch(count: int) -> tuple[float, float]:
    """Rows a second by (wall, CPU), the cold start included."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_text("\n".join(rows(count)) + "\n", encoding="utf-8")
        wall, cpu = run(["size", "--batch", str(path)])
    return count / wall, count / cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=15)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    lines = [
        "# size",
        "",
        f"`python benchmarks/size.py --starts {asked.starts} --rows {asked.rows}` on "
        f"{platform.machine()}, Python {platform.python_version()}, pinned to one core, load "
        f"{os.getloadavg()[0]:.1f} when begun.",
        "",
        "| what | wall | CPU | aim |",
        "|---|---|---|---|",
    ]
    for name, arguments in (
        ("cold start, JSON", ("size", "--json")),
        ("cold start, report", ("size", "--no-color")),
    ):
        wall, cpu = starts(asked.starts, *arguments)
        lines.append(f"| {name} | {wall:.2f} s | {cpu:.2f} s | under {AIM_START_S} s |")
    wall_rate, cpu_rate = batch(asked.rows)
    lines.append(
        f"| `--batch`, {asked.rows:,} rows | {wall_rate:,.0f} rows/s | {cpu_rate:,.0f} rows/s | "
        f"{AIM_ROWS_PER_S:,} rows/s |"
    )
    lines += ["", "Wall is stretched by whatever else runs on the core; CPU is not.", ""]
    text = "\n".join(lines)
    print(text)
    if asked.write is not None:
        asked.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
