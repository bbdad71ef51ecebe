"""The case's experiment over ten seeds, and A/A: two arms of one sick configuration, ten seeds.

    python benchmarks/soak_ab.py [--seeds 10] [--only case|aa]

Each finished run is a line in `soak_ab.jsonl` at once, so a killed soak goes on where it stopped.
Lines count only for the code they were measured on. The case must be found with every seed; A/A
must report a difference with at most two of ten. Ends with an error when it is otherwise.

Arms of one round get the same prompts, and the lab is deterministic but for the order in which
requests arrive: two arms that are equal in all would have equal outcomes. For A/A the two arms are
therefore runs of `repro` with different prompts, and `ab --run` looks at them once.
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
LINES = FOLDER / "soak_ab.jsonl"
TABLE = FOLDER / "soak_ab.md"
DECIDING = ("lab", "load", "client", "detect", "dsml", "stats", "experiment", "deploy")
KINDS = ("case", "aa")
SICK = "bf16-on"
MOST_FALSE = 2  # of ten A/A runs
LIMIT_S = 1800


def code_digest() -> str:
    """A digest of the code and data that decide what a run shows."""
    paths = [f"HEAD:dsv4doctor/{name}" for name in DECIDING] + ["HEAD:repro"]
    trees = subprocess.run(
        ["git", "rev-parse", *paths], cwd=ROOT, capture_output=True, check=True
    ).stdout
    return blake2b(trees, digest_size=8).hexdigest()


def doctor(*arguments: str) -> dict[str, Any]:
    """The JSON document of one command."""
    done = subprocess.run(
        [sys.executable, "-m", "dsv4doctor", *arguments, "--json"],
        capture_output=True, text=True, check=False, timeout=LIMIT_S,
    )  # fmt: skip
    if not done.stdout:
        raise RuntimeError(done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def run_case(seed: int, folder: str) -> dict[str, Any]:
    """The default experiment."""
    return doctor("ab", "--no-progress", "--seed", str(seed), "--output-dir", folder)


def run_aa(seed: int, folder: str) -> dict[str, Any]:
    """Two runs of the sick lab with different prompts, compared."""
    words = []
    for name, prompts in (("a", 2 * seed + 1000), ("b", 2 * seed + 1001)):
        made = doctor(
            "repro", "--no-progress", "--sessions", "60", "--seed", str(prompts),
            "--output-dir", folder,
        )  # fmt: skip
        words += ["--run", f"{name}={made['repro']['run_dir']}"]
    return doctor("ab", *words, "--output-dir", folder)


def run(kind: str, seed: int) -> dict[str, Any]:
    """One run as a line of the log."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        document = run_case(seed, folder) if kind == "case" else run_aa(seed, folder)
    body = document["ab"]
    return {
        "kind": kind,
        "seed": seed,
        "code": code_digest(),
        "commit": commit(),
        "seconds": round(time.monotonic() - began, 1),
        "verdict": document["verdict"],
        "exit_code": document["exit_code"],
        "arms": {arm["name"]: [arm["corrupted_sessions"], arm["sessions"]] for arm in body["arms"]},
        "verified": all(arm["verified"] for arm in body["arms"]),
        "differing": [[c["a"], c["b"]] for c in body["comparisons"] if c["verdict"] == "differ"],
        "interaction": bool((body["interaction"] or {}).get("found")),
        "restored": body["restored"],
    }


def is_right(line: dict[str, Any]) -> bool:
    """Whether one run of the case shows what it must; A/A runs are judged together."""
    if line["kind"] == "aa":
        return True
    return (
        len(line["differing"]) == 3
        and all(SICK in pair for pair in line["differing"])
        and line["verified"] and line["interaction"] and line["restored"] is True
    )  # fmt: skip


def are_right(lines: list[dict[str, Any]]) -> bool:
    """Whether the soak as a whole keeps its promises."""
    false_alarms = sum(bool(line["differing"]) for line in lines if line["kind"] == "aa")
    return all(map(is_right, lines)) and false_alarms <= MOST_FALSE


def table(lines: list[dict[str, Any]]) -> str:
    """The runs as Markdown."""
    rows = [
        f"| {line['kind']} | {line['seed']} | "
        f"{', '.join(f'{name} {k}/{n}' for name, (k, n) in line['arms'].items())} | "
        f"{', '.join(' – '.join(pair) for pair in line['differing']) or 'none'} | "
        f"{'yes' if line['interaction'] else '–'} | {line['seconds']:.0f} |"
        for line in sorted(lines, key=lambda line: (line["kind"], line["seed"]))
    ]
    return "\n".join(
        (
            "# `ab`: the case over ten seeds, and A/A",
            "",
            "| experiment | seed | corrupted / judged sessions | differing | interaction | s |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            stamp(),
            "",
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", choices=KINDS)
    options = parser.parse_args()
    code = code_digest()
    text = LINES.read_text(encoding="utf-8") if LINES.exists() else ""
    lines = [line for line in map(json.loads, text.splitlines()) if line["code"] == code]
    seen = {(line["kind"], line["seed"]) for line in lines}
    for kind in KINDS:
        for seed in range(options.seeds):
            if (kind, seed) in seen or options.only not in (None, kind):
                continue
            line = run(kind, seed)
            with LINES.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            lines.append(line)
            verdict = "" if is_right(line) else "  <-- WRONG"
            print(
                f"{kind}, seed {seed}: {line['differing']}, {line['seconds']} s{verdict}",
                flush=True,
            )
    TABLE.write_text(table(lines), encoding="utf-8")
    return int(not are_right(lines))


if __name__ == "__main__":
    sys.exit(main())
