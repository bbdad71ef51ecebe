"""`diagnose` on every fault of the lab, and on none, over ten seeds.

    python benchmarks/soak_diagnose.py [--seeds 10] [--only FAULT]...

Each finished run is a line in `soak_diagnose.jsonl` at once, so a killed soak goes on where it
stopped; a seed is run for every fault before the next seed begins. Lines count only for the code
they were measured on. At least nine of ten runs of each fault must name its cause first, and no run
of the healthy lab may name any; each within five minutes. Ends with an error when it is otherwise.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

from stamping import ROOT, commit, stamp

FOLDER = Path(__file__).parent
LINES = FOLDER / "soak_diagnose.jsonl"
TABLE = FOLDER / "soak_diagnose.md"
DECIDING = ("lab", "load", "client", "detect", "dsml", "stats", "differential")
# What each fault of the lab is, in the diagnosis' words; None: nothing may be named.
CAUSES: dict[str, str | None] = {
    "index-race": "index_k_stale_read",
    "load-fence": "index_k_stale_read",
    "write-fence": "index_k_stale_read",
    "decode-store": "decode_store",
    "foreign-page": "foreign_page",
    "early-send": "early_send",
    "abort-wedge": "wedge_after_abort",
    "overlap-desync": "wedge_overlap",
    "parser-negative-number": "parser",
    "layout-mismatch": "model_baseline",
    "none": None,
}
RIGHT_OF_TEN = 0.9
LIMIT_S = 300.0  # what a diagnosis may take
PATIENCE_S = 1800


def code_digest() -> str:
    """A digest of the code and data that decide what a run shows."""
    listed = subprocess.run(
        ["git", "ls-files", "dsv4doctor/flows/diagnose*.py"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    paths = [f"HEAD:dsv4doctor/{name}" for name in DECIDING] + ["HEAD:repro"]
    paths += [f"HEAD:{path}" for path in listed]
    trees = subprocess.run(
        ["git", "rev-parse", *paths], cwd=ROOT, capture_output=True, check=True
    ).stdout
    return blake2b(trees, digest_size=8).hexdigest()


def run(fault: str, seed: int) -> dict[str, Any]:
    """One diagnosis as a line of the log."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "dsv4doctor", "diagnose", "--json", "--no-progress",
             "--lab-fault", fault, "--seed", str(seed), "--output-dir", folder],
            capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
    if not done.stdout:
        raise RuntimeError(done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    body = document["diagnose"]
    supported = [c["name"] for c in body["causes"] if c["standing"] == "supported"]
    return {
        "fault": fault,
        "seed": seed,
        "code": code_digest(),
        "commit": commit(),
        "seconds": round(time.monotonic() - began, 1),
        "verdict": document["verdict"],
        "supported": supported,
        "open": [c["name"] for c in body["causes"] if c["standing"] == "open"],
        "arms": {
            arm["name"]: [arm.get("corrupted_sessions"), arm.get("sessions")]
            for arm in body["arms"]
        },
        "notes": body["notes"],
    }


def is_right(line: dict[str, Any]) -> bool:
    """Whether the cause that is there, and no other, was named first; of no fault, none."""
    cause = CAUSES[line["fault"]]
    if cause is None:
        return line["verdict"] == "healthy" and not line["supported"]
    return line["verdict"] == "diagnosed" and line["supported"][:1] == [cause]


def are_right(lines: list[dict[str, Any]]) -> bool:
    """Whether the soak as a whole keeps its promises."""
    by_fault: dict[str, list[bool]] = defaultdict(list)
    for line in lines:
        by_fault[line["fault"]].append(is_right(line))
    enough = all(sum(rights) >= RIGHT_OF_TEN * len(rights) for rights in by_fault.values())
    return enough and all(by_fault["none"]) and all(line["seconds"] <= LIMIT_S for line in lines)


def table(lines: list[dict[str, Any]]) -> str:
    """The runs as Markdown: one row a fault, wrong runs below."""
    rows = []
    for fault, cause in CAUSES.items():
        runs = [line for line in lines if line["fault"] == fault]
        if runs:
            times = sorted(line["seconds"] for line in runs)
            rows.append(
                f"| {fault} | {cause or 'none'} | {sum(map(is_right, runs))} of {len(runs)} | "
                f"{times[len(times) // 2]:.0f} | {times[-1]:.0f} |"
            )
    wrong = [
        f"- {line['fault']}, seed {line['seed']}: {line['verdict']}, named "
        f"{', '.join(line['supported']) or 'none'}, open {', '.join(line['open']) or 'none'}; "
        f"wrong sessions by arm: {line['arms']}"
        for line in lines
        if not is_right(line)
    ]
    return "\n".join(
        (
            "# `diagnose` on every fault of the lab",
            "",
            "| fault | cause to be named first | right | median s | longest s |",
            "|---|---|---|---|---|",
            *rows,
            "",
            *(["Wrong:", "", *wrong, ""] if wrong else []),
            stamp(),
            "",
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", choices=list(CAUSES), action="append")
    options = parser.parse_args()
    code = code_digest()
    text = LINES.read_text(encoding="utf-8") if LINES.exists() else ""
    lines = [line for line in map(json.loads, text.splitlines()) if line["code"] == code]
    seen = {(line["fault"], line["seed"]) for line in lines}
    for seed in range(options.seeds):
        for fault in CAUSES:
            if (fault, seed) in seen or fault not in (options.only or CAUSES):
                continue
            line = run(fault, seed)
            with LINES.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            lines.append(line)
            verdict = "" if is_right(line) else "  <-- WRONG"
            print(
                f"{fault}, seed {seed}: {line['verdict']} {line['supported']}, "
                f"{line['seconds']} s{verdict}",
                flush=True,
            )
            TABLE.write_text(table(lines), encoding="utf-8")
    return int(not are_right(lines))


if __name__ == "__main__":
    sys.exit(main())
