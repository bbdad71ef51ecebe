"""Virtual environments of the servers that these tests drive: made once, kept, never ours.

They are large (SGLang's takes some 3 GB) and lie in the folder named by DSV4DOCTOR_REALSERVER_DIR.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

FOLDER = Path(
    os.environ.get("DSV4DOCTOR_REALSERVER_DIR") or Path(__file__).parents[2] / ".soak/realserver"
)
# Building from source would start a hundred compilers; wheels alone are wanted.
INSTALL = ("-m", "pip", "install", "--quiet", "--only-binary", ":all:")
# Some 160 s on an idle machine with a near mirror; a slow line gets ten times that.
INSTALL_LIMIT_S = 1800


def python_of(name: str, *steps: Sequence[str]) -> Path:
    """The Python of the environment `name`, each of `steps` a list of pip's arguments.

    A change of the steps makes a new one. Fails the test, with pip's last words, if one fails.
    """
    recipe = hashlib.sha256(repr(steps).encode()).hexdigest()[:8]
    home = FOLDER / f"{name}-{recipe}"
    python = home / "bin" / "python"
    with _alone(home):
        if not (home / "complete").exists():
            _run(sys.executable, "-m", "venv", "--clear", str(home))
            for step in steps:
                _run(str(python), *INSTALL, *step)
            (home / "complete").touch()
    return python


def _run(*command: str) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False
    )
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-12:])
        pytest.fail(f"{' '.join(command)} ended with {done.returncode}:\n{said}")


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One maker at a time, however many test processes there are."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        yield
