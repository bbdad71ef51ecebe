"""The lab as a child process: started, waited for, and surely gone afterwards.

The child ends at the end of file on its stdin, so it goes also when this process is killed. It runs
in a process group of its own: Ctrl-C reaches the parent alone, which stops it in good order.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from dsv4doctor.errors import EXIT_USAGE, DoctorError, UsageError
from dsv4doctor.lab.faults import need_disaggregation

# A start takes about a second, of three processes three; twenty times that is a machine that is
# drowning.
START_TIMEOUT_S = 60.0
_STOP_S = 3.0
# How a command tells an error: the problem, then the next step.
_PROBLEM = "dsv4doctor: "
_HINT = "  try: "


@dataclass(frozen=True, slots=True, kw_only=True)
class LabOptions:
    """What is started. `switches` are further ones of `lab serve`, as (name, value) without dashes.

    Of a switch that takes no value it is `on` (or empty) or `off`. `log_file` keeps the lab's log;
    without it the log lives as long as the lab.
    """

    index_k: str = "bf16"
    hicache: bool = True
    faults: tuple[str, ...] = ("index-race",)
    fixes: tuple[str, ...] = ()
    seed: int = 0
    ground_truth: Path | None = None
    switches: tuple[tuple[str, str], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    log_file: Path | None = None

    @property
    def is_apart(self) -> bool:
        """Whether prefill and decode are servers of their own."""
        asked_for = any(("disaggregation", word) in self.switches for word in ("on", ""))
        return asked_for or need_disaggregation(self.faults)

    def arguments(self) -> list[str]:
        """The command line behind `lab serve`."""
        arguments = ["--index-k", self.index_k, "--seed", str(self.seed), "--exit-with-stdin"]
        if self.ground_truth is not None:
            arguments += ["--ground-truth", str(self.ground_truth)]
        return arguments + self.behaviour()

    def behaviour(self) -> list[str]:
        """Of the command line what the lab serves like, beside the index-K format."""
        words = ["--enable-hierarchical-cache"] if self.hicache else []
        for name, values in (("--fault", self.faults), ("--fix", self.fixes)):
            words += [word for value in values for word in (name, value)]
        return words + switch_words(self.switches)


def switch_words(switches: Iterable[tuple[str, str]]) -> list[str]:
    """Switches (name, value) as words of a command line."""
    words: list[str] = []
    for name, value in switches:
        if value != "off":
            words += [f"--{name}"] if value in {"", "on"} else [f"--{name}", value]
    return words


class RunningLab:
    """A lab that answers. A context manager: at its end the process is gone."""

    def __init__(
        self, process: subprocess.Popen[bytes], ready: Mapping[str, Any], log: IO[bytes]
    ) -> None:
        # All that it said when it was ready; of a pair of servers also their own addresses.
        self.ready = dict(ready)
        self.base_url = str(ready["base_url"])
        self.pid = int(ready["pid"])
        self.ground_truth = Path(ready["ground_truth"]) if ready["ground_truth"] else None
        self._process = process
        self._log = log

    def __enter__(self) -> RunningLab:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def log_text(self) -> str:
        """What the lab has logged so far."""
        return _read_log(self._log)

    def stop(self) -> None:
        """End the process; returns when it is gone. May be called twice."""
        _end(self._process)
        self._log.close()


def start_lab(options: LabOptions, *, timeout_s: float = START_TIMEOUT_S) -> RunningLab:
    """Start a lab and wait until it answers.

    Raises:
        UsageError: if it refuses its switches; with its own words.
        DoctorError: if it ends or does not become ready in time.
    """
    log = _open_log(options.log_file)
    process = subprocess.Popen(
        [sys.executable, "-m", "dsv4doctor", "lab", "serve", *options.arguments()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, **options.environment},
        start_new_session=True,
    )
    try:
        line = _first_line(process, timeout_s)
        if line:
            return RunningLab(process, json.loads(line), log)
        if line is None:
            raise DoctorError(
                f"the lab was not ready within {timeout_s:g} s", "the machine may be overloaded"
            )
        raise _failure(process, log)
    except BaseException:
        _end(process)
        log.close()
        raise


def _open_log(path: Path | None) -> IO[bytes]:
    if path is None:
        return tempfile.TemporaryFile()
    try:
        return path.open("w+b")
    except OSError as error:
        raise UsageError(
            f"the lab's log {path} cannot be written: {error.strerror}", "name another file"
        ) from error


def _first_line(process: subprocess.Popen[bytes], timeout_s: float) -> bytes | None:
    """The ready line; empty when the process ended, None when the time is over."""
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    stdout = process.stdout
    assert stdout is not None
    reader = threading.Thread(target=lambda: lines.put(stdout.readline()), daemon=True)
    reader.start()
    try:
        return lines.get(timeout=timeout_s)
    except queue.Empty:
        return None


def _failure(process: subprocess.Popen[bytes], log: IO[bytes]) -> DoctorError:
    """Why the lab ended: its own last words where it had any."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_S)
    lines = [line for line in _read_log(log).splitlines() if line.strip()]
    problems = [line.removeprefix(_PROBLEM) for line in lines if line.startswith(_PROBLEM)]
    hints = [line.removeprefix(_HINT) for line in lines if line.startswith(_HINT)]
    said = (problems or lines or [f"exit code {process.returncode}"])[-1]
    problem = f"the lab did not start: {said}"
    hint = hints[-1] if hints else "run `dsv4doctor lab serve` to see its whole log"
    kind = UsageError if process.returncode == EXIT_USAGE else DoctorError
    return kind(problem, hint)


def _read_log(log: IO[bytes]) -> str:
    """All of the log. Read by position: the child writes through the same open file."""
    size = os.fstat(log.fileno()).st_size
    return os.pread(log.fileno(), size, 0).decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close stdin, ask, and in the end kill; the child is reaped and the pipes are closed."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # Last: a reader that still waits for the ready line holds the pipe until the child is gone.
    process.stdout.close()
