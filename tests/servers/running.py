"""The canned server as a fixture, one process for all tests of a worker."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def canned() -> Iterator[str]:
    """The server's root; a case is a first path segment below it."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("canned.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        yield f"http://127.0.0.1:{port}"
        process.kill()
