"""A foreign server in its own process group: started, waited for, and gone in the end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

POLL_S = 0.25
ASK_S = 5.0
# Time to end by itself after SIGTERM, before SIGKILL.
ENDING_S = 15.0


class EndedEarlyError(Exception):
    """The server's process ended before it was ready."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"ended with {code}:\n{said}")
        self.code = code
        self.said = said


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A server that answers; `log` holds all that it printed."""

    url: str
    log: Path
    seconds_to_ready: float

    def answers(self, route: str) -> bool:
        return _answers(self.url + route)


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


@contextmanager
def serving(
    command: Sequence[str | Path],
    *,
    port: int,
    log: Path,
    health: str,
    limit_s: float,
    env: Mapping[str, str] | None = None,
) -> Iterator[Serving]:
    """`command` while it runs; ready when `health` answers 200.

    Raises:
        EndedEarlyError: if the process ends before that.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        seconds = _await(process, url + health, log, limit_s)
        print(f"\n{Path(command[0]).name} is ready after {seconds:.0f} s")
        yield Serving(url=url, log=log, seconds_to_ready=seconds)
    finally:
        _end(process)


def _await(process: subprocess.Popen[bytes], url: str, log: Path, limit_s: float) -> float:
    start = time.monotonic()
    while time.monotonic() - start < limit_s:
        if process.poll() is not None:
            raise EndedEarlyError(process.returncode, last_lines(log))
        if _answers(url):
            return time.monotonic() - start
        time.sleep(POLL_S)  # between two askings; readiness itself is asked for
    pytest.fail(f"{url} did not answer 200 within {limit_s:.0f} s:\n{last_lines(log)}")


def last_lines(log: Path, count: int = 25) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-count:])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=ASK_S) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group: these servers have children that outlive a killed parent."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            break
        try:
            process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            continue
    process.wait(ENDING_S)
