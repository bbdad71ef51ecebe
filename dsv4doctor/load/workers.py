"""Where drivers run: one in a thread of this process, or several in processes of their own."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

from dsv4doctor.errors import DoctorError
from dsv4doctor.load.driver import MAX_BACKLOG, Driver
from dsv4doctor.load.loop import run
from dsv4doctor.load.options import RunOptions
from dsv4doctor.load.wire import Assignment, DriverEnded, Link, OwnBoard, WireEvent
from dsv4doctor.session import Message, SessionScript
from dsv4doctor.target import Endpoint

# How long an ordered end may take before a worker is left behind or killed.
JOIN_S = 10.0

_Item = tuple[int, "WireEvent | BaseException"]


class Workers(Protocol):
    """Drivers under way. `get` blocks for the next event and the number of its worker."""

    def start(self) -> None: ...

    def get(self) -> tuple[int, WireEvent]: ...

    def stop(self) -> None: ...

    def drain(self, reason: str) -> None: ...

    def halt(self, reason: str, *, but: int) -> None: ...

    def close(self) -> None: ...

    def elapsed_s(self) -> float: ...


class Source:
    """Hands out sessions that still have something to do and remembers those under way."""

    def __init__(
        self,
        scripts: Iterable[SessionScript],
        done: Collection[tuple[int, int]],
        earlier: Mapping[tuple[int, int], Message],
    ) -> None:
        self._scripts = iter(scripts)
        self._lock = threading.Lock()
        self._under_way: dict[int, SessionScript] = {}
        self._done: dict[int, set[int]] = {}
        self._earlier: dict[int, dict[int, Message]] = {}
        for session, turn in done:
            self._done.setdefault(session, set()).add(turn)
        for (session, turn), message in earlier.items():
            self._earlier.setdefault(session, {})[turn] = message

    def take(self) -> Assignment | None:
        """The next session, or None when all are handed out. Safe from any thread."""
        with self._lock:
            for script in self._scripts:
                done = self._done.get(script.session, set())
                if all(turn in done for turn in range(len(script.turns))):
                    continue
                self._under_way[script.session] = script
                return Assignment(
                    script=script,
                    done=frozenset(done),
                    earlier=self._earlier.get(script.session, {}),
                )
        return None

    def script(self, session: int) -> SessionScript:
        return self._under_way[session]

    def forget(self, session: int) -> None:
        self._under_way.pop(session, None)

    async def next(self) -> Assignment | None:
        """`take`, for a driver in this process."""
        return self.take()


class ThreadWorker:
    """One driver whose event loop runs in a thread beside the caller."""

    def __init__(self, endpoint: Endpoint, options: RunOptions, source: Source) -> None:
        self._events: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stopping = False
        self._driver = Driver(
            endpoint,
            options,
            Link(
                take=source.next,
                emit=lambda event: self._events.put((0, event)),
                backlog=self._events.qsize,
                board=OwnBoard(),
            ),
        )
        self._thread = threading.Thread(target=self._run, name="load driver", daemon=True)
        self._start = time.perf_counter()

    def start(self) -> None:
        self._start = time.perf_counter()
        self._thread.start()

    def _run(self) -> None:
        try:
            run(self._drive())
        except BaseException as error:
            self._events.put((0, error))

    async def _drive(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._is_stopping:
            self._loop.call_soon(self._driver.stop)
        await self._driver.run()

    def get(self) -> tuple[int, WireEvent]:
        worker, event = self._events.get()
        if isinstance(event, BaseException):
            raise event
        return worker, event

    def stop(self) -> None:
        self._is_stopping = True
        self._call(self._driver.stop)

    def drain(self, reason: str) -> None:
        self._call(lambda: self._driver.drain(reason))

    def halt(self, reason: str, *, but: int) -> None:
        """The only driver halts by itself."""

    def close(self) -> None:
        if self._thread.is_alive():
            self.stop()
        self._thread.join(JOIN_S)

    def elapsed_s(self) -> float:
        return time.perf_counter() - self._start

    def _call(self, function: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(function)
            except RuntimeError:
                return  # closed in this very moment: nothing is left to stop


class ProcessWorkers:
    """Several drivers, each in a process of its own; scripts go out and results come in by pipe."""

    def __init__(
        self, endpoint: Endpoint, options: RunOptions, source: Source, processes: int
    ) -> None:
        from dsv4doctor.load.shards import launch

        self._events: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._source = source
        self._launch: Callable[[], list[Any]] = lambda: launch(endpoint, options, processes)
        self._shards: list[Any] = []
        self._threads: list[threading.Thread] = []
        # Nobody takes scripts before all can, or the first would take them all.
        self._ready = threading.Barrier(processes)
        self._start = time.perf_counter()

    def start(self) -> None:
        self._start = time.perf_counter()
        self._shards = self._launch()
        for number, shard in enumerate(self._shards):
            thread = threading.Thread(target=self._serve, args=(number, shard), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, number: int, shard: Any) -> None:
        """Answer one worker's requests for scripts and pass its events on, until its last."""
        is_waiting = True
        try:
            while True:
                message = shard.receive()
                if message is None:
                    if is_waiting:
                        self._ready.wait(JOIN_S)
                        is_waiting = False
                    shard.send_script(self._source.take())
                    continue
                while self._events.qsize() > MAX_BACKLOG:
                    time.sleep(0.01)
                self._events.put((number, message))
                if isinstance(message, DriverEnded | BaseException):
                    return
        except (EOFError, OSError, threading.BrokenBarrierError):
            self._ready.abort()
            code = shard.exit_code()
            self._events.put(
                (number, DoctorError(f"load process {number} died (exit code {code})"))
            )
        except BaseException as error:
            self._events.put((number, error))

    def get(self) -> tuple[int, WireEvent]:
        worker, event = self._events.get()
        if isinstance(event, BaseException):
            raise event
        return worker, event

    def stop(self) -> None:
        for shard in self._shards:
            shard.send_stop()

    def drain(self, reason: str) -> None:
        for shard in self._shards:
            shard.send_drain(reason)

    def halt(self, reason: str, *, but: int) -> None:
        for number, shard in enumerate(self._shards):
            if number != but:
                shard.send_halt(reason)

    def close(self) -> None:
        self.stop()
        self._ready.abort()
        for shard in self._shards:
            shard.end(JOIN_S)
        for thread in self._threads:
            thread.join(JOIN_S)

    def elapsed_s(self) -> float:
        return time.perf_counter() - self._start
