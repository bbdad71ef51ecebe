"""The lab's server process: listening, the line that says so, and every way in which it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Protocol

import orjson
from aiohttp import web

from dsv4doctor.errors import EXIT_BUG, EXIT_DONE, DoctorError
from dsv4doctor.lab.http_launch import LaunchOptions
from dsv4doctor.lab.http_log import READY_LINE, log
from dsv4doctor.lab.http_routes import DeskOf, Engine, LabServer, ServerEngine, unified_desk
from dsv4doctor.lab.probe_state import LabProbe

# What still runs when the end comes is cut off: the lab must be gone when its parent is.
_SHUTDOWN_S = 0.2


class Role(Protocol):
    """What one of two servers has beside its routes."""

    def desk_of(self) -> DeskOf: ...

    async def start(self, http_port: int) -> dict[str, object]: ...

    async def stop(self) -> None: ...


async def serve(engine: Engine, options: LaunchOptions, probe: LabProbe | None = None) -> int:
    """Serve prefill and decode until a signal, or the parent's end. Returns the exit code.

    Raises:
        DoctorError: if the address cannot be listened on.
    """
    server = LabServer(engine, options, unified_desk(engine, options), probe)
    return await _serve(server, options, None)


async def serve_role(
    engine: ServerEngine, options: LaunchOptions, role: Role, probe: LabProbe | None = None
) -> int:
    """Serve one of the two, as `serve`."""
    return await _serve(LabServer(engine, options, role.desk_of(), probe), options, role)


async def _serve(server: LabServer, options: LaunchOptions, role: Role | None) -> int:
    runner = web.AppRunner(
        server.application(),
        handler_cancellation=True,
        access_log=None,
        shutdown_timeout=_SHUTDOWN_S,
    )
    await runner.setup()
    listener = listen(options)
    await web.SockSite(runner, listener).start()
    server.port = listener.getsockname()[1]
    log(f"Lab server listens on http://{options.host}:{server.port}", rank="")
    more = await role.start(server.port) if role else {}
    stopped = stop_event(options)
    rounds = asyncio.create_task(server.rounds.run())
    log(READY_LINE, rank="")
    print(ready_line(options, server.port, **more), flush=True)
    await asyncio.wait(
        {rounds, asyncio.create_task(stopped.wait())}, return_when=asyncio.FIRST_COMPLETED
    )
    code = _crash_code(rounds)
    busy = server.rounds.computes
    rounds.cancel()
    await runner.cleanup()
    if role is not None:
        await role.stop()
    server.rounds.close()
    if busy or code:
        # A round in the engine's thread would hold up the end by seconds.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def ready_line(options: LaunchOptions, port: int, **more: object) -> str:
    """The one line on stdout; `more` are further fields."""
    host = "127.0.0.1" if options.host == "0.0.0.0" else options.host
    bracketed = f"[{host}]" if ":" in host else host
    ready = {
        "base_url": f"http://{bracketed}:{port}",
        "pid": os.getpid(),
        "ground_truth": options.ground_truth,
        **more,
    }
    return orjson.dumps(ready).decode()


def _crash_code(rounds: asyncio.Task[None]) -> int:
    """Tells of an engine that raised, as SGLang's scheduler does before it dies."""
    if not rounds.done() or rounds.cancelled() or rounds.exception() is None:
        return EXIT_DONE
    trace = "".join(traceback.format_exception(rounds.exception()))
    log(f"Scheduler hit an exception: {trace}")
    return EXIT_BUG


def listen(options: LaunchOptions) -> socket.socket:
    """The server's socket.

    Raises:
        DoctorError: if the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        options.host.encode("idna")  # bind raises a TypeError of its own where this fails
        listener.bind((options.host, options.port))
        listener.listen(1024)
    except (OSError, UnicodeError) as error:
        listener.close()
        why = getattr(error, "strerror", None) or error
        raise DoctorError(
            f"cannot listen on {options.host}:{options.port}: {why}",
            "give another --port (0 takes any free one), or stop what listens there",
        ) from error
    return listener


def stop_event(options: LaunchOptions) -> asyncio.Event:
    """Set by SIGTERM, SIGINT, and in a lab that was started by us also by its parent's end."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if options.exit_with_stdin:

        def parent_ended() -> None:
            with contextlib.suppress(RuntimeError):  # the loop may be closed by then
                loop.call_soon_threadsafe(stopped.set)

        # A daemon thread with raw reads: nothing that the interpreter's end has to wait for.
        threading.Thread(target=_wait_for_end_of_stdin, args=(parent_ended,), daemon=True).start()
    return stopped


def _wait_for_end_of_stdin(ended: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    ended()
