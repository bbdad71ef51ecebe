"""What a 60-session run against the lab costs: wall time, CPU and memory of doctor and lab.

python benchmarks/lab.py [--repeats 5] [--only unified|apart] [--write FILE]
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


# section -> (heading, flags of repro, aim of the wall time, aim of the memory)
SECTIONS = {
    "unified": ("One server", (), "under 60 s, aim 15 s", "under 1 GB"),
    "apart": (
        "Router, prefill and decode server",
        ("--lab-option", "disaggregation=on"),
        "under 90 s",
        "under 1.5 GB",
    ),
}
TITLE = "# What a lab run costs\n"


def one_run(flags: tuple[str, ...]) -> tuple[float, float, int, int, float]:
    """Wall seconds, CPU seconds, peak bytes of the doctor and of the lab's processes (each one's
    own peak, summed), corrupt share."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        process = psutil.Popen(
            [sys.executable, "-m", "dsv4doctor", "repro", "--sessions", "60", "--json",
             "--no-progress", "--output-dir", folder, *flags],
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
        sum(labs),
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


def section(name: str, repeats: int) -> str:
    """One table, measured now."""
    heading, flags, wall_aim, memory_aim = SECTIONS[name]
    runs = [one_run(flags) for _ in range(repeats)]
    wall, cpu, doctor, lab, rate = (statistics.median(column) for column in zip(*runs, strict=True))
    mib = 2**20
    command = " ".join(["dsv4doctor repro --sessions 60", *flags])
    return f"""## {heading}

`python benchmarks/lab.py --only {name}`: `{command}` (360 requests), medians of {repeats}.

| what | figure | aim |
|---|---|---|
| wall time | {wall:.1f} s | {wall_aim} |
| CPU of doctor and lab together | {cpu:.1f} s | |
| peak memory of the doctor | {doctor / mib:.0f} MiB | |
| peak memory of the lab | {lab / mib:.0f} MiB | |
| both together | {(doctor + lab) / mib:.0f} MiB | {memory_aim} |
| corrupted responses | {100 * rate:.1f} % | |

{stamp()}
"""


def kept(path: Path | None) -> dict[str, str]:
    """The sections that an earlier run wrote."""
    if path is None or not path.exists():
        return {}
    parts = path.read_text(encoding="utf-8").split("\n## ")[1:]
    headings = {SECTIONS[name][0]: name for name in SECTIONS}
    return {headings[part.partition("\n")[0]]: f"## {part.rstrip()}\n" for part in parts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    texts = kept(options.write)
    for name in SECTIONS if options.only is None else (options.only,):
        texts[name] = section(name, options.repeats)
        print(texts[name])
    if options.write:
        written = "\n".join([TITLE, *(texts[name] for name in SECTIONS if name in texts)])
        options.write.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
