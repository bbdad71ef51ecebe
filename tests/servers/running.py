"""The canned server as a fixture, one process for all tests of a worker."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[int]:
    """The port of a canned server that lives inside the block."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("canned.py")), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["port"]
        process.kill()


@pytest.fixture(scope="session")
def canned() -> Iterator[str]:
    """The server's root; a case is a first path segment below it."""
    with running() as port:
        yield f"http://127.0.0.1:{port}"
