"""Speed and memory of `scan` on a log cut from the soak's texts, beside parsing it with `json`
alone.

Usage: python benchmarks/scan.py [--megabytes 200] [--memory]

The log is made of contract records whose responses hold at least 80 % of its bytes; at least a
quarter of its bytes are beyond ASCII. CPU time is taken of one process in turns, so that a busy
machine slows both alike. `--memory` scans 20 MB and 2 GB and compares the peaks.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "soak"))
sys.path.insert(0, str(ROOT))

from detect_texts import clean_pieces  # noqa: E402

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path", "content"],
            },
        },
    }
]
PIECES = 6000
# Share of the records whose text is mostly beyond ASCII; they are longer in bytes, a quarter of
# which then are.
NON_ASCII_SHARE = 0.18


def record(text: str, number: int, *, as_call: bool) -> str:
    """One line: the text as content, or as an argument of a call."""
    reply: dict[str, object] = {"content": text, "reasoning_content": None, "tool_calls": None}
    reply["finish_reason"] = "stop"
    if as_call:
        arguments = json.dumps({"path": f"f{number}", "content": text}, ensure_ascii=False)
        function = {"name": "write_file", "arguments": arguments}
        call = {"id": f"c{number}", "type": "function", "function": function}
        reply |= {"content": None, "tool_calls": [call], "finish_reason": "tool_calls"}
    entry = {
        "id": f"r{number}",
        "time": 1_790_000_000 + number,
        "model": "m",
        "prompt": "Please go on.",
        "tools": TOOLS if as_call else None,
        "response": reply,
    }
    return json.dumps(entry, ensure_ascii=False)


def log_lines(seed: int = 0) -> Iterator[str]:
    """Lines without end: the pieces over and over, every fifth inside a call."""
    pieces = [p.text for p in clean_pieces(PIECES, seed)]
    rng = random.Random(seed)
    foreign = [t for t in pieces if len(t.encode("utf-8", "replace")) > 1.3 * len(t)]
    plain = [t for t in pieces if t.isascii()]
    number = 0
    while True:
        text = rng.choice(foreign if rng.random() < NON_ASCII_SHARE else plain)
        yield record(text, number, as_call=number % 5 == 0)
        number += 1


def write_log(path: Path, size: int) -> dict[str, float]:
    """Write a log of `size` bytes; the shares that the claim is about."""
    written = beyond = 0
    with path.open("wb") as out:
        for line in log_lines():
            raw = line.encode("utf-8", "replace") + b"\n"
            out.write(raw)
            written += len(raw)
            beyond += sum(1 for _ in filter((127).__lt__, raw)) if written < 20_000_000 else 0
            if written >= size:
                break
    return {"megabytes": written / 1e6, "non_ascii_share": beyond / min(written, 20_000_000)}


def cpu(action: str, path: Path) -> tuple[float, float]:
    """CPU seconds and peak MB of a fresh process that does `action` to the log."""
    started = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, __file__, "--do", action, "--log", str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime
    return seconds, float(done.stdout.split()[-1])


def peak_mb() -> float:
    """This program's own peak; `ru_maxrss` would be that of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def do(action: str, path: Path) -> None:
    if action == "json":
        with path.open("rb") as log:
            for line in log:
                json.loads(line)
    else:
        from dsv4doctor.flows.scan import ScanPlan, run_scan

        result = run_scan(ScanPlan(files=(str(path),)))
        print(result.body["totals"], file=sys.stderr)
    print(peak_mb())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--do", choices=("json", "scan"))
    parser.add_argument("--log", type=Path)
    args = parser.parse_args()
    if args.do:
        do(args.do, args.log)
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        shares = write_log(log, args.megabytes * 1_000_000)
        print(json.dumps(shares))
        for _ in range(args.rounds):
            parse_s, _ = cpu("json", log)
            scan_s, peak_mb = cpu("scan", log)
            print(
                f"json {parse_s:.2f} s CPU, scan {scan_s:.2f} s CPU,"
                f" {shares['megabytes'] / scan_s:.1f} MB/s, ratio {scan_s / parse_s:.1f},"
                f" peak {peak_mb:.0f} MB"
            )
        if args.memory:
            for size in (20, 2000):
                write_log(log, size * 1_000_000)
                started = time.monotonic()
                _, peak_mb = cpu("scan", log)
                print(f"{size} MB: peak {peak_mb:.0f} MB, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
