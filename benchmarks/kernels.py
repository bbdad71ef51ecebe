"""Measures the digests on this machine and counts their machine code; prints Markdown.

    python benchmarks/kernels.py            # selftest, speed and race on this machine's GPU or CPU
    python benchmarks/kernels.py --code     # also compile for five GPUs and count (needs no GPU)

On a machine with a GPU the whole run takes under five minutes, most of it compiling. The bounds
that count: a digest reads at 0.85 or more of the device's copy bandwidth (GPU), at 0.3 or more of
one core's memcpy (CPU). Exits 1 where a bound or a check fails.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CODE = ROOT / "tests" / "kernels" / "compiled_kernels.py"
LEAST_RATIO = {"cuda": 0.85, "hip": 0.85, "cpu": 0.3, "interpreter": 0.3}
# name: (target, SMs or CUs, integer lanes a clock and SM, GHz, memory TB/s), from data sheets
GPUS = {
    "H200": ("cuda 90", 132, 64, 1.98, 4.8),
    "B200": ("cuda 100", 148, 64, 1.85, 8.0),
    "RTX PRO 6000": ("cuda 120", 188, 64, 2.6, 1.8),
    "MI300X": ("hip gfx942", 304, 64, 2.1, 5.3),
    "MI355X": ("hip gfx950", 256, 64, 2.4, 8.0),
}


def table(rows: list[dict[str, Any]], columns: list[str]) -> str:
    """Rows as a Markdown table; numbers with three significant digits."""

    def cell(value: Any) -> str:
        if value is None:
            return "–"
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row.get(c)) for c in columns) + " |" for row in rows]
    return "\n".join(lines)


def code_rows() -> list[dict[str, Any]]:
    """Instructions a word of every page digest, and the share of each GPU's units that it takes."""
    rows = []
    for name, (target, units, lanes, ghz, terabytes) in GPUS.items():
        with tempfile.TemporaryDirectory() as cache:
            environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
            done = subprocess.run(
                [sys.executable, CODE, *target.split()],
                env=environment | {"TRITON_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            )
        for line in map(json.loads, done.stdout.splitlines()):
            if line["kernel"] != "page_digest_kernel" or line["case"].endswith("-table"):
                continue
            words_per_s = terabytes * 1e12 / 4
            integer = line["integer"] / line["words"]
            rows.append(
                {
                    "GPU": name,
                    "target": target,
                    "pages": line["case"],
                    "instructions a word": line["instructions"] / line["words"],
                    "integer a word": integer,
                    "registers": line["registers"],
                    "spills": line["spills"],
                    "integer units busy": integer * words_per_s / (units * lanes * ghz * 1e9),
                }
            )
    return rows


def device_report() -> int:
    """Print what this machine's devices do; 1 where a bound or a check fails."""
    from dsv4doctor.checksum.worker.main import answer

    failed = 0
    for action, extra in (("selftest", {}), ("bench", {}), ("race", {"depths": [1, 2, 4, 8]})):
        started = time.monotonic()
        found = answer({"action": action, "index_k": "fp8", "seed": 42, **extra})
        seconds = time.monotonic() - started
        for device in found["devices"]:
            name = f"{device.get('device')} ({device.get('backend')}, {seconds:.0f} s)"
            print(f"\n## {action}: {name}\n")
            if device.get("error"):
                print(device["error"])
                failed = 1
                continue
            failed |= _print_device(action, device)
    print(f"\n{json.dumps(found['environment']['versions'])}")
    return failed


def _print_device(action: str, device: dict[str, Any]) -> int:
    if action == "selftest":
        bad = [check["name"] for check in device["checks"] if not check["passed"]]
        print(f"{len(device['checks'])} checks, failed: {', '.join(bad) or 'none'}; ", end="")
        print(f"{device['pages']} fp8 pages at {device['gb_per_s']:.1f} GB/s, {device['digest']}")
        return int(bool(bad or device["mismatches"]))
    if action == "bench":
        print(table(device["bench"], ["layout", "pages", "gb_per_s", "copy_gb_per_s", "ratio"]))
        least = LEAST_RATIO[device["backend"]]
        # Row digests of latent pages are read in a loop; the bound is on the index pages.
        index = [row for row in device["bench"] if row["layout"] in ("fp8", "bf16", "fp4")]
        return int(any(row["ratio"] < least for row in index))
    columns = ["machine", "dtype", "gate", "queue_depth", "reads", "stale_share", "window_us"]
    print(table(device["race"], [*columns, "top512_overlap"]))
    return int(any(r["stale"] + r["torn"] for r in device["race"] if r["gate"] == "own"))


def main() -> int:
    """The whole report."""
    if "--code" in sys.argv[1:]:
        print("## Machine code\n")
        rows = code_rows()
        print(table(rows, list(rows[0])))
    return device_report()


if __name__ == "__main__":
    sys.exit(main())
