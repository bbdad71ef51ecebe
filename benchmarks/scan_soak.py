"""Writes benchmarks/scan_soak.md: false alarms on clean texts, recall on injected faults.

Usage: python benchmarks/scan_soak.py [--pieces 20000] [--samples 300]

The same functions as the soak tests (`pytest -m soak tests/soak`), with their figures written down.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "soak"))
sys.path.insert(0, str(ROOT))

from detect_injections import injections  # noqa: E402
from detect_texts import UNSOUND, Piece, clean_pieces  # noqa: E402
from test_detect_false_alarms import alarms  # noqa: E402
from test_detect_sensitivity import recall, usable  # noqa: E402

RECALL_TEXTS = 900


def commit() -> str:
    """The commit that is measured, marked where the tree differs from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pieces", type=int, default=20_000)
    parser.add_argument("--samples", type=int, default=300)
    args = parser.parse_args()
    damaged: list[Piece] = []
    pieces = list(clean_pieces(args.pieces, set_apart=damaged))
    kinds = Counter(piece.kind for piece in pieces)
    judged, found = alarms(pieces)
    texts = [piece.text for piece in clean_pieces(RECALL_TEXTS, seed=1) if usable(piece)]
    lines = [
        "# Soak of the detectors",
        "",
        f"Commit {commit()}, {datetime.now(UTC):%Y-%m-%d}; by `python benchmarks/scan_soak.py`.",
        "",
        "## False alarms",
        "",
        f"{len(pieces):,} texts of {len(kinds)} kinds, {sum(len(p.text) for p in pieces) / 1e6:.0f}"
        " million characters, each as content and as an argument of a call:",
        f"**{len(found)} alarms in {judged:,} responses.**",
        "",
        f"{len(damaged)} texts were set apart before any detector saw them, by one expression over"
        f" the text as its package ships it: `{UNSOUND.pattern!a}` (U+FFFD, raw control"
        " characters, noncharacters, and the beginnings of UTF-8 read as Latin-1). Such a text is"
        " no clean response.",
        "",
        *(f"- {alarm}" for alarm in found),
        "",
        "Kinds: " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())) + ".",
        "",
        "## Recall",
        "",
        f"One fault put into a clean text, {args.samples} samples a kind, seeded. A sample counts"
        " when it carries the label, primary or not. `floor` is what the soak test demands.",
        "",
        "| fault | label | recall | floor |",
        "|---|---|---|---|",
    ]
    for kind in injections():
        share = recall(kind, texts, args.samples)
        lines.append(f"| {kind.name} | `{kind.label}` | {share:.3f} | {kind.floor or 'none'} |")
    (ROOT / "benchmarks" / "scan_soak.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
