"""The record's experiment table over ten seeds, and while busy loops load the machine.

    python benchmarks/soak_table.py [--seeds 10] [--only WORD]

Each finished run is a line in `soak_table.jsonl` at once, so a killed soak goes on where it
stopped. A line counts as run only for the code it was measured on: a digest over the parts of the
tree that decide a run. The table shows the newest line of each arm and seed, with its commits. Ends
with an error when a figure is not what it has to be.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from hashlib import blake2b
from pathlib import Path
from typing import Any

from stamping import ROOT, commit, stamp

FOLDER = Path(__file__).parent
LINES = FOLDER / "soak_table.jsonl"
TABLE = FOLDER / "soak_table.md"
DECIDING = ("lab", "load", "client", "detect", "dsml")

TINY_POOL = ("--lab-option", "device-pages=120", "--lab-option", "slack-ms=0.1")
# Prefill and decode in servers of their own.
APART = ("--lab-option", "disaggregation=on")
# arm -> (flags, lowest and highest share of corrupted responses)
ARMS: dict[str, tuple[tuple[str, ...], float, float]] = {
    "bf16, HiCache on": ((), 0.08, 0.30),
    "fp8, HiCache on": (("--lab-index-k", "fp8"), 0.0, 0.0),
    "bf16, HiCache off": (("--lab-hicache", "off"), 0.0, 0.0),
    "bf16, one session": (("--sessions", "1"), 0.0, 0.0),
    "bf16, index-gate": (("--lab-fix", "index-gate"), 0.0, 0.0),
    "bf16, short context": (("--scenario", "short-context"), 0.0, 0.0),
    "bf16, short context, tiny pool": (("--scenario", "short-context", *TINY_POOL), 0.0, 0.0),
    "no fault": (("--lab-fault", "none"), 0.0, 0.0),
    "fp8, long-context": (("--scenario", "long-context", "--lab-index-k", "fp8"), 0.005, 0.5),
    "fp8, prefill batch 20": (
        ("--lab-index-k", "fp8", "--lab-option", "prefill-batch=20"), 0.005, 0.5,
    ),
    "PD: bf16, HiCache on": (APART, 0.08, 0.30),
    "PD: fp8, HiCache on": ((*APART, "--lab-index-k", "fp8"), 0.0, 0.0),
    "PD: bf16, HiCache off": ((*APART, "--lab-hicache", "off"), 0.0, 0.0),
    "PD: bf16, one session": ((*APART, "--sessions", "1"), 0.0, 0.0),
}  # fmt: skip
BUSY_ARMS = ("bf16, HiCache on", "fp8, HiCache on")
BUSY_SEEDS = (0, 1)


def code_digest() -> str:
    """A digest of the code and data that decide what a run shows."""
    paths = [f"HEAD:dsv4doctor/{name}" for name in DECIDING] + ["HEAD:repro"]
    trees = subprocess.run(
        ["git", "rev-parse", *paths], cwd=ROOT, capture_output=True, check=True
    ).stdout
    return blake2b(trees, digest_size=8).hexdigest()


def run(arm: str, seed: int, *, busy: bool) -> dict[str, Any]:
    """One run as a line of the log."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * busy)]
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-m", "dsv4doctor", "repro", "--json", "--no-progress",
                 "--sessions", "60", "--seed", str(seed), "--output-dir", folder, *ARMS[arm][0]],
                capture_output=True, text=True, check=False, timeout=900,
            )  # fmt: skip
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    body = json.loads(done.stdout)["repro"]
    return {
        "arm": arm,
        "seed": seed,
        "busy": busy,
        "code": code_digest(),
        "commit": commit(),
        "seconds": round(time.monotonic() - began, 1),
        "exit_code": done.returncode,
        **{key: body[key] for key in ("responses", "corrupted_responses", "corrupted_sessions",
                                      "sessions", "failures", "by_label", "by_turn")},
    }  # fmt: skip


def share(line: dict[str, Any]) -> float:
    return line["corrupted_responses"] / line["responses"]


def is_right(line: dict[str, Any]) -> bool:
    """Whether the share lies where the mechanism puts it, and nothing failed."""
    _, low, high = ARMS[line["arm"]]
    return low <= share(line) <= high and line["failures"] == 0


def table(lines: list[dict[str, Any]]) -> str:
    """The Markdown table over all lines of this code."""
    rows = []
    for arm in ARMS:
        for busy in (False, True):
            of_arm = [line for line in lines if line["arm"] == arm and line["busy"] == busy]
            if not of_arm:
                continue
            shares = [share(line) for line in of_arm]
            mean = sum(shares) / len(shares)
            load = ", two busy loops" if busy else ""
            wrong = sum(not is_right(line) for line in of_arm)
            commits = ", ".join(dict.fromkeys(line["commit"][:8] for line in of_arm))
            rows.append(
                f"| {arm}{load} | {len(of_arm)} | {100 * min(shares):.1f} | {100 * mean:.1f} | "
                f"{100 * max(shares):.1f} | {wrong} | {commits} |"
            )
    head = "| arm, 60 sessions | seeds | least % | mean % | most % | outside its bounds | commit |"
    return "\n".join(
        (
            "# The experiment table over many seeds",
            "",
            "`python benchmarks/soak_table.py` (`make soak`): corrupted responses in per cent of",
            "the judged ones. The zeros are exact counts. Each run is a line of soak_table.jsonl.",
            "",
            head,
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            stamp(),
            "",
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="", help="arms whose name holds this word")
    options = parser.parse_args()
    code = code_digest()
    text = LINES.read_text(encoding="utf-8") if LINES.exists() else ""
    everything = [json.loads(line) for line in text.splitlines()]
    lines = [line for line in everything if line["code"] == code]
    seen = {(line["arm"], line["seed"], line["busy"]) for line in lines}
    wanted = [(arm, seed, False) for seed in range(options.seeds) for arm in ARMS]
    wanted += [(arm, seed, True) for seed in BUSY_SEEDS for arm in BUSY_ARMS]
    for arm, seed, busy in wanted:
        if (arm, seed, busy) in seen or options.only not in arm:
            continue
        line = run(arm, seed, busy=busy)
        with LINES.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        lines.append(line)
        verdict = "" if is_right(line) else "  <-- OUTSIDE"
        said = f"{arm}, seed {seed}{', busy' * busy}: {100 * share(line):.1f} %"
        print(f"{said}, {line['seconds']} s{verdict}", flush=True)
    newest = {(line["arm"], line["seed"], line["busy"]): line for line in [*everything, *lines]}
    TABLE.write_text(table(list(newest.values())), encoding="utf-8")
    return int(not all(map(is_right, lines)))


if __name__ == "__main__":
    sys.exit(main())
