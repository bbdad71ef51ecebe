"""The desks of the two engines: a request is served when both have it, and gone when both say so.

What is batched with what is decided by the prefill engine alone: it gathers rounds of requests that
the decode engine has registered too, and counts one as undelivered until the decode engine has
delivered it. The decode engine serves batches as they are handed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from dsv4doctor.lab.pd.wire import ABORT, DONE, RECEIVED, REGISTER, Handover
from dsv4doctor.lab.requests import EngineRequest, Generation, Room
from dsv4doctor.lab.rounds import Desk, DeskEngine, Job, JobState, Rounds, ServingEngine


class PrefillDesk(Rounds):
    """Rounds of requests that are registered by a decode engine."""

    def __init__(
        self,
        engine: ServingEngine,
        *,
        quiet_s: float,
        most_running: int,
        on_round: Callable[[Sequence[Generation], float], None],
    ) -> None:
        super().__init__(engine, quiet_s=quiet_s, most_running=most_running, on_round=on_round)
        self._by_room: dict[int, Job] = {}
        # Registered before the request itself came, and pages of it that have arrived over there.
        self._registered: set[int] = set()
        self._landed: set[int] = set()

    def submit(self, request: EngineRequest) -> Job:
        job = super().submit(request)
        assert request.room is not None
        self._by_room[request.room.number] = job
        if request.room.number not in self._registered:
            job.state = JobState.BOOTSTRAPPING
        return job

    def end(self, job: Job) -> None:
        """Our own response is delivered; the request is not before the decode engine's is."""
        if job.state is not JobState.DELIVERING:
            self._leave(job)

    def _leave(self, job: Job) -> None:
        super().end(job)
        assert job.request.room is not None
        number = job.request.room.number
        self._by_room.pop(number, None)
        self._registered.discard(number)
        self._landed.discard(number)

    def told(self, kind: str, number: int) -> None:
        """A message of the decode engine about a room."""
        job = self._by_room.get(number)
        if kind == REGISTER:
            self._registered.add(number)
            if job is not None and job.state is JobState.BOOTSTRAPPING:
                job.state = JobState.WAITING
            self._note()
        elif kind == RECEIVED:
            self._landed.add(number)
        elif kind in {DONE, ABORT} and job is not None:
            self._leave(job)
            if kind == ABORT:
                self._engine_thread.submit(self._engine.on_abort, job.request.rid)
        elif kind in {DONE, ABORT}:
            self._registered.discard(number)

    def transfer_queues(self) -> dict[str, int]:
        sent = [n for n, job in self._by_room.items() if job.state is JobState.DELIVERING]
        return {
            **super().transfer_queues(),
            "num_prefill_bootstrap_queue_reqs": self.count(JobState.BOOTSTRAPPING),
            "num_prefill_inflight_queue_reqs": sum(n not in self._landed for n in sent),
            "num_decode_transfer_queue_reqs": 0,
        }


class DecodeServing(DeskEngine, Protocol):
    """What the decode desk needs of its engine."""

    def serve_transferred(
        self, batch: Sequence[Handover], requests: Mapping[int, EngineRequest]
    ) -> list[Generation]: ...


class DecodeDesk(Desk):
    """Requests that wait for their pages. `tell` sends a prefill engine word of a room."""

    def __init__(
        self,
        engine: DecodeServing,
        *,
        tell: Callable[[Room, str], None],
        on_round: Callable[[Sequence[Generation], float], None],
    ) -> None:
        super().__init__(engine, on_round=on_round)
        self._decode = engine
        self._tell = tell
        self._by_room: dict[int, Job] = {}
        self._aborting: set[int] = set()
        self._batches: asyncio.Queue[list[Handover]] = asyncio.Queue()

    def submit(self, request: EngineRequest) -> Job:
        job = super().submit(request)
        assert request.room is not None
        job.state = JobState.BOOTSTRAPPING
        self._by_room[request.room.number] = job
        self._tell(request.room, REGISTER)
        return job

    def registered(self, number: int) -> None:
        """The prefill engine has been told of the room."""
        job = self._by_room.get(number)
        if job is not None and job.state is JobState.BOOTSTRAPPING:
            job.state = JobState.WAITING

    def failed(self, number: int) -> None:
        """The prefill engine cannot be told of the room."""
        job = self._by_room.get(number)
        if job is not None:
            self.abort(job)

    def end(self, job: Job) -> None:
        room = job.request.room
        assert room is not None
        if job.state is JobState.ENDED:
            return
        super().end(job)
        self._by_room.pop(room.number, None)
        self._tell(room, ABORT if room.number in self._aborting else DONE)
        self._aborting.discard(room.number)

    def abort(self, job: Job) -> bool:
        assert job.request.room is not None
        if job.state is not JobState.ENDED:
            self._aborting.add(job.request.room.number)
        return super().abort(job)

    def handed_over(self, batch: list[Handover]) -> None:
        """A batch has come from the prefill engine."""
        self._batches.put_nowait(batch)

    def transfer_queues(self) -> dict[str, int]:
        return {
            **super().transfer_queues(),
            "num_decode_prealloc_queue_reqs": self.count(JobState.BOOTSTRAPPING),
            "num_decode_transfer_queue_reqs": self.count(JobState.WAITING, JobState.HUNG),
        }

    async def run(self) -> None:
        """Serve the batches in the order in which they come."""
        while True:
            batch = await self._batches.get()
            numbers = [handover.room for handover in batch]
            jobs = {n: self._by_room[n] for n in numbers if n in self._by_room}
            for job in jobs.values():
                job.state = JobState.COMPUTING
                if job.request.room is not None:
                    self._tell(job.request.room, RECEIVED)
            await self._serve(
                {job.request.rid: job for job in jobs.values()},
                self._decode.serve_transferred,
                batch,
                {number: job.request for number, job in jobs.items()},
            )
