"""Servers whose answer depends on what was asked before, or on when."""

from __future__ import annotations

import asyncio
import json

from canned_breaks import mute, silent, status_503
from canned_call import COUNTS, DONE, GOOD, SSE_HEAD, Call, Hangup, frame, text
from canned_streams import good


async def flaky(call: Call) -> None:
    """503 to the first request of a case, then a good stream."""
    await (status_503(call) if call.n == 0 else good(call))


async def stale(call: Call) -> None:
    """Closes every connection right when it is used a second time, unread."""
    await call.stream(*GOOD)
    await call.reader.read(1)
    raise Hangup


async def slow(call: Call, pieces: int = 40) -> None:
    """Pieces at 20 ms: long enough to be hung up on."""
    await call.send(SSE_HEAD)
    for event in text(*(f"w{i} " for i in range(pieces))):
        await call.chunk(event)
        await asyncio.sleep(0.02)
    await call.chunk(frame(finish="stop"))
    await call.chunk(DONE)
    await call.end()


async def slow_prefill(call: Call) -> None:
    """A long time to the first token, except for the shortest request."""
    if json.loads(call.body)["max_tokens"] > 1:
        await asyncio.sleep(1.3)
    await good(call)


async def short_only(call: Call) -> None:
    """Answers the shortest request and no other."""
    await (mute if json.loads(call.body)["max_tokens"] > 1 else good)(call)


async def silent_two(call: Call) -> None:
    """Requests 5 and 11 of a case go silent: one after two pieces, one before any."""
    if call.n == 5:
        await silent(call)
    elif call.n == 11:
        await call.send(SSE_HEAD)
        await call.forever()
    else:
        await slow(call)


async def unlucky(call: Call) -> None:
    """The third request never gets a token; the others flow for a while."""
    if call.n == 2:
        await call.forever()
    await slow(call, 80)


async def unlucky_queued(call: Call) -> None:
    """As `unlucky`, on a server whose metrics speak of a queue."""
    await unlucky(call)


async def wedging(call: Call) -> None:
    """Healthy until a client hangs up in mid-stream; then no request gets a token any more."""
    if COUNTS["wedged:" + call.case]:
        await call.send(SSE_HEAD)
        await call.forever()
    await call.send(SSE_HEAD)
    hung_up = asyncio.create_task(call.reader.read(1))
    for event in text(*(f"w{i} " for i in range(20))):
        if hung_up.done():
            hung_up.exception()
            COUNTS["wedged:" + call.case] = 1
            raise Hangup
        await call.chunk(event)
        await asyncio.sleep(0.01)
    hung_up.cancel()
    await call.chunk(frame(finish="stop"))
    await call.chunk(DONE)
    await call.end()
    # The cancelled read leaves the connection unusable for a next request here.
    raise Hangup
