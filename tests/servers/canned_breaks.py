"""Replies that are none: cut, malformed, refused, redirected, or too large."""

from __future__ import annotations

import asyncio
import json

from canned_call import GOOD, SSE_HEAD, Call, Hangup, frame, text


async def cut(call: Call) -> None:
    await call.stream(*text("once upon"), done=False)


async def cut_in_chunk(call: Call) -> None:
    await call.send(SSE_HEAD + b"40\r\ndata: {")
    raise Hangup


async def bad_chunk_header(call: Call) -> None:
    await call.send(SSE_HEAD)
    await call.chunk(text("a", "b")[1])
    await call.send(b"zz\r\nnonsense\r\n")
    await call.forever()


async def close_unanswered(call: Call) -> None:
    raise Hangup


async def reset(call: Call) -> None:
    call.writer.transport.abort()
    raise Hangup


async def not_http(call: Call) -> None:
    await call.send(b"SSH-2.0-OpenSSH_9.6\r\n")
    await call.forever()


async def mute(call: Call) -> None:
    await call.forever()


async def silent(call: Call) -> None:
    await call.send(SSE_HEAD)
    for event in text("a", "b", "c"):
        await call.chunk(event)
    await call.forever()


async def pings(call: Call) -> None:
    await call.send(SSE_HEAD)
    for event in text("a", "b"):
        await call.chunk(event)
    while True:
        await call.chunk(b": ping\n\n")
        await asyncio.sleep(0.02)


async def error_frame(call: Call) -> None:
    error = {"error": {"message": "KVTransferError: lost \x1b[31mroom", "code": 500}}
    await call.stream(*text("a"), b"data: " + json.dumps(error).encode() + b"\n\n",
                      frame(finish="stop"))  # fmt: skip


async def invalid_json(call: Call) -> None:
    await call.stream(*text("a"), b'data: {"choices": [oops\n\n', *text("b"), frame(finish="stop"))


async def array_frame(call: Call) -> None:
    await call.stream(b"data: [1, 2]\n\n", *text("b"), frame(finish="stop"))


async def odd_types(call: Call) -> None:
    await call.stream(
        b'data: {"choices": "none"}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"\\ud800 ok"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"","tool_calls":"x"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":" raw \xed\xa0\x80 \xff"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":" nan"},"logprobs":NaN}]}\n\n',
        frame(finish="stop"),
    )


async def broken_gzip(call: Call) -> None:
    await call.send(SSE_HEAD[:-2] + b"Content-Encoding: gzip\r\n\r\n")
    await call.chunk(b"this is no gzip")
    await call.end()


async def brotli(call: Call) -> None:
    await call.send(SSE_HEAD[:-2] + b"Content-Encoding: br\r\n\r\n")
    await call.chunk(b"whatever")
    await call.end()


async def moved(call: Call) -> None:
    if call.path.endswith("/there"):
        await call.stream(*GOOD)
        return
    await call.plain("307 Temporary Redirect", b"", extra=f"Location: {call.path}/there\r\n")


async def moved_away(call: Call) -> None:
    await call.plain("302 Found", b"", extra="Location: https://elsewhere.example/login\r\n")


async def moved_around(call: Call) -> None:
    await call.plain("308 Permanent Redirect", b"", extra=f"Location: {call.path}\r\n")


async def html(call: Call) -> None:
    await call.plain("200 OK", b"<html>\x1b[2Jwelcome</html>", "text/html")


async def _error(call: Call, status: str, message: str) -> None:
    body = {"object": "error", "message": message, "type": "x", "param": None, "code": 1}
    await call.plain(status, json.dumps(body).encode())


async def status_401(call: Call) -> None:
    await call.plain("401 Unauthorized", b'{"error": "Unauthorized"}')


async def status_404(call: Call) -> None:
    await _error(call, "404 Not Found", "The model `nope` does not exist.")


async def status_429(call: Call) -> None:
    await call.plain("429 Too Many Requests", b'{"error": {"message": "slow \\u001b[31mdown"}}')


async def status_500(call: Call) -> None:
    await call.plain("500 Internal Server Error", b"Internal Server Error", "text/plain")


async def status_503(call: Call) -> None:
    await call.plain("503 Service Unavailable", b"")


async def huge_line(call: Call) -> None:
    await call.send(SSE_HEAD)
    await call.chunk(b"data: ")
    piece = b"x" * 1_000_000
    for _ in range(100):
        await call.chunk(piece)
    await call.end()


async def huge_events(call: Call) -> None:
    await call.send(SSE_HEAD)
    event = frame({"content": "y" * 100_000})
    for _ in range(1000):
        await call.chunk(event)
    await call.end()


async def huge_whole(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: 100000000\r\n\r\n" + b"{" + b" " * 999_999)  # fmt: skip
    for _ in range(99):
        await call.send(b" " * 1_000_000)
