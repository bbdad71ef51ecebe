"""CPU per streamed event: ours, judging included, beside plain readers of the same canned stream.

    python benchmarks/client_cost.py [--repeats 5] [--judge dsv4doctor.detect:judge] [--write FILE]

One server process sends the same events to every reader; each reader runs in a process of its own
and counts its own CPU (user and system) from the first request to the last byte. `bare` readers
throw the bytes away, `json` readers parse every event; ours parses, merges, times and judges.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import platform
import resource
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

FAST_EVENTS = 600
PACED_EVENTS = 250
PACED_GAP_S = 1 / 55  # one token every 18.18 ms, as a loaded deployment gives them
WORDS = ("alpha ", "of", " the", " page", "ing", " cache", ",", " ｜DSML｜", "\\n", " 12")


def event(number: int) -> bytes:
    """About 370 bytes in the shape of SGLang's chunks, as one HTTP chunk."""
    data = json.dumps(
        {
            "id": "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
            "object": "chat.completion.chunk",
            "created": 1795939200,
            "model": "deepseek-ai/DeepSeek-V4-Flash",
            "choices": [
                {
                    "index": 0,
                    "delta": {
                        "role": None, "content": WORDS[number % len(WORDS)],
                        "reasoning_content": None, "tool_calls": None,
                    },
                    "logprobs": None, "finish_reason": None, "matched_stop": None,
                }
            ],
            "usage": None,
        },
        ensure_ascii=False,
    ).encode()  # fmt: skip
    return chunked(b"data: " + data + b"\n\n")


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
TAIL = (
    chunked(b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
    + chunked(b"data: [DONE]\n\n")
    + b"0\r\n\r\n"
)


SENT_GAPS_MS: list[float] = []


async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if head.startswith(b"GET /sent"):
        body = json.dumps(quantiles(SENT_GAPS_MS)).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        SENT_GAPS_MS.clear()
        writer.close()
        return
    length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
    await reader.readexactly(int(length))
    is_paced = b"/paced/" in head.split(b"\r\n")[0]
    count = PACED_EVENTS if is_paced else FAST_EVENTS
    events = [event(number) for number in range(len(WORDS))]
    writer.write(HEAD)
    due = sent = time.perf_counter()
    for number in range(count):
        writer.write(events[number % len(events)])
        if is_paced:
            due += PACED_GAP_S
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            now = time.perf_counter()
            SENT_GAPS_MS.append((now - sent) * 1000)
            sent = now
        else:
            await writer.drain()
            await asyncio.sleep(0)  # streams take turns
    writer.write(TAIL)
    await writer.drain()
    writer.close()


async def serve() -> None:
    server = await asyncio.start_server(serve_one, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


BODY = b'{"model":"m","messages":[],"stream":true}'


def count_events(lines: list[bytes]) -> int:
    return sum(1 for line in lines if json.loads(line))


async def httpx_bare(url: str, streams: int) -> None:
    await _httpx(url, streams, None, bare=True)


async def httpx_lines_json(url: str, streams: int) -> None:
    await _httpx(url, streams, None, bare=False)


async def httpx_aiohttp_bare(url: str, streams: int) -> None:
    from httpx_aiohttp import AiohttpTransport

    await _httpx(url, streams, AiohttpTransport, bare=True)


async def _httpx(url: str, streams: int, transport: Callable | None, *, bare: bool) -> None:
    import httpx

    limits = httpx.Limits(max_connections=streams)
    chosen = {"transport": transport(limits=limits)} if transport else {"limits": limits}
    async with httpx.AsyncClient(timeout=None, **chosen) as client:

        async def read() -> None:
            async with client.stream("POST", url, content=BODY) as response:
                if bare:
                    async for _ in response.aiter_raw():
                        pass
                    return
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        json.loads(line[6:])

        await asyncio.gather(*(read() for _ in range(streams)))


async def aiohttp_bare(url: str, streams: int) -> None:
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=streams)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:

        async def read() -> None:
            async with session.post(url, data=BODY) as response:
                async for _ in response.content.iter_any():
                    pass

        await asyncio.gather(*(read() for _ in range(streams)))


async def ours(url: str, streams: int, judge: Callable[[object], object] | None = None) -> None:
    from dsv4doctor.client.http import HttpClient
    from dsv4doctor.client.openai import ChatRequest, chat
    from dsv4doctor.client.watch import Deadlines, Watchdog
    from dsv4doctor.exchange import Exchange
    from dsv4doctor.target import parse_endpoint

    watchdog = Watchdog(Deadlines())
    async with HttpClient(parse_endpoint(url.split("/v1/", maxsplit=1)[0])) as http:
        guard = asyncio.create_task(watchdog.run())

        async def read() -> None:
            reply = (await chat(http, ChatRequest(body=BODY, stream=True), watchdog)).reply
            assert reply.failure is None, reply.failure
            if judge is not None:
                judge(Exchange(response=reply.response))

        await asyncio.gather(*(read() for _ in range(streams)))
        guard.cancel()


READERS: dict[str, Callable[[str, int], Awaitable[None]]] = {
    "aiohttp, bare": aiohttp_bare,
    "httpx-aiohttp, bare": httpx_aiohttp_bare,
    "httpx, bare": httpx_bare,
    "httpx, lines + json": httpx_lines_json,
    "dsv4doctor, no judging": ours,
}


def measure(name: str, url: str, streams: int, judge: str) -> None:
    """Run one reader in this process and print its CPU seconds."""
    if judge:
        module, _, function = judge.partition(":")
        judging = getattr(importlib.import_module(module), function)
        work = ours(url, streams, judging)
    else:
        work = READERS[name](url, streams)
    # The imports of a reader are not its cost per event.
    asyncio.run(READERS[name](url.replace("/paced/", "/fast/"), 1))
    before = resource.getrusage(resource.RUSAGE_SELF)
    asyncio.run(work)
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def quantiles(gaps_ms: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    cuts = statistics.quantiles(gaps_ms, n=100)
    return cuts[49], cuts[98]


def shown_gaps(port: str, streams: int, processes: int) -> str:
    """One row: what a run of ours shows of paced streams, beside what the server sent."""
    from dsv4doctor.load.runner import RunEnded, RunOptions, TurnDone, run_sessions
    from dsv4doctor.scenario import History, TurnKind
    from dsv4doctor.session import SessionScript, Turn
    from dsv4doctor.target import parse_endpoint

    turn = Turn(
        turn=0, kind=TurnKind.LONG_TEXT, new_messages=(), expected_reply={}, canaries=(),
        prompt="", max_tokens=1, tool_choice="auto",
    )  # fmt: skip
    scripts = [
        SessionScript(
            session=number, turns=(turn,), tools=(), history=History.SCRIPTED, stream=True,
            sampling={}, canary_key=0,
        )
        for number in range(streams)
    ]  # fmt: skip
    gaps: list[float] = []
    options = RunOptions(model="m", processes=processes)
    with run_sessions(parse_endpoint(f"127.0.0.1:{port}/paced"), scripts, options) as run:
        for told in run:
            if isinstance(told, TurnDone):
                gaps.extend(told.reply.timing.itl_ms)
            if isinstance(told, RunEnded):
                ended = told
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/sent") as answer:
        sent = json.load(answer)
    shown = quantiles(gaps)
    lag = ended.client_lag
    return (
        f"| {streams} | {processes} | {sent[0]:.2f} / {sent[1]:.1f} | {shown[0]:.2f} / "
        f"{shown[1]:.1f} | {lag.p50_ms:.2f} / {lag.p99_ms:.1f} | {ended.timings_valid} |"
    )


GAP_HEAD = (
    "| streams | processes | sent p50 / p99 ms | shown p50 / p99 ms | own lag p50 / p99 ms "
    "| timings valid |\n|---|---|---|---|---|---|"
)


def cost_us(name: str, port: str, streams: int, mode: str, judge: str) -> float:
    url = f"http://127.0.0.1:{port}/{mode}/v1/chat/completions"
    command = [sys.executable, __file__, "--measure", name, url, str(streams), judge]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    events = streams * (PACED_EVENTS if mode == "paced" else FAST_EVENTS)
    return float(done.stdout) / events * 1e6


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The port of the canned server, alive inside the block."""
    with subprocess.Popen(
        [sys.executable, __file__, "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.kill()


def run(port: str, streams: int, repeats: int, judge: str) -> dict[str, dict[str, float]]:
    """Median µs per event by reader and mode; readers take turns, so that drift hits all alike."""
    names = list(READERS)
    judged = f"dsv4doctor, judging ({judge})"
    rows = [(name, name, "") for name in names]
    if judge:
        rows.append((judged, "dsv4doctor, no judging", judge))
    samples: dict[str, dict[str, list[float]]] = {row[0]: {} for row in rows}
    for _ in range(repeats):
        for mode in ("fast", "paced"):
            for label, name, judging in rows:
                cost = cost_us(name, port, streams, mode, judging)
                samples[label].setdefault(mode, []).append(cost)
    return {
        label: {mode: statistics.median(costs) for mode, costs in modes.items()}
        for label, modes in samples.items()
    }


def table(medians: dict[str, dict[str, float]]) -> str:
    base = medians["aiohttp, bare"]
    lines = ["| reader | fast µs | × aiohttp | paced µs | × aiohttp |", "|---|---|---|---|---|"]
    lines += [
        f"| {label} | {costs['fast']:.1f} | {costs['fast'] / base['fast']:.2f} "
        f"| {costs['paced']:.0f} | {costs['paced'] / base['paced']:.2f} |"
        for label, costs in medians.items()
    ]
    return "\n".join(lines)


def commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--judge", default="", help="MODULE:FUNCTION that takes an Exchange")
    parser.add_argument("--write", help="file whose table between the markers is replaced")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve())
        return
    if args.measure:
        name, url, streams, judge = args.measure
        measure(name, url, int(streams), judge)
        return
    with serving() as port:
        text = table(run(port, args.streams, args.repeats, args.judge))
        rows = [shown_gaps(port, n, k) for n, k in ((60, 1), (128, 1), (256, 1), (256, 2))]
        text += "\n\n" + "\n".join([GAP_HEAD, *rows])
    stamp = (
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, commit {commit()}, "
        f"{args.streams} streams, median of {args.repeats}, Python {platform.python_version()}"
    )
    print(f"{stamp}\n\n{text}")
    if args.write:
        path = Path(args.write)
        head, _, rest = path.read_text().partition("<!-- table -->")
        tail = rest.partition("<!-- end -->")[2]
        path.write_text(f"{head}<!-- table -->\n{stamp}\n\n{text}\n<!-- end -->{tail}")


if __name__ == "__main__":
    main()
