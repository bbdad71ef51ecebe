"""What a prefill or a decode server has beside its routes: a desk, its sockets, their threads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from aiohttp import web

from dsv4doctor.errors import DoctorError
from dsv4doctor.lab.http_launch import LaunchOptions
from dsv4doctor.lab.http_log import log
from dsv4doctor.lab.http_routes import DeskOf, ServerEngine
from dsv4doctor.lab.pd.bootstrap import BootstrapServer
from dsv4doctor.lab.pd.desks import DecodeDesk, DecodeServing, PrefillDesk
from dsv4doctor.lab.pd.links import (
    BootstrapThread,
    ControlChannel,
    Outbox,
    listening,
    start_receiver,
)
from dsv4doctor.lab.pd.wire import Handover
from dsv4doctor.lab.requests import Generation, Room
from dsv4doctor.lab.rounds import Desk, ServingEngine

_OnRound = Callable[[Sequence[Generation], float], None]


class PrefillServing(ServingEngine, ServerEngine, Protocol):
    """A prefill engine, as its server sees it."""

    @property
    def knows_abort(self) -> bool: ...

    @property
    def tells_of_thread_death(self) -> bool: ...


class PrefillRole:
    """The bootstrap server, the bootstrap thread, and the outbox behind the transfer workers."""

    def __init__(self, engine: PrefillServing, options: LaunchOptions, outbox: Outbox) -> None:
        self._engine = engine
        self._options = options
        self._outbox = outbox
        self._desk: PrefillDesk | None = None
        self._bootstrap: web.AppRunner | None = None
        self._thread: BootstrapThread | None = None

    def desk_of(self) -> DeskOf:
        def make(on_round: _OnRound) -> Desk:
            self._desk = PrefillDesk(
                self._engine,
                quiet_s=self._options.quiet_ms / 1000,
                most_running=self._options.max_running_requests,
                on_round=on_round,
            )
            return self._desk

        return make

    async def start(self, http_port: int) -> dict[str, object]:
        """Open the sockets; further fields of the ready line.

        Raises:
            DoctorError: if the bootstrap port is taken.
        """
        desk, loop = self._desk, asyncio.get_running_loop()
        assert desk is not None
        self._thread = BootstrapThread(
            self._outbox,
            lambda kind, room: _call(loop, desk.told, kind, room),
            knows_abort=self._engine.knows_abort,
            on_death=self._tell_of_death,
        )
        self._thread.start()
        ranks = self._thread.listener
        host, port = self._options.host, self._options.bootstrap_port
        server = BootstrapServer(
            rank_ip="127.0.0.1", rank_port=ranks.getsockname()[1], http_port=http_port
        )
        self._bootstrap = web.AppRunner(server.application(), access_log=None)
        await self._bootstrap.setup()
        site = web.TCPSite(self._bootstrap, host, port)
        try:
            await site.start()
        except OSError as error:
            raise DoctorError(
                f"cannot listen on {host}:{port}: {error.strerror or error}",
                "give another --disaggregation-bootstrap-port (0 takes any free one)",
            ) from error
        port = self._bootstrap.addresses[0][1]
        log(f"CommonKVBootstrapServer started successfully on {host}:{port}", rank="")
        return {"bootstrap_port": port}

    def _tell_of_death(self) -> None:
        if self._engine.tells_of_thread_death:
            log(
                "prefill bootstrap_thread died on engine_rank=0; requests to this rank will time "
                "out in KVPoll.Bootstrapping"
            )

    async def stop(self) -> None:
        if self._bootstrap is not None:
            await self._bootstrap.cleanup()


class DecodeRole:
    """The receiver of pages and the channel to the prefill engine."""

    def __init__(self, engine: DecodeServing) -> None:
        self._engine = engine
        self._desk: DecodeDesk | None = None
        self._receiver: socket.socket = listening("127.0.0.1")
        self._control: ControlChannel | None = None

    def desk_of(self) -> DeskOf:
        def make(on_round: _OnRound) -> Desk:
            self._desk = DecodeDesk(self._engine, tell=self._tell, on_round=on_round)
            return self._desk

        return make

    def _tell(self, room: Room, kind: str) -> None:
        assert self._control is not None
        self._control.tell(room, kind)

    async def start(self, http_port: int) -> dict[str, object]:
        """Start the threads; a decode server has nothing to add to its ready line."""
        desk, loop = self._desk, asyncio.get_running_loop()
        assert desk is not None

        def handed_over(batch: Sequence[Handover]) -> None:
            _call(loop, desk.handed_over, list(batch))

        def failed(room: int) -> None:
            log(
                "Decode handshake failed for request rank=0 "
                f"decode_req.req.bootstrap_room={room}: no bootstrap server answers"
            )
            _call(loop, desk.failed, room)

        start_receiver(self._receiver, handed_over)
        host, port = self._receiver.getsockname()
        self._control = ControlChannel(
            (host, port), lambda room: _call(loop, desk.registered, room), failed
        )
        return {}

    async def stop(self) -> None:
        self._receiver.close()


def _call(loop: asyncio.AbstractEventLoop, work: Callable[..., None], *arguments: object) -> None:
    """Have the event loop do `work`; nothing once it is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(work, *arguments)
