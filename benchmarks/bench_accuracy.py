"""`bench` held to the truth: a server of a known pace that logs when it really sent.

    python benchmarks/bench_accuracy.py [--repeats 3] [--write benchmarks/bench.md]

At 1, 60 and 256 streams of 55 tokens a second, what `dsv4doctor bench` shows stands beside what the
server's log says of the same replies: tokens a second, the median and the 99th percentile of the
gaps. Then the CPU that one event costs, of the whole command against a server that sends as fast as
it can, beside a plain aiohttp reader of the same server: both as the slope between a short and a
long reply, so that starting up costs neither anything. About two minutes. A run that was stopped
goes on where it was: each measurement is kept in a file beside the temporary run directories.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from stamping import ROOT, stamp

TOKENS_PER_S = 55.0
# streams -> (requests a run, bars: error of the median and of the 99th percentile in ms)
STREAMS = {1: (2, 0.2, 1.0), 60: (60, 0.2, 1.0), 256: (256, 0.5, 4.0)}
THROUGHPUT_BAR = 0.01
COST_BAR = 3.0
COST_STREAMS = 60
# Prompt and reply lengths in tokens. A reply of 250 tokens takes 4.5 s at the known pace.
PACED_LENGTHS = (700, 250)
SHORT_LENGTHS, LONG_LENGTHS = (700, 150), (3600, 2700)
# Replies of warm-up requests are not longer; measured ones always are.
WARMUP_TOKENS = 32
STATE = Path(tempfile.gettempdir()) / "dsv4doctor-bench-accuracy"


@contextlib.contextmanager
def serving(*flags: str) -> Iterator[str]:
    """The address of a paced server that lives inside the block."""
    with subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "servers" / "paced.py"), *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            yield f"127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.kill()


def bench(
    address: str, streams: int, requests: int, lengths: tuple[int, int]
) -> tuple[dict[str, Any], float]:
    """The one level of a bench, and the CPU seconds of its process."""
    command = [
        sys.executable, "-m", "dsv4doctor", "bench", "--json", "--no-progress", "--base-url",
        address, "--max-concurrency", str(streams), "--num-prompts", str(requests), "--blocks",
        "1", "--input-len", str(lengths[0]), "--output-len", str(lengths[1]), "--output-dir",
        str(STATE / "runs"),
    ]  # fmt: skip
    environment = {**os.environ, "OPENAI_BASE_URL": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=ROOT) as process:
        assert process.stdout is not None
        document = json.loads(process.stdout.read())
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    level = document["bench"]["levels"][0]
    wrong = (document["verdict"], level["errors"], level["corrupted_responses"])
    assert wrong == ("measured", 0, 0), wrong
    return level, usage.ru_utime + usage.ru_stime


def accuracy(streams: int) -> dict[str, Any]:
    """One paced run: what was sent and what was shown."""
    requests = STREAMS[streams][0]
    with serving("--tokens-per-s", str(TOKENS_PER_S)) as address:
        level, _ = bench(address, streams, requests, PACED_LENGTHS)
        with urllib.request.urlopen(f"http://{address}/log") as answer:
            log = [each for each in json.load(answer) if len(each["sent"]) > WARMUP_TOKENS]
    gaps = [(b - a) * 1000 for each in log for a, b in pairwise(each["sent"])]
    assert (len(log), len(gaps)) == (requests, level["n_itl"])
    seconds = max(e["sent"][-1] for e in log) - min(e["arrived"] for e in log)
    return {
        "sent_p50": statistics.median(gaps),
        "sent_p99": p99(gaps),
        "shown_p50": level["median_itl_ms"],
        "shown_p99": level["p99_itl_ms"],
        "sent_tokens_per_s": sum(len(each["sent"]) for each in log) / seconds,
        "shown_tokens_per_s": level["output_throughput"],
        "pace": level["median_request_tokens_per_s"],
        "lag_p50": level["client_lag_ms"]["p50"],
        "lag_p99": level["client_lag_ms"]["p99"],
        "timings_valid": level["timings_valid"],
    }


def p99(values: list[float]) -> float:
    """By the linear method, as bench has it."""
    ordered = sorted(values)
    place = 0.99 * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def cost() -> dict[str, Any]:
    """CPU per event in us, ours and aiohttp's, as slopes between short and long replies."""
    points: dict[str, list[tuple[float, float]]] = {"ours": [], "aiohttp": []}
    with serving("--tokens-per-s", "0", "--first-ms", "50") as address:
        for lengths in (SHORT_LENGTHS, LONG_LENGTHS):
            level, seconds = bench(address, COST_STREAMS, COST_STREAMS, lengths)
            points["ours"].append((level["total_output_tokens"], seconds))
            command = [sys.executable, __file__, "--read", address, str(lengths[1])]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            events, seconds = json.loads(done.stdout)
            points["aiohttp"].append((events, seconds))
    return {name: slope(found) * 1e6 for name, found in points.items()}


