"""What a 60-session run against the lab costs: wall time, CPU and memory of doctor and lab.

python benchmarks/lab.py [--repeats 5] [--write FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from stamping import stamp

SAMPLE_S = 0.1


def one_run() -> tuple[float, float, int, int, float]:
    """Wall seconds, CPU seconds, peak bytes of the doctor and of the lab, corrupt share."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        process = psutil.Popen(
            [sys.executable, "-m", "dsv4doctor", "repro", "--sessions", "60", "--json",
             "--no-progress", "--output-dir", folder],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        peaks: dict[int, int] = {}
        cpu: dict[int, float] = {}
        watcher = threading.Thread(target=_watch, args=(process, peaks, cpu), daemon=True)
        watcher.start()
        stdout, _ = process.communicate()
        wall = time.monotonic() - began
        watcher.join()
    document = json.loads(stdout)
    labs = [peak for pid, peak in peaks.items() if pid != process.pid]
    return (
        wall,
        sum(cpu.values()),
        peaks[process.pid],
        max(labs),
        document["repro"]["response_rate"]["estimate"],
    )


def _watch(process: psutil.Popen, peaks: dict[int, int], cpu: dict[int, float]) -> None:
    while process.poll() is None:
        try:
            for each in (process, *process.children(recursive=True)):
                peaks[each.pid] = max(peaks.get(each.pid, 0), each.memory_info().rss)
                times = each.cpu_times()
                cpu[each.pid] = times.user + times.system
        except psutil.Error:
            pass
        time.sleep(SAMPLE_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    runs = [one_run() for _ in range(options.repeats)]
    wall, cpu, doctor, lab, rate = (statistics.median(column) for column in zip(*runs, strict=True))
    mib = 2**20
    text = f"""# What a lab run costs

`python benchmarks/lab.py`: `dsv4doctor repro --sessions 60` (360 requests),
medians of {options.repeats}.

| what | figure | aim |
|---|---|---|
| wall time | {wall:.1f} s | under 60 s, aim 15 s |
| CPU of doctor and lab together | {cpu:.1f} s | |
| peak memory of the doctor | {doctor / mib:.0f} MiB | |
| peak memory of the lab | {lab / mib:.0f} MiB | |
| both together | {(doctor + lab) / mib:.0f} MiB | under 1 GB |
| corrupted responses | {100 * rate:.1f} % | |

{stamp()}
"""
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
