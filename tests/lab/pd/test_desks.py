"""When a request is served, and when it is gone, on either side."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import numpy as np

from dsv4doctor.lab.pd.desks import DecodeDesk, PrefillDesk
from dsv4doctor.lab.pd.wire import ABORT, DONE, RECEIVED, REGISTER, Chunk, Handover
from dsv4doctor.lab.requests import EngineRequest, Generation, Room
from dsv4doctor.lab.rounds import JobState

QUIET_S = 0.05


class Echo:
    """Serves everything with one piece and remembers the rounds."""

    def __init__(self) -> None:
        self.rounds: list[list[str]] = []
        self.aborted: list[str] = []

    def serve_round(self, requests: Sequence[EngineRequest]) -> list[Generation]:
        self.rounds.append([request.rid for request in requests])
        return [Generation(rid=one.rid, prompt_tokens=1, pieces=("x",)) for one in requests]

    def serve_transferred(
        self, batch: Sequence[Handover], requests: Mapping[int, EngineRequest]
    ) -> list[Generation]:
        return self.serve_round([requests[one.room] for one in batch if one.room in requests])

    def on_abort(self, rid: str) -> None:
        self.aborted.append(rid)

    def flush_cache(self) -> bool:
        return True

    def gauges(self) -> Mapping[str, float]:
        return {}


def request(number: int) -> EngineRequest:
    room = Room(host="127.0.0.1", port=1, number=number)
    return EngineRequest(rid=f"r{number}", messages=(), room=room)


def handover(number: int) -> Handover:
    nothing = np.zeros((1, 0, 8), dtype=np.uint8)
    chunk = Chunk(first=0, start_ms=0.0, main=nothing, index_k=nothing, owners={})
    return Handover(
        room=number, rid=f"r{number}", prompt_tokens=1, cached_tokens=0, chunks=(chunk,)
    )


def prefill(story: Callable[[PrefillDesk, Echo], Awaitable[None]]) -> None:
    async def main() -> None:
        engine = Echo()
        desk = PrefillDesk(engine, quiet_s=QUIET_S, most_running=99, on_round=lambda *_: None)
        task = asyncio.create_task(desk.run())
        try:
            await asyncio.wait_for(story(desk, engine), 30)
        finally:
            task.cancel()
            desk.close()

    asyncio.run(main())


def test_a_round_waits_for_the_other_engine_at_both_ends() -> None:
    async def story(desk: PrefillDesk, engine: Echo) -> None:
        desk.told(REGISTER, 2)  # before the request itself
        first, second = desk.submit(request(1)), desk.submit(request(2))
        assert (first.state, second.state) == (JobState.BOOTSTRAPPING, JobState.WAITING)
        assert desk.transfer_queues()["num_prefill_bootstrap_queue_reqs"] == 1
        await second.answer
        assert engine.rounds == [["r2"]]
        desk.end(second)
        assert desk.transfer_queues()["num_prefill_inflight_queue_reqs"] == 1
        desk.told(REGISTER, 1)
        await asyncio.sleep(3 * QUIET_S)
        assert engine.rounds == [["r2"]], "the decode engine has not delivered it"
        desk.told(RECEIVED, 2)
        assert desk.transfer_queues()["num_prefill_inflight_queue_reqs"] == 0
        desk.told(DONE, 2)
        await first.answer
        assert engine.rounds == [["r2"], ["r1"]]

    prefill(story)


def test_an_abort_over_there_ends_the_request_here() -> None:
    async def story(desk: PrefillDesk, engine: Echo) -> None:
        job = desk.submit(request(1))
        desk.told(REGISTER, 1)
        await job.answer
        desk.told(ABORT, 1)
        assert job.state is JobState.ENDED
        await desk.in_engine_thread(lambda: None)
        assert engine.aborted == ["r1"]
        desk.told(DONE, 1)  # too late, and nothing to it

    prefill(story)


def test_the_decode_desk_tells_of_every_step() -> None:
    told: list[tuple[int, str]] = []

    async def main() -> None:
        engine = Echo()
        desk = DecodeDesk(
            engine,
            tell=lambda room, kind: told.append((room.number, kind)),
            on_round=lambda *_: None,
        )
        task = asyncio.create_task(desk.run())
        one, two, gone = (desk.submit(request(number)) for number in (1, 2, 3))
        desk.registered(1)
        queues = desk.transfer_queues()
        assert queues["num_decode_prealloc_queue_reqs"] == 2
        assert queues["num_decode_transfer_queue_reqs"] == 1
        desk.abort(gone)
        desk.failed(2)
        desk.handed_over([handover(3), handover(1)])
        await asyncio.wait_for(one.answer, 30)
        assert engine.rounds == [["r1"]], "who is gone is not served"
        desk.end(one)
        assert two.state is JobState.ENDED
        task.cancel()
        desk.close()

    asyncio.run(main())
    assert [kind for number, kind in told if number == 1] == [REGISTER, RECEIVED, DONE]
    assert [kind for number, kind in told if number == 2] == [REGISTER, ABORT]
    assert [kind for number, kind in told if number == 3] == [REGISTER, ABORT]
