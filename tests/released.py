"""Released wheels of SGLang, taken by pip into a temporary folder for the tests that read them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest


def fetch_wheel(release: str, folder: Path) -> Path:
    """The wheel of that release; the test is skipped where no index has it."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder),
         f"sglang=={release}"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    found = next(folder.glob("*.whl"), None)
    if found is None:
        pytest.skip(f"no wheel of sglang {release}: {done.stderr.strip()[-200:]}")
    return found


def unpack(wheel: Path, folder: Path, is_wanted: Callable[[str], bool]) -> Path:
    """`folder`, with the files in it whose names are wanted."""
    with zipfile.ZipFile(wheel) as archive:
        for name in filter(is_wanted, archive.namelist()):
            archive.extract(name, folder)
    return folder
