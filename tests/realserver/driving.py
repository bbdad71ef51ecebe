"""`repro` and `scan` driven at a foreign server, and what every such run must fulfil."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from e2e.cli_runs import COMMAND, Done
from realserver.reading import disagreements

SCENARIOS = Path(__file__).parent / "scenarios"
# Nothing may hang: a run that takes longer than this fails. A busy two-core machine needs a tenth.
LIMIT_S = 900
# A CPU takes long over a prompt; silence for this long is more than slowness.
STALL_S = 240


def drive(
    output_dir: Path, url: str, scenario: str, *flags: str, sessions: int = 4, turns: int = 4
) -> Done:
    """`repro` at `url`, judged by the plain reader; fails on a hang, a traceback, a wrong label."""
    command = [
        *COMMAND, "repro", "--json", "--no-progress", "--output-dir", str(output_dir),
        "--base-url", url, "--scenario", str(SCENARIOS / f"{scenario}.toml"),
        "--sessions", str(sessions), "--turns", str(turns), "--stall-timeout", str(STALL_S), *flags,
    ]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    done = Done(ended.returncode, ended.stdout, ended.stderr)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.code in {0, 1}, done.stderr + done.stdout
    records = list(done.records())
    tell(scenario, done)
    assert len(records) == sessions * turns
    assert done.body["failures"] == 0, done.body["by_failure"]
    assert done.body["wedge"] is None
    assert done.body["aborted_by_us"] == sum(record["aborted"] for record in records)
    assert done.body["responses"] == sum(not record["aborted"] for record in records)
    wrong = disagreements(done.run_dir, records)
    assert not wrong, "\n".join([str(done.run_dir), *wrong])
    return done


def tell(name: str, done: Done) -> None:
    """One line of figures, for docs/real-servers.md (shown with `pytest -s`)."""
    body = done.body
    print(
        f"\n{name}: {body['responses']} responses, {body['corrupted_responses']} corrupted, "
        f"{body['aborted_by_us']} aborted by us; primary {body['by_label']}, also "
        f"{body['also_label']}; ttft p50 {body['ttft_ms']['p50']} ms, "
        f"{body['output_throughput']} tokens/s"
    )


def finishes(done: Done) -> Counter[str | None]:
    """How the judged replies ended."""
    return Counter(r["response"]["finish_reason"] for r in done.records() if not r["aborted"])


def scan(file: Path, records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """`scan --per-record` of `records`, written to `file`: a verdict each, in order."""
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    ended = subprocess.run(
        [*COMMAND, "scan", str(file), "--per-record", "--json"],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert "Traceback" not in ended.stderr, ended.stderr
    assert ended.returncode in {0, 1}, ended.stderr
    body = json.loads(ended.stdout)["scan"]
    assert body["totals"]["unreadable_lines"] == 0
    verdicts = body["records"]
    assert len(verdicts) == len(records)
    return list(verdicts)
