"""`lab serve --disaggregation`: a prefill and a decode server as children, and the router here."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from dsv4doctor.errors import EXIT_BUG, EXIT_DONE
from dsv4doctor.lab.http_launch import DECODE, PREFILL, LaunchOptions
from dsv4doctor.lab.http_log import log
from dsv4doctor.lab.pd.router import Pair, Router
from dsv4doctor.lab.server import listen, ready_line, stop_event

_POLL_S = 0.5
_STOP_S = 3.0
_SHUTDOWN_S = 0.2


@contextmanager
def started_pair(options: LaunchOptions) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Both servers' processes, by role; they are gone at the end."""
    children: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for mode in (PREFILL, DECODE):
            # Of an option that is given twice the last one counts.
            words = [*options.arguments, "--disaggregation-mode", mode, "--exit-with-stdin"]
            words += ["--host", "127.0.0.1", "--port", "0"]
            children[mode] = subprocess.Popen(
                [sys.executable, "-m", "dsv4doctor", "lab", "serve", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        yield children
    finally:
        for child in children.values():
            _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    with contextlib.suppress(OSError):
        child.stdin.close()
    child.terminate()
    try:
        child.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stdout.close()


def _ready(child: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """What a server says when it is ready; None where it ended instead, having said why."""
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        return None
    ready: dict[str, Any] = json.loads(line)
    return ready


async def serve_pair(options: LaunchOptions) -> int:
    """Serve until a signal, the parent's end, or the end of one of the servers.

    Returns the exit code; of a server that does not start, its own.

    Raises:
        DoctorError: if the address cannot be listened on.
    """
    with started_pair(options) as children:
        prefill = await asyncio.to_thread(_ready, children[PREFILL])
        decode = await asyncio.to_thread(_ready, children[DECODE])
        if prefill is None or decode is None:
            ended = children[PREFILL if prefill is None else DECODE]
            return ended.wait(_STOP_S) or EXIT_BUG
        pair = Pair(
            prefill_url=prefill["base_url"],
            decode_url=decode["base_url"],
            bootstrap_host="127.0.0.1",
            bootstrap_port=int(prefill["bootstrap_port"]),
        )
        async with Router(pair) as router:
            return await _route(router, pair, options, children)


async def _route(
    router: Router,
    pair: Pair,
    options: LaunchOptions,
    children: dict[str, subprocess.Popen[bytes]],
) -> int:
    runner = web.AppRunner(
        router.application(),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=_SHUTDOWN_S,
    )
    await runner.setup()
    listener = listen(options)
    await web.SockSite(runner, listener).start()
    port = listener.getsockname()[1]
    log(f"Lab router listens on http://{options.host}:{port}", rank="")
    stopped = stop_event(options)
    print(
        ready_line(
            options,
            port,
            prefill_url=pair.prefill_url,
            decode_url=pair.decode_url,
            bootstrap_url=f"http://{pair.bootstrap_host}:{pair.bootstrap_port}",
        ),
        flush=True,
    )
    ended = asyncio.create_task(_first_to_end(children))
    await asyncio.wait(
        {ended, asyncio.create_task(stopped.wait())}, return_when=asyncio.FIRST_COMPLETED
    )
    await runner.cleanup()
    if ended.done():
        log(f"Lab router ends: the {ended.result()} server is gone", rank="")
        return EXIT_BUG
    ended.cancel()
    return EXIT_DONE


async def _first_to_end(children: dict[str, subprocess.Popen[bytes]]) -> str:
    """The role of the server that ends first; polled, since children are waited for elsewhere."""
    while True:
        for mode, child in children.items():
            if child.poll() is not None:
                return mode
        await asyncio.sleep(_POLL_S)
