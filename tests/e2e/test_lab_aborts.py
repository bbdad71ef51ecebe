"""Aborts at the lab: how a stream ends, and the wedge behind one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from lab_client import FAST, MESSAGES, TOOLS, get, hang_up_after, metric, post, wait_until

from dsv4doctor.lab.deployment import LabOptions, RunningLab, start_lab


def test_abort_request_ends_a_stream_with_its_reason() -> None:
    slow = (("itl-ms", "200"), ("quiet-ms", "20"))
    body = {"model": "m", "messages": MESSAGES, "stream": True, "max_tokens": 60}

    async def story(lab: RunningLab) -> list[Any]:
        chunks: list[Any] = []
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{lab.base_url}/v1/chat/completions", json=body, headers={"X-Request-Id": "mine"}
            ) as response,
        ):
            async for line in response.content:
                if line.startswith(b"data: {"):
                    chunks.append(json.loads(line[6:]))
                if len(chunks) == 3:
                    await session.post(f"{lab.base_url}/abort_request", json={"rid": "mine"})
        return chunks

    with start_lab(LabOptions(switches=slow)) as lab:
        chunks = asyncio.run(asyncio.wait_for(story(lab), 15))
        assert chunks[0]["id"] == "mine"
        assert chunks[-1]["choices"][0]["finish_reason"] == "abort"
        assert len(chunks) < 10
        assert metric(lab, "num_aborted_requests_total") == 1


def long_conversation(number: int) -> list[Any]:
    """About eight pages of 256 tokens that no other number shares."""
    notes = " ".join(f"Note {number}-{line} says nothing of weight." for line in range(160))
    return [*MESSAGES[:1], {"role": "user", "content": f"{notes} {MESSAGES[1]['content']}"}]


def test_after_an_abort_the_wedge_hangs_whoever_needs_a_load_while_health_says_200() -> None:
    # Six conversations of eight pages do not fit: the first ones have to be loaded again.
    small = (("device-pages", "30"), ("prefill-batch", "2"))

    async def ask(lab: RunningLab, number: int, timeout_s: float) -> int:
        body = {"messages": long_conversation(number), "tools": TOOLS, "tool_choice": "required"}
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s)) as session,
            session.post(f"{lab.base_url}/v1/chat/completions", json=body) as response,
        ):
            reply = await response.json()
            return len(reply["choices"][0]["message"]["tool_calls"] or [])

    async def story(lab: RunningLab) -> None:
        for number in range(6):
            assert await ask(lab, number, 20) == 1
        assert await ask(lab, 0, 20) == 1
        loaded = metric(lab, "load_back_tokens_total")
        assert loaded > 0
        assert loaded == metric(lab, "cached_tokens_total", 'cache_source="host"')
        await hang_up_after(lab, 3, {"messages": MESSAGES, "stream": True})
        wait_until(lambda: metric(lab, "num_aborted_requests_total") == 1, "no abort")
        hanging = asyncio.create_task(ask(lab, 1, 60))
        while metric(lab, "num_decode_transfer_queue_reqs") == 0:
            await asyncio.sleep(0.05)
            assert not hanging.done()
        assert get(lab, "/health")[0] == 200
        assert get(lab, "/health_generate")[0] == 200
        assert metric(lab, "num_queue_reqs") == 1
        assert metric(lab, "num_running_reqs") == 0
        with pytest.raises(TimeoutError):
            await ask(lab, 2, 1.0)
        assert get(lab, "/flush_cache")[0] == 400
        assert post(lab, "/abort_request", {"abort_all": True})[0] == 200
        assert await hanging == 0
        wait_until(lambda: metric(lab, "num_queue_reqs") == 0, "the queue is not empty")

    with start_lab(LabOptions(faults=("abort-wedge",), switches=(*FAST, *small))) as lab:
        asyncio.run(asyncio.wait_for(story(lab), 60))
