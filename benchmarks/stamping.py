"""Where and when a figure was taken: the line under every table here."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]


def commit() -> str:
    """The commit that was measured; `+` when the tree held uncommitted changes to the package."""
    head = _git("rev-parse", "--short=12", "HEAD") or "no commit"
    dirty = _git("status", "--porcelain", "--", "dsv4doctor", "repro")
    return f"{head}+" if dirty else head


def stamp() -> str:
    """One line: date, commit, interpreter, cores."""
    cores = len(os.sched_getaffinity(0))
    now = datetime.now(UTC)
    return (
        f"{now:%Y-%m-%d %H:%M} UTC, commit {commit()}, Python {platform.python_version()}, "
        f"{cores} cores, load average {os.getloadavg()[0]:.1f} at the end"
    )


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
