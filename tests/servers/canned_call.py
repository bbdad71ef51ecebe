"""One request to the canned server, and the frames that it is answered with."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass

SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
DONE = b"data: [DONE]\n\n"
COUNTS: Counter[str] = Counter()
SEEN: dict[str, list[dict]] = {}


@dataclass
class Call:
    """One request as received: `n` counts the requests of its case, from 0."""

    case: str
    n: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def stream(self, *events: bytes, done: bool = True) -> None:
        await self.send(SSE_HEAD)
        for event in events:
            await self.chunk(event)
        if done:
            await self.chunk(DONE)
        await self.end()

    async def plain(self, status: str, body: bytes, kind: str = "application/json",
                    extra: str = "") -> None:  # fmt: skip
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{extra}"
        )
        await self.send(head.encode() + b"\r\n" + body)

    async def forever(self) -> None:
        await self.reader.read()  # until the client hangs up


class Hangup(Exception):
    """The case is over and the connection is to be closed."""


def frame(delta: dict | None = None, finish: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    document = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [choice], **more}  # fmt: skip
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


def text(*pieces: str) -> list[bytes]:
    return [frame({"role": "assistant", "content": ""}), *(frame({"content": p}) for p in pieces)]


def call_delta(index: int | None, id_: object, name: object, arguments: object) -> dict:
    return {"tool_calls": [{"index": index, "id": id_, "type": "function",
                            "function": {"name": name, "arguments": arguments}}]}  # fmt: skip


USAGE = frame(usage={"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14,
                     "prompt_tokens_details": {"cached_tokens": 7}})  # fmt: skip
USAGE = USAGE.replace(
    USAGE[USAGE.index(b'"choices"') : USAGE.index(b', "usage"')], b'"choices": []'
)
GOOD = [*text("Hel", "lo ", "wörld 😀"), frame(finish="stop"), USAGE]
