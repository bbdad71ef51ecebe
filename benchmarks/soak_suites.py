"""The test suites that are too long for CI, one after another: what passed, on which commit.

    python benchmarks/soak_suites.py [--only WORD] [--python PYTHON]

A suite is a test file that holds tests marked `soak` or `upstream`. With `--python`, another
environment's interpreter runs all that CI runs of the folder or file `--only`. Each finished suite
is a line in `soak_suites.jsonl` at once, so a killed soak goes on where it stopped; a line counts
only for the code it was measured on. Tests over SGLang's releases are counted per release. Ends
with an error when anything failed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

from stamping import ROOT, commit, stamp

FOLDER = Path(__file__).parent
LINES = FOLDER / "soak_suites.jsonl"
TABLE = FOLDER / "soak_suites.md"
MARKED = "soak or upstream"
OTHERS = "not gpu and not realserver"
RELEASE = re.compile(r"0\.5\.\d+")
LIMIT_S = 3 * 3600


def code_digest() -> str:
    """A digest of the package, the tests and the scenarios as committed."""
    paths = [f"HEAD:{name}" for name in ("dsv4doctor", "tests", "repro")]
    trees = subprocess.run(
        ["git", "rev-parse", *paths], cwd=ROOT, capture_output=True, check=True
    ).stdout
    return blake2b(trees, digest_size=8).hexdigest()


def suites() -> list[str]:
    """Test files, relative to the checkout, that hold marked tests."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", MARKED, "tests"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return sorted({line.split("::")[0] for line in done.stdout.splitlines() if "::" in line})


def run(suite: str, python: str, markers: str) -> dict[str, Any]:
    """One suite as a line of the log: counts of outcomes, by release where it names one."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        xml = Path(folder) / "outcomes.xml"
        command = [python, "-m", "pytest", "-q", "-m", markers, f"--junitxml={xml}", suite]
        subprocess.run(command, cwd=ROOT, check=False, timeout=LIMIT_S)
        cases = list(ET.parse(xml).getroot().iter("testcase"))
    groups: dict[str, Counter[str]] = {}
    failed = []
    for case in cases:
        release = RELEASE.search(case.get("name", ""))
        kinds = {child.tag for child in case}
        outcome = next(
            (kind for kind in ("failure", "error", "skipped") if kind in kinds), "passed"
        )
        groups.setdefault(release[0] if release else "all", Counter())[outcome] += 1
        if outcome in ("failure", "error"):
            failed.append(case.get("name"))
    return {
        "suite": suite,
        "python": "" if python == sys.executable else Path(python).parts[-3],
        "code": code_digest(),
        "commit": commit(),
        "seconds": round(time.monotonic() - began, 1),
        "outcomes": {name: dict(counts) for name, counts in groups.items()},
        "failed": failed,
    }


def table(lines: list[dict[str, Any]]) -> str:
    """The runs as Markdown."""
    rows = []
    for line in sorted(lines, key=lambda line: (line["suite"], line["python"])):
        total = sum((Counter(counts) for counts in line["outcomes"].values()), Counter())
        releases = sorted(
            (name for name in line["outcomes"] if name != "all"),
            key=lambda name: int(name.rsplit(".", 1)[1]),
        )
        each = {str(sorted(line["outcomes"][name].items())) for name in releases}
        told = f"{releases[0]} … {releases[-1]} ({len(releases)})" if releases else "–"
        if len(each) > 1:
            told += ", counts differ by release"
        name = f"`{line['suite']}`" + (f" ({line['python']})" if line["python"] else "")
        rows.append(
            f"| {name} | {total['passed']} | {total['failure'] + total['error']} | "
            f"{total['skipped']} | {told} | {line['seconds']:.0f} | {line['commit']} |"
        )
    return "\n".join(
        (
            "# Suites that are too long for CI",
            "",
            "| suite | passed | failed | skipped | SGLang releases | s | commit |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
            stamp(),
            "",
        )
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="suites whose path holds this word")
    parser.add_argument(
        "--python", default=sys.executable, help="another environment's interpreter"
    )
    options = parser.parse_args()
    code = code_digest()
    text = LINES.read_text(encoding="utf-8") if LINES.exists() else ""
    everything = [json.loads(line) for line in text.splitlines()]
    lines = [line for line in everything if line["code"] == code]
    other = options.python != sys.executable
    wanted = [options.only] if other else [s for s in suites() if options.only in s]
    seen = {(line["suite"], line["python"]) for line in lines}
    for suite in wanted:
        if (suite, Path(options.python).parts[-3] if other else "") in seen:
            continue
        line = run(suite, options.python, OTHERS if other else MARKED)
        with LINES.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        lines.append(line)
    # The newest line of a suite tells what is known of it; its commit stands beside it.
    newest = {(line["suite"], line["python"]): line for line in [*everything, *lines]}
    TABLE.write_text(table(list(newest.values())), encoding="utf-8")
    return int(any(line["failed"] for line in lines))


if __name__ == "__main__":
    sys.exit(main())