def slope(points: list[tuple[float, float]]) -> float:
    (few, short), (many, long) = points
    return (long - short) / (many - few)


async def read_plainly(address: str, tokens: int) -> int:
    """Read as many streams as the bench with bare aiohttp; how many events there were."""
    import aiohttp

    words = " ".join(["alpha"] * tokens)
    asked = f"Passage `x`: {words} End of passage `x`. The passage called `x`"
    body = json.dumps({"messages": [{"role": "user", "content": asked}]}).encode()
    connector = aiohttp.TCPConnector(limit=COST_STREAMS)
    url = f"http://{address}/v1/chat/completions"
    async with aiohttp.ClientSession(connector=connector) as session:

        async def read() -> None:
            async with session.post(url, data=body) as response:
                async for _ in response.content.iter_any():
                    pass

        await asyncio.gather(*(read() for _ in range(COST_STREAMS)))
    return COST_STREAMS * tokens


@functools.cache
def measured_code() -> str:
    """A digest of what is measured: a change to anything else leaves its figures as they are."""
    package = ROOT / "dsv4doctor"
    paths = [Path(__file__), ROOT / "tests" / "servers" / "paced.py"]
    for pattern in ("client/*.py", "load/*.py", "throughput/*.py", "flows/bench*.py"):
        paths += sorted(package.glob(pattern))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


def kept(name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A measurement, from the file if this very code has made it before."""
    path = STATE / f"{measured_code()}-{name}.json"
    if not path.exists():
        found = measure()
        STATE.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
        print(f"{name}: {found}", file=sys.stderr, flush=True)
    return dict(json.loads(path.read_text()))


def table(repeats: int) -> str:
    lines = [
        "| streams | sent p50 / p99 ms | shown p50 / p99 ms | off by p50 / p99 ms | sent tok/s "
        "| shown tok/s | off by | a stream | own lag p50 / p99 ms | timings valid | held |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for streams in STREAMS:
        for number in range(repeats):
            lines.append(row(streams, kept(f"{streams}-{number}", lambda: accuracy(streams))))  # noqa: B023
    costs = [kept(f"cost-{number}", cost) for number in range(repeats)]
    ours = statistics.median(each["ours"] for each in costs)
    plain = statistics.median(each["aiohttp"] for each in costs)
    ratio = statistics.median(each["ours"] / each["aiohttp"] for each in costs)
    lines += [
        "",
        f"| CPU per event, {COST_STREAMS} streams, fast server | us |\n|---|---|",
        f"| aiohttp, bare | {plain:.1f} |",
        f"| `dsv4doctor bench`, whole | {ours:.1f} |",
        f"| ratio (bar {COST_BAR:g}) | {ratio:.2f} |",
    ]
    return "\n".join(lines)


def row(streams: int, found: dict[str, Any]) -> str:
    _, p50_bar, p99_bar = STREAMS[streams]
    p50_off = found["shown_p50"] - found["sent_p50"]
    p99_off = found["shown_p99"] - found["sent_p99"]
    speed_off = found["shown_tokens_per_s"] / found["sent_tokens_per_s"] - 1
    held = abs(p50_off) <= p50_bar and abs(p99_off) <= p99_bar and abs(speed_off) <= THROUGHPUT_BAR
    return (
        f"| {streams} | {found['sent_p50']:.3f} / {found['sent_p99']:.2f} "
        f"| {found['shown_p50']:.3f} / {found['shown_p99']:.2f} | {p50_off:+.3f} / {p99_off:+.2f} "
        f"| {found['sent_tokens_per_s']:.1f} | {found['shown_tokens_per_s']:.1f} "
        f"| {100 * speed_off:+.2f} % | {found['pace']:.2f} "
        f"| {found['lag_p50']:.2f} / {found['lag_p99']:.1f} | {found['timings_valid']} "
        f"| {'yes' if held else 'no'} |"
    )


def read_and_count(address: str, tokens: int) -> None:
    """In a process of its own: print the events read and the CPU seconds of all of it."""
    events = asyncio.run(read_plainly(address, tokens))
    used = os.times()
    print(json.dumps([events, used.user + used.system]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", help="file whose table between the markers is replaced")
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:
        read_and_count(args.read[0], int(args.read[1]))
        return
    text = f"{table(args.repeats)}\n\n{stamp()}"
    print(text)
    if args.write:
        path = Path(args.write)
        head, _, rest = path.read_text().partition("<!-- table -->")
        tail = rest.partition("<!-- end -->")[2]
        path.write_text(f"{head}<!-- table -->\n{text}\n<!-- end -->{tail}")


if __name__ == "__main__":
    main()
