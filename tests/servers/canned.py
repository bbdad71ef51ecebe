"""A raw-socket HTTP server that answers with canned bytes, good and bad, in its own process.

The first path segment of a request names the case: `http://HOST:PORT/cut/v1/chat/completions` is
answered by `cut`. A suffix after a dot (`/silent_two.a7/...`) gives a test its own request count.
Prints one JSON line with its port and ends at the end of stdin. A PEM file with key and certificate
as argument makes it speak TLS.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import sys
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable
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
CASES: dict[str, Callable[[Call], Awaitable[None]]] = {}


def case(function: Callable[[Call], Awaitable[None]]) -> Callable[[Call], Awaitable[None]]:
    CASES[function.__name__] = function
    return function


@case
async def good(call: Call) -> None:
    await call.stream(*GOOD)


@case
async def byte_by_byte(call: Call) -> None:
    await call.send(SSE_HEAD)
    for byte in b"".join([*GOOD, DONE]):
        await call.chunk(bytes([byte]))
        await asyncio.sleep(0)
    await call.end()


@case
async def crlf(call: Call) -> None:
    await call.stream(*(event.replace(b"\n", b"\r\n") for event in GOOD))


@case
async def sglang_call(call: Call) -> None:
    nulls = {"role": None, "content": None, "reasoning_content": None, "tool_calls": None}
    await call.stream(
        frame({"role": "assistant", "content": "", "reasoning_content": None}),
        frame({"reasoning_content": "think"}),
        frame({**nulls, **call_delta(0, "call_aa", "look", "")}),
        frame({**nulls, **call_delta(0, None, None, '{"a":')}),
        frame({**nulls, **call_delta(0, None, None, " -1}")}),
        frame({**nulls, **call_delta(1, "call_bb", "store", '{"b": 2}')}),
        frame(nulls, "tool_calls"),
        USAGE,
    )


@case
async def vllm_call(call: Call) -> None:
    later = {"tool_calls": [{"index": 0, "function": {"arguments": '{"a": -1}'}}]}
    await call.stream(
        frame({"role": "assistant", "content": ""}),
        frame({"reasoning": "think"}),
        frame({"tool_calls": [{"index": 0, "id": "call_aa", "type": "function",
                               "function": {"name": "look"}}]}),
        frame(later, "tool_calls"),
    )  # fmt: skip


@case
async def late_names(call: Call) -> None:
    """Arguments first, id and name late and then repeated, a new random id with every piece."""
    await call.stream(
        frame(call_delta(0, "", None, '{"a"')),
        frame(call_delta(0, "call_aa", "look", ": -1")),
        frame(call_delta(0, "call_zz", "look", "}")),
        frame(finish="tool_calls"),
    )


@case
async def reused_index(call: Call) -> None:
    await call.stream(
        frame(call_delta(0, "call_aa", "look", '{"a": -1}')),
        frame(call_delta(0, "call_bb", "store", '{"b": 2}')),
        frame(finish="tool_calls"),
    )


@case
async def no_index(call: Call) -> None:
    pieces = [("call_aa", "look", '{"a":'), (None, None, " -1}"), ("call_bb", "store", '{"b": 2}')]
    frames = []
    for id_, name, arguments in pieces:
        delta = call_delta(None, id_, name, arguments)
        del delta["tool_calls"][0]["index"]
        frames.append(frame(delta))
    await call.stream(*frames, frame(finish="tool_calls"))


@case
async def whole(call: Call) -> None:
    message = {"role": "assistant", "content": "", "reasoning_content": None, "tool_calls": [
        {"id": "call_aa", "index": 0, "type": "function",
         "function": {"name": "look", "arguments": '{"a": -1}'}}]}  # fmt: skip
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2}}  # fmt: skip
    await call.plain("200 OK", json.dumps(body).encode())


@case
async def no_done(call: Call) -> None:
    await call.stream(*text("fine"), frame(finish="stop"), done=False)


@case
async def done_unterminated(call: Call) -> None:
    await call.stream(*text("fine"), frame(finish="stop"), b"data: [DONE]", done=False)


@case
async def done_without_finish(call: Call) -> None:
    await call.stream(*text("fine"))


@case
async def done_alone(call: Call) -> None:
    await call.stream()


@case
async def cut(call: Call) -> None:
    await call.stream(*text("once upon"), done=False)


@case
async def cut_in_chunk(call: Call) -> None:
    await call.send(SSE_HEAD + b"40\r\ndata: {")
    raise Hangup


@case
async def bad_chunk_header(call: Call) -> None:
    await call.send(SSE_HEAD)
    await call.chunk(text("a", "b")[1])
    await call.send(b"zz\r\nnonsense\r\n")
    await call.forever()


@case
async def close_unanswered(call: Call) -> None:
    raise Hangup


@case
async def reset(call: Call) -> None:
    call.writer.transport.abort()
    raise Hangup


@case
async def not_http(call: Call) -> None:
    await call.send(b"SSH-2.0-OpenSSH_9.6\r\n")
    await call.forever()


@case
async def mute(call: Call) -> None:
    await call.forever()


@case
async def silent(call: Call) -> None:
    await call.send(SSE_HEAD)
    for event in text("a", "b", "c"):
        await call.chunk(event)
    await call.forever()


@case
async def pings(call: Call) -> None:
    await call.send(SSE_HEAD)
    for event in text("a", "b"):
        await call.chunk(event)
    while True:
        await call.chunk(b": ping\n\n")
        await asyncio.sleep(0.02)


@case
async def linger(call: Call) -> None:
    await call.send(SSE_HEAD)
    for event in [*GOOD, DONE]:
        await call.chunk(event)
    await call.forever()


@case
async def error_frame(call: Call) -> None:
    error = {"error": {"message": "KVTransferError: lost \x1b[31mroom", "code": 500}}
    await call.stream(*text("a"), b"data: " + json.dumps(error).encode() + b"\n\n",
                      frame(finish="stop"))  # fmt: skip


@case
async def invalid_json(call: Call) -> None:
    await call.stream(*text("a"), b'data: {"choices": [oops\n\n', *text("b"), frame(finish="stop"))


@case
async def array_frame(call: Call) -> None:
    await call.stream(b"data: [1, 2]\n\n", *text("b"), frame(finish="stop"))


@case
async def odd_types(call: Call) -> None:
    await call.stream(
        b'data: {"choices": "none"}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"\\ud800 ok"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"","tool_calls":"x"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":" raw \xed\xa0\x80 \xff"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":" nan"},"logprobs":NaN}]}\n\n',
        frame(finish="stop"),
    )


@case
async def gzipped(call: Call) -> None:
    body = gzip.compress(b"".join([*GOOD, DONE]))
    await call.send(SSE_HEAD[:-2] + b"Content-Encoding: gzip\r\n\r\n")
    for start in range(0, len(body), 7):
        await call.chunk(body[start : start + 7])
    await call.end()


@case
async def deflated(call: Call) -> None:
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(b"".join([*GOOD, DONE])) + packer.flush()
    await call.send(SSE_HEAD[:-2] + b"Content-Encoding: deflate\r\n\r\n")
    await call.chunk(body)
    await call.end()


@case
async def broken_gzip(call: Call) -> None:
    await call.send(SSE_HEAD[:-2] + b"Content-Encoding: gzip\r\n\r\n")
    await call.chunk(b"this is no gzip")
    await call.end()


@case
async def brotli(call: Call) -> None:
    await call.send(SSE_HEAD[:-2] + b"Content-Encoding: br\r\n\r\n")
    await call.chunk(b"whatever")
    await call.end()


@case
async def moved(call: Call) -> None:
    if call.path.endswith("/there"):
        await call.stream(*GOOD)
        return
    await call.plain("307 Temporary Redirect", b"", extra=f"Location: {call.path}/there\r\n")


@case
async def moved_away(call: Call) -> None:
    await call.plain("302 Found", b"", extra="Location: https://elsewhere.example/login\r\n")


@case
async def moved_around(call: Call) -> None:
    await call.plain("308 Permanent Redirect", b"", extra=f"Location: {call.path}\r\n")


@case
async def html(call: Call) -> None:
    await call.plain("200 OK", b"<html>\x1b[2Jwelcome</html>", "text/html")


async def _error(call: Call, status: str, message: str) -> None:
    body = {"object": "error", "message": message, "type": "x", "param": None, "code": 1}
    await call.plain(status, json.dumps(body).encode())


@case
async def status_401(call: Call) -> None:
    await call.plain("401 Unauthorized", b'{"error": "Unauthorized"}')


@case
async def status_404(call: Call) -> None:
    await _error(call, "404 Not Found", "The model `nope` does not exist.")


@case
async def status_429(call: Call) -> None:
    await call.plain("429 Too Many Requests", b'{"error": {"message": "slow \\u001b[31mdown"}}')


@case
async def status_500(call: Call) -> None:
    await call.plain("500 Internal Server Error", b"Internal Server Error", "text/plain")


@case
async def status_503(call: Call) -> None:
    await call.plain("503 Service Unavailable", b"")


@case
async def flaky(call: Call) -> None:
    """503 to the first request of a case, then a good stream."""
    await (status_503(call) if call.n == 0 else good(call))


@case
async def huge_line(call: Call) -> None:
    await call.send(SSE_HEAD)
    await call.chunk(b"data: ")
    piece = b"x" * 1_000_000
    for _ in range(100):
        await call.chunk(piece)
    await call.end()


@case
async def huge_events(call: Call) -> None:
    await call.send(SSE_HEAD)
    event = frame({"content": "y" * 100_000})
    for _ in range(1000):
        await call.chunk(event)
    await call.end()


@case
async def huge_whole(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: 100000000\r\n\r\n" + b"{" + b" " * 999_999)  # fmt: skip
    for _ in range(99):
        await call.send(b" " * 1_000_000)


@case
async def stale(call: Call) -> None:
    """Closes every connection right when it is used a second time, unread."""
    await call.stream(*GOOD)
    await call.reader.read(1)
    raise Hangup


@case
async def slow(call: Call, pieces: int = 40) -> None:
    """Pieces at 20 ms: long enough to be hung up on."""
    await call.send(SSE_HEAD)
    for event in text(*(f"w{i} " for i in range(pieces))):
        await call.chunk(event)
        await asyncio.sleep(0.02)
    await call.chunk(frame(finish="stop"))
    await call.chunk(DONE)
    await call.end()


@case
async def slow_prefill(call: Call) -> None:
    """A long time to the first token, except for the shortest request."""
    if json.loads(call.body)["max_tokens"] > 1:
        await asyncio.sleep(1.3)
    await good(call)


@case
async def short_only(call: Call) -> None:
    """Answers the shortest request and no other."""
    await (mute if json.loads(call.body)["max_tokens"] > 1 else good)(call)


@case
async def bad_arguments(call: Call) -> None:
    await call.stream(frame(call_delta(0, "call_aa", "look", '{"a": -1,,}')),
                      frame(finish="tool_calls"))  # fmt: skip


@case
async def leaked_dsml(call: Call) -> None:
    await call.stream(*text('<｜DSML｜invoke name="look">', " zq qz zq"), frame(finish="stop"))


@case
async def call_only(call: Call) -> None:
    await call.stream(frame(call_delta(0, "call_aa", "look", '{"a": -1}')),
                      frame(finish="tool_calls"))  # fmt: skip


@case
async def silent_two(call: Call) -> None:
    """Requests 5 and 11 of a case go silent: one after two pieces, one before any."""
    if call.n == 5:
        await silent(call)
    elif call.n == 11:
        await call.send(SSE_HEAD)
        await call.forever()
    else:
        await slow(call)


@case
async def unlucky(call: Call) -> None:
    """The third request never gets a token; the others flow for a while."""
    if call.n == 2:
        await call.forever()
    await slow(call, 80)


@case
async def unlucky_queued(call: Call) -> None:
    """As `unlucky`, on a server whose metrics speak of a queue."""
    await unlucky(call)


@case
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


METRICS = b"""# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",tp_rank="0"} 3.0
sglang:num_queue_reqs{model_name="m",tp_rank="0"} 2
sglang:num_queue_reqs{model_name="m",tp_rank="1"} 1
sglang:prompt_tokens_total{model_name="m"} 100.0
sglang:time_to_first_token_seconds_bucket{le="0.1"} 4
"""


async def _other_routes(call: Call) -> bool:
    """The server's own routes; True when one of them answered."""
    route = "/" + call.path.split("/", 2)[2] if call.path.count("/") > 1 else "/"
    if route in {"/health", "/health_generate"}:
        await call.plain("200 OK", b"", "text/plain")
    elif route == "/metrics" and call.case.split(".")[0] not in {"silent_two", "unlucky"}:
        await call.plain("200 OK", METRICS, "text/plain; version=0.0.4")
    elif route == "/v1/models":
        await call.plain("200 OK", b'{"object": "list", "data": [{"id": "m"}, {"id": "n"}]}')
    elif route == "/server_info" and call.case.startswith("good"):
        body = {"version": "0.5.23", "api_key": "s3cret", "enable_hierarchical_cache": True,
                "launch_command": "python -m sglang.launch_server --api-key s3cret",
                "internal_states": [{"page_size": 256}]}  # fmt: skip
        await call.plain("200 OK", json.dumps(body).encode())
    elif route == "/model_info" and call.case.startswith("good"):
        await call.plain("200 OK", b'{"model_path": "/models/v4", "tool_call_parser": "dsv4"}')
    elif route == "/version" and call.case.startswith("vllm"):
        await call.plain("200 OK", b'{"version": "0.33.0"}')
    elif route == "/seen":
        await call.plain("200 OK", json.dumps(SEEN.get(call.case, [])).encode())
    elif call.method == "GET":
        await call.plain("404 Not Found", b'{"detail": "Not Found"}')
    else:
        return False
    return True


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Call | None:
    start = await reader.readexactly(1)
    if not start.isalpha():  # a TLS hello, say
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        raise Hangup
    head = start + await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    name = path.split("/")[1]
    call = Call(name, 0, method, path, headers, body, reader, writer)
    if method == "POST":
        document = json.loads(body)
        if document.get("max_tokens", 0) > 0:
            call.n = COUNTS[name]
            COUNTS[name] += 1
        SEEN.setdefault(name, []).append({"headers": headers, "body": document})
    return call


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            call = await _read_request(reader, writer)
            if not await _other_routes(call):
                await CASES[call.case.split(".")[0]](call)
    except (Hangup, asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _main() -> None:
    tls = None
    if len(sys.argv) > 1:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(sys.argv[1])
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=1 << 24, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"port": port}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
