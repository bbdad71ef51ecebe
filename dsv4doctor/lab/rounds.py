"""Requests that arrive in real time: the desk that knows them all, and rounds made of them.

Who is batched with whom decides which loads are late, so it must not depend on how fast the machine
or the client is. A round is closed when no response is undelivered and nothing has happened for the
quiet time; late arrivals wait for the next. The engine runs in a thread of its own, so the server
stays responsive. A request that the engine leaves hanging holds up nobody.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Protocol, TypeVar

from dsv4doctor.lab.requests import EngineRequest, Generation

_Result = TypeVar("_Result")


class DeskEngine(Protocol):
    """What a desk needs of the engine; every call comes from one thread."""

    def on_abort(self, rid: str) -> None: ...

    def flush_cache(self) -> bool: ...

    def gauges(self) -> Mapping[str, float]: ...


class ServingEngine(DeskEngine, Protocol):
    """What rounds need of it besides."""

    def serve_round(self, requests: Sequence[EngineRequest]) -> list[Generation]: ...


class JobState(Enum):
    """Where a request is. WAITING and HUNG are the queue, COMPUTING and DELIVERING are running;
    BOOTSTRAPPING is before the queue, where a prefill and a decode engine look for each other."""

    BOOTSTRAPPING = "bootstrapping"
    WAITING = "waiting"
    COMPUTING = "computing"
    DELIVERING = "delivering"
    HUNG = "hung"
    ENDED = "ended"


class Aborted(Exception):
    """The request was ended by `/abort_request` before it had an answer."""


class Job:
    """One request on its way; `answer` yields its generation, or raises Aborted."""

    __slots__ = ("answer", "arrived", "request", "state", "stop_delivery")

    def __init__(self, request: EngineRequest, answer: asyncio.Future[Generation]) -> None:
        self.request = request
        self.answer = answer
        self.arrived = time.monotonic()
        self.state = JobState.WAITING
        # Set while a response is delivered: ends it as aborted.
        self.stop_delivery: Callable[[], None] | None = None


class Desk(ABC):
    """All requests of one server and what became of them. Every method is called on the event
    loop; the engine's own calls are made in a thread of its own, one after another.

    `on_round` is told of every round: its generations, and how many real seconds it took.
    """

    def __init__(
        self, engine: DeskEngine, *, on_round: Callable[[Sequence[Generation], float], None]
    ) -> None:
        self._engine = engine
        # As they were when the engine last came to rest: it must not be read while it works.
        self.gauges = engine.gauges()
        self._on_round = on_round
        self._jobs: dict[str, Job] = {}
        self._changed = asyncio.Event()
        self._last_event = 0.0
        # One thread: the engine is not re-entrant, and its calls happen in order.
        self._engine_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="engine")

    @abstractmethod
    async def run(self) -> None:
        """Serve for ever."""

    def submit(self, request: EngineRequest) -> Job:
        """Queue a request to be served. Its rid must be unique among those in flight."""
        job = Job(request, asyncio.get_running_loop().create_future())
        self._jobs[request.rid] = job
        self._note()
        return job

    def end(self, job: Job) -> None:
        """The job's response is delivered, or nobody waits for it any more."""
        if job.state is JobState.ENDED:
            return
        job.state = JobState.ENDED
        self._jobs.pop(job.request.rid, None)
        self._note()

    def abort(self, job: Job) -> bool:
        """The client hung up or asked for an abort: tell the engine; counts as delivered.

        False when the job had ended already.
        """
        if job.state is JobState.ENDED:
            return False
        self.end(job)
        self._engine_thread.submit(self._engine.on_abort, job.request.rid)
        if not job.answer.done():
            job.answer.set_exception(Aborted())
            job.answer.exception()  # nobody may be waiting for it: that is no error
        if job.stop_delivery is not None:
            job.stop_delivery()
        return True

    def abort_matching(self, rid: str, *, abort_all: bool) -> int:
        """`/abort_request`: how many jobs it ended."""
        jobs = [job for job in self._jobs.values() if abort_all or job.request.rid == rid]
        return sum(self.abort(job) for job in jobs)

    def is_in_flight(self, rid: str) -> bool:
        return rid in self._jobs

    def count(self, *states: JobState) -> int:
        return sum(job.state in states for job in self._jobs.values())

    def prompts_waiting(self) -> int:
        """Requests in the queue: gathered for the next round, or hanging."""
        return self.count(JobState.WAITING, JobState.HUNG)

    def transfer_queues(self) -> dict[str, int]:
        """The queues between a prefill and a decode engine, as SGLang names their gauges."""
        return {
            "num_prefill_bootstrap_queue_reqs": 0,
            "num_prefill_inflight_queue_reqs": 0,
            "num_decode_prealloc_queue_reqs": 0,
            # Requests whose pages never arrive wait where SGLang keeps those of a stuck transfer.
            "num_decode_transfer_queue_reqs": self.count(JobState.HUNG),
        }

    async def flush_cache(self, *, timeout_s: float) -> bool:
        """Flush the engine's caches once all is idle; False if that does not come in time."""
        deadline = time.monotonic() + timeout_s
        while self._jobs:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            await self._wait_for_change(remaining)
        return await self.in_engine_thread(self._engine.flush_cache)

    async def in_engine_thread(self, work: Callable[..., _Result], *arguments: object) -> _Result:
        """The result of `work`, done between rounds where the engine may be touched."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._engine_thread, lambda: work(*arguments))

    @property
    def computes(self) -> bool:
        """True while the engine's thread has a round."""
        return self.count(JobState.COMPUTING) > 0

    def close(self) -> None:
        """Take no further round; one that runs is left to itself."""
        self._engine_thread.shutdown(wait=False, cancel_futures=True)

    async def _serve(
        self,
        batch: Mapping[str, Job],
        work: Callable[..., list[Generation]],
        *arguments: object,
    ) -> None:
        """Have the engine do `work` and give its answers to the jobs of `batch`, by rid."""
        began = time.monotonic()
        generations = await self.in_engine_thread(work, *arguments)
        self.gauges = await self.in_engine_thread(self._engine.gauges)
        self._answer(batch, generations)
        self._on_round(generations, time.monotonic() - began)

    def _answer(self, batch: Mapping[str, Job], generations: Sequence[Generation]) -> None:
        for generation in generations:
            job = batch[generation.rid]
            if job.state is JobState.ENDED:
                continue
            if generation.hung:
                job.state = JobState.HUNG
                continue
            job.state = JobState.DELIVERING
            job.answer.set_result(generation)
        self._note()

    def _note(self) -> None:
        self._last_event = time.monotonic()
        self._changed.set()

    async def _wait_for_change(self, timeout_s: float | None) -> None:
        """Until something happens or the time is over. Several may wait: each looks again."""
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), timeout_s)
        except TimeoutError:
            return


class Rounds(Desk):
    """The gatherer of rounds."""

    def __init__(
        self,
        engine: ServingEngine,
        *,
        quiet_s: float,
        most_running: int,
        on_round: Callable[[Sequence[Generation], float], None],
    ) -> None:
        super().__init__(engine, on_round=on_round)
        self._serving = engine
        self._quiet_s = quiet_s
        self._most_running = most_running

    async def run(self) -> None:
        """Serve rounds for ever."""
        while True:
            batch = await self._gather()
            for job in batch:
                job.state = JobState.COMPUTING
            await self._serve(
                {job.request.rid: job for job in batch},
                self._serving.serve_round,
                [job.request for job in batch],
            )

    async def _gather(self) -> list[Job]:
        while True:
            waiting = [job for job in self._jobs.values() if job.state is JobState.WAITING]
            remaining = self._last_event + self._quiet_s - time.monotonic()
            if not waiting or self.count(JobState.DELIVERING):
                await self._wait_for_change(None)
            elif remaining > 0:
                await self._wait_for_change(remaining)
            else:
                # Who has to wait then depends on arrival: the price of a limit below the load.
                return waiting[: self._most_running]
