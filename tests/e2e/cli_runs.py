"""Runs of the real command line, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "dsv4doctor")
# A 60-session run takes some 15 s on two idle cores; a drowning machine gets twenty times that.
LIMIT_S = 300
# The lab streams as fast as it can. Which bytes are read too early is a matter of its virtual time
# and of nothing else, so this costs no claim about labels; it costs claims about speed.
UNPACED = ("--lab-option", "itl-ms=0", "--lab-option", "ttft-ms=0")


@dataclass(frozen=True, slots=True)
class Done:
    """An ended command: its exit code and what it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout."""
        assert self.stdout, self.stderr
        return json.loads(self.stdout)

    @property
    def body(self) -> dict[str, Any]:
        """The command's own object in the document."""
        return self.document[self.document["command"]]

    @property
    def run_dir(self) -> Path:
        return Path(self.body["run_dir"])

    def records(self) -> Iterator[dict[str, Any]]:
        """The records of the run, as any reader of JSON lines sees them."""
        with (self.run_dir / "records.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)


def doctor(*arguments: str | Path, env: dict[str, str] | None = None) -> Done:
    """`dsv4doctor ARGUMENTS` to its end."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=env,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def repro(output_dir: Path, *arguments: str | Path) -> Done:
    """`dsv4doctor repro --json` into `output_dir`."""
    return doctor("repro", "--json", "--no-progress", "--output-dir", output_dir, *arguments)
