"""A driver in a process of its own, and the pipe to it.

Up the pipe: None asks for a script, anything else is an event. Down: ("script", assignment),
("stop", ""), ("drain", reason) and ("halt", reason). A broken pipe means that the parent is gone:
the worker stops.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import queue
import signal
import threading
from collections.abc import Callable, MutableSequence
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

from dsv4doctor.load.driver import Driver
from dsv4doctor.load.loop import run
from dsv4doctor.load.options import RunOptions
from dsv4doctor.load.silence import Traffic
from dsv4doctor.load.wire import Assignment, Link
from dsv4doctor.target import Endpoint

_FIELDS = 3  # last token, last turnover, newest answered


class Shard:
    """The parent's end of one worker."""

    def __init__(self, process: SpawnProcess, pipe: Connection) -> None:
        self._process = process
        self._pipe = pipe
        self._lock = threading.Lock()

    def receive(self) -> Any:
        return self._pipe.recv()

    def send_script(self, assignment: Assignment | None) -> None:
        self._send(("script", assignment))

    def send_stop(self) -> None:
        self._send(("stop", ""))

    def send_drain(self, reason: str) -> None:
        self._send(("drain", reason))

    def send_halt(self, reason: str) -> None:
        self._send(("halt", reason))

    def exit_code(self) -> int | None:
        self._process.join(1.0)
        return self._process.exitcode

    def end(self, patience_s: float) -> None:
        """Wait for an ordered end, then insist."""
        self._process.join(patience_s)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _send(self, message: tuple[str, Any]) -> None:
        with self._lock:
            try:
                self._pipe.send(message)
            except (OSError, ValueError):
                return  # the worker has ended; its last event is in the pipe already


def launch(endpoint: Endpoint, options: RunOptions, processes: int) -> list[Shard]:
    """Start `processes` workers that share the run's concurrency."""
    # Spawned, not forked: the parent has threads.
    context = multiprocessing.get_context("spawn")
    board = context.RawArray("d", _FIELDS * processes)
    shards = []
    for number in range(processes):
        ours, theirs = context.Pipe()
        share = replace(options, max_concurrency=_share(options, number, processes))
        process = context.Process(
            target=work, args=(endpoint, share, theirs, board, number), daemon=True
        )
        process.start()
        theirs.close()
        shards.append(Shard(process, ours))
    return shards


def _share(options: RunOptions, number: int, processes: int) -> int | None:
    total = options.max_concurrency or options.expected_sessions
    if total is None:
        return None
    return max(1, total // processes + (number < total % processes))


class SharedBoard:
    """Each worker writes its own cells and reads everybody's. Clocks agree: one host, one clock."""

    def __init__(self, cells: MutableSequence[float], number: int) -> None:
        self._cells = cells
        self._at = number * _FIELDS

    def post(self, traffic: Traffic) -> None:
        self._cells[self._at] = traffic.last_token
        self._cells[self._at + 1] = traffic.last_turnover
        self._cells[self._at + 2] = traffic.newest_answered

    def view(self) -> Traffic:
        return Traffic(
            begun_at=0.0,
            last_token=max(self._cells[0::_FIELDS]),
            last_turnover=max(self._cells[1::_FIELDS]),
            newest_answered=max(self._cells[2::_FIELDS]),
        )


def work(
    endpoint: Endpoint,
    options: RunOptions,
    pipe: Connection,
    cells: MutableSequence[float],
    number: int,
) -> None:
    """A worker's life: drive what the parent hands out until there is no more."""
    # Ctrl-C and a supervisor's SIGTERM reach the whole process group; the parent decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    run(_Worker(endpoint, options, pipe, SharedBoard(cells, number)).run())


class _Worker:
    def __init__(
        self, endpoint: Endpoint, options: RunOptions, pipe: Connection, board: SharedBoard
    ) -> None:
        self._pipe = pipe
        self._outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._inbox: asyncio.Queue[Assignment | None] = asyncio.Queue()
        self._driver = Driver(
            endpoint,
            options,
            Link(
                take=self._take,
                emit=self._outbox.put,
                backlog=self._outbox.qsize,
                board=board,
            ),
        )

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        writer = threading.Thread(target=self._write, daemon=True)
        writer.start()
        threading.Thread(target=self._read, args=(loop,), daemon=True).start()
        try:
            await self._driver.run()
        except BaseException as error:
            self._outbox.put(error)
            raise
        finally:
            self._outbox.put(StopIteration)
            writer.join()

    async def _take(self) -> Assignment | None:
        self._outbox.put(None)
        return await self._inbox.get()

    def _write(self) -> None:
        while (message := self._outbox.get()) is not StopIteration:
            try:
                self._pipe.send(message)
            except OSError:
                return

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        calls: dict[str, Callable[[Any], None]] = {
            "script": self._inbox.put_nowait,
            "stop": lambda _: self._driver.stop(),
            "drain": self._driver.drain,
            "halt": self._driver.halt,
        }
        try:
            while True:
                kind, content = self._pipe.recv()
                loop.call_soon_threadsafe(calls[kind], content)
        except (EOFError, OSError):
            loop.call_soon_threadsafe(self._driver.stop)
        except RuntimeError:
            return  # the loop has ended
