"""`report --format html`: the time to render and to open 10,000 responses, and the file's size.

    python benchmarks/report.py [--sessions 1000] [--turns 10] [--write FILE]

Rendering is the command in a process of its own, from the run directory to the file. Opening is
headless Chromium's time from navigation to the load event, by when the list is filled. A killed run
(no summary) is summed up first and rendered then.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stamping import ROOT, stamp

sys.path.insert(0, str(ROOT))

from tests.report.browser import chromium
from tests.report.runs import finish_run, large_run, write_run

AIM_RENDER_S = 10
AIM_OPEN_S = 2
AIM_MB = 15
OPENINGS = 5


def doctor(*arguments: str | Path) -> tuple[float, float, str]:
    """(wall seconds, CPU seconds, stdout) of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "dsv4doctor", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, done.stdout


def opening_s(page_file: Path, folder: Path) -> list[float]:
    """Seconds to the load event, several times; empty without a browser."""
    program = shutil.which("chromium")
    if program is None:
        return []
    with chromium(program, folder / "profile") as page:
        return [page.open(page_file.as_uri()) for _ in range(OPENINGS)]


def table(sessions: int, turns: int) -> list[str]:
    """The rows of the table, measured now."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = large_run(sessions=sessions, turns=turns)
        run = write_run(folder, records, sessions=sessions, turns=turns)
        size_mb = (run / "records.jsonl").stat().st_size / 1e6
        target = folder / "run.html"
        render = ("report", run, "--format", "html", "--output", target)
        killed = doctor(*render)
        (entry,) = json.loads(doctor("report", run, "--json")[2])["report"]["runs"]
        document = {"verdict": entry["verdict"], "exit_code": 1, "repro": entry["summary"]}
        finish_run(run, document)
        finished = doctor(*render)
        page_mb = target.stat().st_size / 1e6
        opened = opening_s(target, folder)
    told = f"{min(opened):.2f} to {max(opened):.2f} s" if opened else "no chromium here"
    return [
        "| what | wall | CPU | aim |",
        "|---|---|---|---|",
        f"| render a finished run ({size_mb:.0f} MB of records) | {finished[0]:.1f} s "
        f"| {finished[1]:.1f} s | {AIM_RENDER_S} s |",
        f"| sum up and render a killed run | {killed[0]:.1f} s | {killed[1]:.1f} s "
        f"| {AIM_RENDER_S} s |",
        f"| open in Chromium, {OPENINGS} times | {told} | | {AIM_OPEN_S} s |",
        f"| size of the file | {page_mb:.1f} MB | | under {AIM_MB} MB |",
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    lines = [
        "# report",
        "",
        f"`python benchmarks/report.py --sessions {options.sessions} --turns {options.turns}`: "
        f"{options.sessions * options.turns:,} responses, on {platform.machine()}.",
        "",
        *table(options.sessions, options.turns),
        "",
        stamp(),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
