"""Writes benchmarks/scan_soak.md: false alarms on clean texts, recall on injected faults.

Usage: python benchmarks/scan_soak.py [--pieces 20000] [--samples 300] [--seeds 0 1 2] [--lab DIR]

The same functions as the soak tests (`pytest -m soak tests/soak`), with their figures written down.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "soak"))
sys.path.insert(0, str(ROOT))

from detect_injections import injections  # noqa: E402
from detect_lab import FAULTS, lab_share  # noqa: E402
from detect_rows import ROWS  # noqa: E402
from detect_texts import UNSOUND, Piece, clean_pieces  # noqa: E402
from test_detect_false_alarms import alarms  # noqa: E402
from test_detect_sensitivity import recall, usable  # noqa: E402

RECALL_TEXTS = 900


# What the figures depend on.
MEASURED = ("dsv4doctor/detect", "dsv4doctor/dsml", "tests/soak")


def commit() -> str:
    """The commit that is measured, marked where what is measured differs from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, cwd=ROOT, check=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", *MEASURED)
    return git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")


def false_alarms(count: int, seeds: list[int]) -> list[str]:
    """The first part of the document: every alarm of every seed."""
    lines = ["## False alarms", ""]
    for seed in seeds:
        damaged: list[Piece] = []
        pieces = list(clean_pieces(count, seed=seed, set_apart=damaged))
        judged, found = alarms(pieces)
        kinds = Counter(piece.kind for piece in pieces)
        lines += [
            f"Seed {seed}: {len(pieces):,} texts of {len(kinds)} kinds, "
            f"{sum(len(p.text) for p in pieces) / 1e6:.0f} million characters, each as content and"
            f" as an argument of a call; {len(damaged)} more were set apart.",
            f"**{len(found)} alarms in {judged:,} responses.**",
            "",
            *(f"- {alarm}" for alarm in found),
            *([""] if found else []),
        ]
        if seed == seeds[0]:
            shown = ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items()))
            of_kinds = f"Kinds, of seed {seed}: {shown}."
    return [
        *lines,
        "Set apart before any detector saw them, by one expression over the text as its package"
        f" ships it: `{UNSOUND.pattern!a}` (U+FFFD, raw control characters, noncharacters, and the"
        " beginnings of UTF-8 read as Latin-1). Such a text is no clean response.",
        "",
        of_kinds,
        "",
    ]


def recalls(samples: int) -> list[str]:
    """The second part: recall of every kind of injection."""
    texts = [piece.text for piece in clean_pieces(RECALL_TEXTS, seed=1) if usable(piece)]
    lines = [
        "## Recall",
        "",
        f"One fault put into a clean text, {samples} samples a kind, seeded. A sample counts"
        " when it carries the label, primary or not. `floor` is what the soak test demands.",
        "",
        "| fault | label | recall | floor |",
        "|---|---|---|---|",
    ]
    for kind in injections():
        share = recall(kind, texts, samples)
        lines.append(f"| {kind.name} | `{kind.label}` | {share:.3f} | {kind.floor or 'none'} |")
    return [*lines, ""]


def rows() -> list[str]:
    """The third part: what surfaces of odd markup, and what stands for it above."""
    lines = [
        "## What parsers let surface",
        "",
        "| the model writes | a client sees | injected as |",
        "|---|---|---|",
    ]
    for given, seen, stands in ROWS:
        shown = stands if isinstance(stands, str) else "; ".join(stands)
        lines.append(f"| {given} | {seen} | {shown} |")
    return [*lines, ""]


def sick_labs(folder: Path) -> list[str]:
    """The fourth part: replies of the lab under each fault against the healthy lab's."""
    lines = [
        "## Replies of the lab under each fault",
        "",
        "Damaged is a reply that differs from the healthy lab's to the same request (24 sessions,"
        " or 60 where the fault is rare); told is one that the detectors call corrupted. Two more,"
        " `abort-wedge` and `overlap-desync`, damage no reply: the server stops answering.",
        "",
        "| fault | replies | damaged | told | recall | sound ones alarmed | primary labels |",
        "|---|---|---|---|---|---|---|",
    ]
    for fault in FAULTS:
        share = lab_share(fault, folder)
        labels = ", ".join(f"{label} {count}" for label, count in share.labels)
        lines.append(
            f"| `{fault}` | {share.judged} | {share.damaged} | {share.told} | {share.recall:.3f} |"
            f" {share.alarms} | {labels} |"
        )
        lines += [f"\nMissed: {missed}" for missed in share.missed[:5]]
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pieces", type=int, default=20_000)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--lab", type=Path, help="where runs of the lab are kept, or made")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            "# Soak of the detectors",
            "",
            f"Commit {commit()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC; by"
            " `python benchmarks/scan_soak.py`.",
            "",
            *false_alarms(args.pieces, args.seeds),
            *recalls(args.samples),
            *rows(),
            *sick_labs(args.lab or Path(folder)),
        ]
    (ROOT / "benchmarks" / "scan_soak.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
