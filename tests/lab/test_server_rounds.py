"""Gathering: who shares a round must not depend on who is fast."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from dsv4doctor.lab.requests import EngineRequest, Generation
from dsv4doctor.lab.rounds import Aborted, Job, JobState, Rounds

# Long enough that a busy machine does not close a round early.
QUIET_S = 0.1


class EchoEngine:
    """Serves every request with one piece and remembers the rounds; `hold` keeps a round open."""

    def __init__(self) -> None:
        self.rounds: list[list[str]] = []
        self.aborted: list[str] = []
        self.hangs: set[str] = set()
        self.hold = threading.Event()
        self.hold.set()

    def serve_round(self, requests: Sequence[EngineRequest]) -> list[Generation]:
        self.hold.wait(5)
        self.rounds.append([request.rid for request in requests])
        return [
            Generation(rid=r.rid, prompt_tokens=1, pieces=("x",), hung=r.rid in self.hangs)
            for r in requests
        ]

    def on_abort(self, rid: str) -> None:
        self.aborted.append(rid)

    def flush_cache(self) -> bool:
        return True

    def gauges(self) -> Mapping[str, float]:
        return {"rounds": len(self.rounds)}


def run(story: Callable[[Rounds, EchoEngine], Awaitable[None]], *, most_running: int = 99) -> None:
    async def main() -> None:
        engine = EchoEngine()
        rounds = Rounds(
            engine, quiet_s=QUIET_S, most_running=most_running, on_round=lambda *_: None
        )
        task = asyncio.create_task(rounds.run())
        try:
            await asyncio.wait_for(story(rounds, engine), 10)
        finally:
            task.cancel()
            rounds.close()

    asyncio.run(main())


def submit(rounds: Rounds, *names: str) -> list[Job]:
    return [rounds.submit(EngineRequest(rid=name, messages=())) for name in names]


async def answers(jobs: list[Job]) -> None:
    await asyncio.gather(*(job.answer for job in jobs))


def test_requests_that_come_one_after_the_other_share_a_round() -> None:
    async def story(rounds: Rounds, engine: EchoEngine) -> None:
        jobs = []
        for name in "abcde":
            jobs += submit(rounds, name)
            await asyncio.sleep(QUIET_S / 8)
        await answers(jobs)
        assert engine.rounds == [list("abcde")]
        assert rounds.gauges == {"rounds": 1}

    run(story)


def test_no_round_while_a_response_is_undelivered() -> None:
    async def story(rounds: Rounds, engine: EchoEngine) -> None:
        first = submit(rounds, "a", "b")
        await answers(first)
        rounds.end(first[0])
        late = submit(rounds, "c")
        await asyncio.sleep(4 * QUIET_S)
        assert engine.rounds == [["a", "b"]]
        assert rounds.count(JobState.WAITING) == 1
        rounds.end(first[1])
        await answers(late)
        assert engine.rounds == [["a", "b"], ["c"]]

    run(story)


def test_the_quiet_time_begins_anew_when_a_response_is_delivered() -> None:
    async def story(rounds: Rounds, engine: EchoEngine) -> None:
        first = submit(rounds, "a", "b")
        await answers(first)
        rounds.end(first[0])
        second = submit(rounds, "a2")
        await asyncio.sleep(2 * QUIET_S)
        rounds.end(first[1])
        await asyncio.sleep(QUIET_S / 8)
        second += submit(rounds, "b2")
        await answers(second)
        assert engine.rounds[1] == ["a2", "b2"]

    run(story)


def test_who_comes_while_the_engine_works_is_in_the_next_round() -> None:
    async def story(rounds: Rounds, engine: EchoEngine) -> None:
        engine.hold.clear()
        first = submit(rounds, "a")
        await asyncio.sleep(2 * QUIET_S)
        assert rounds.computes
        late = submit(rounds, "b")
        engine.hold.set()
        await answers(first)
        rounds.end(first[0])
        await answers(late)
        assert engine.rounds == [["a"], ["b"]]

    run(story)


def test_an_aborted_response_counts_as_delivered_and_the_engine_is_told() -> None:
    async def story(rounds: Rounds, engine: EchoEngine) -> None:
        first = submit(rounds, "a", "b")
        await answers(first)
        rounds.end(first[0])
        stopped: list[bool] = []
        first[1].stop_delivery = lambda: stopped.append(True)
        assert rounds.abort(first[1])
        assert not rounds.abort(first[1]), "an abort counts once"
        second = submit(rounds, "c")
        await answers(second)
        assert stopped == [True]
        assert engine.aborted == ["b"]

    run(story)


def test_a_request_aborted_while_it_waits_never_reaches_the_engine() -> None:
    async def story(rounds: Rounds, engine: EchoEngine) -> None:
        jobs = submit(rounds, "a", "b")
        assert rounds.abort_matching("a", abort_all=False) == 1
        with pytest.raises(Aborted):
            await jobs[0].answer
        await jobs[1].answer
        assert engine.rounds == [["b"]]

    run(story)


def test_a_request_aborted_while_the_engine_works_is_not_delivered() -> None:
    async def story(rounds: Rounds, engine: EchoEngine) -> None:
        engine.hold.clear()
        jobs = submit(rounds, "a")
        await asyncio.sleep(2 * QUIET_S)
        rounds.abort(jobs[0])
        engine.hold.set()
        following = submit(rounds, "b")
        await answers(following)
        assert engine.rounds == [["a"], ["b"]]
        assert jobs[0].state is JobState.ENDED

    run(story)


def test_a_hanging_request_holds_up_nobody_and_stays_in_the_queue() -> None:
    async def story(rounds: Rounds, engine: EchoEngine) -> None:
        engine.hangs = {"a"}
        jobs = submit(rounds, "a", "b")
        await jobs[1].answer
        rounds.end(jobs[1])
        following = submit(rounds, "c")
        await answers(following)
        rounds.end(following[0])
        assert rounds.count(JobState.HUNG) == 1
        assert rounds.prompts_waiting() == 1
        assert not jobs[0].answer.done()
        assert not await rounds.flush_cache(timeout_s=0)
        rounds.abort_matching("", abort_all=True)
        with pytest.raises(Aborted):
            await jobs[0].answer
        assert await rounds.flush_cache(timeout_s=0)

    run(story)


def test_a_flush_waits_for_idleness_as_long_as_it_is_told() -> None:
    async def story(rounds: Rounds, engine: EchoEngine) -> None:
        jobs = submit(rounds, "a")
        flush = asyncio.create_task(rounds.flush_cache(timeout_s=5))
        await answers(jobs)
        assert not flush.done()
        rounds.end(jobs[0])
        assert await flush

    run(story)


def test_at_most_so_many_run_at_once() -> None:
    async def story(rounds: Rounds, engine: EchoEngine) -> None:
        jobs = submit(rounds, "a", "b", "c")
        for job in jobs:
            await job.answer
            rounds.end(job)
        assert engine.rounds == [["a", "b"], ["c"]]

    run(story, most_running=2)


def test_an_engine_that_raises_ends_the_rounds() -> None:
    class Broken(EchoEngine):
        def serve_round(self, requests: Sequence[EngineRequest]) -> list[Generation]:
            raise RuntimeError("the pool is gone")

    async def main() -> None:
        rounds = Rounds(Broken(), quiet_s=0.0, most_running=9, on_round=lambda *_: None)
        submit(rounds, "a")
        with pytest.raises(RuntimeError, match="the pool is gone"):
            await asyncio.wait_for(rounds.run(), 5)
        rounds.close()

    asyncio.run(main())
