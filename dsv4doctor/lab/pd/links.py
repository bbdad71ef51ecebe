"""The threads at the ends of the two sockets between a prefill and a decode engine.

Control goes from the decode engine's channel to the prefill engine's bootstrap thread, which is one
thread for all requests: when it dies, nobody is told, and no request gets past it. Data goes from
the prefill engine's outbox to the decode engine's receiver.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

from dsv4doctor.lab.pd.wire import (
    ABORT,
    HELLO,
    REGISTER,
    ClosedSocket,
    Handover,
    receive,
    receive_batch,
    send,
    send_batch,
)
from dsv4doctor.lab.requests import Room

_CONNECT_S = 10.0
_RANK_QUERY = "prefill_dp_rank=0&prefill_cp_rank=0&target_tp_rank=0&target_pp_rank=0"


class UnknownMessage(Exception):
    """A message that the bootstrap thread has no branch for."""


def listening(host: str) -> socket.socket:
    """A socket on a free port."""
    listener = socket.socket()
    listener.bind((host, 0))
    listener.listen(16)
    return listener


class Outbox:
    """Sends batches to the decode engine that said hello last, in order, in a thread."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[list[Handover]] = queue.SimpleQueue()
        self._address: tuple[str, int] | None = None
        self._connection: socket.socket | None = None
        threading.Thread(target=self._run, name="transfer", daemon=True).start()

    def put(self, batch: list[Handover]) -> None:
        self._queue.put(batch)

    def connect(self, address: tuple[str, int]) -> None:
        """Where the decode engine receives. Called before any of its requests is served."""
        if address != self._address:
            self._address = address
            self._connection = socket.create_connection(address, timeout=_CONNECT_S)
            self._connection.settimeout(None)

    def _run(self) -> None:
        while True:
            batch = self._queue.get()
            # A decode engine that is gone needs no pages: its requests are gone with it.
            with contextlib.suppress(OSError):
                if self._connection is not None:
                    send_batch(self._connection, batch)


class BootstrapThread:
    """The prefill engine's bootstrap thread; `told` gets (kind, room) of every message.

    Without `knows_abort` it has no branch for ABORT, and dies of the first one with nothing but
    Python's own traceback; `on_death` is for releases that say more.
    """

    def __init__(
        self,
        outbox: Outbox,
        told: Callable[[str, int], None],
        *,
        knows_abort: bool,
        on_death: Callable[[], None],
    ) -> None:
        self.listener = listening("127.0.0.1")
        self._outbox = outbox
        self._told = told
        self._knows_abort = knows_abort
        self._on_death = on_death
        # Kept open when the thread dies: the other side goes on writing and notices nothing.
        self._connections: list[socket.socket] = []

    def start(self) -> None:
        # Its name is Python's own, `Thread-N (bootstrap_thread)`, as in SGLang.
        threading.Thread(target=self.bootstrap_thread, daemon=True).start()

    def bootstrap_thread(self) -> None:
        try:
            while True:
                connection, _ = self.listener.accept()
                self._connections.append(connection)
                with contextlib.suppress(ClosedSocket):
                    while True:
                        self._take(receive(connection)[0])
        except UnknownMessage:
            self._on_death()
            raise

    def _take(self, message: dict[str, Any]) -> None:
        kind = str(message["kind"])
        if kind == HELLO:
            host, port = message["receiver"]
            self._outbox.connect((str(host), int(port)))
        elif kind == ABORT and not self._knows_abort:
            raise UnknownMessage(f"unexpected message {kind.upper()} for room {message['room']}")
        else:
            self._told(kind, int(message["room"]))


class ControlChannel:
    """The decode engine's word to prefill engines, in order, in a thread.

    `on_registered` and `on_failed` are called there with the room's number.
    """

    def __init__(
        self,
        receiver: tuple[str, int],
        on_registered: Callable[[int], None],
        on_failed: Callable[[int], None],
    ) -> None:
        self._receiver = receiver
        self._on_registered = on_registered
        self._on_failed = on_failed
        self._queue: queue.SimpleQueue[tuple[Room, str]] = queue.SimpleQueue()
        self._peers: dict[tuple[str, int], socket.socket] = {}
        threading.Thread(target=self._run, name="control", daemon=True).start()

    def tell(self, room: Room, kind: str) -> None:
        self._queue.put((room, kind))

    def _run(self) -> None:
        while True:
            room, kind = self._queue.get()
            try:
                send(self._peer(room), {"kind": kind, "room": room.number})
            except (OSError, ValueError, KeyError):
                self._peers.pop((room.host, room.port), None)
                if kind == REGISTER:
                    self._on_failed(room.number)
                continue
            if kind == REGISTER:
                self._on_registered(room.number)

    def _peer(self, room: Room) -> socket.socket:
        address = (room.host, room.port)
        if address not in self._peers:
            url = f"http://{room.host}:{room.port}/route?{_RANK_QUERY}"
            with urllib.request.urlopen(url, timeout=_CONNECT_S) as answer:
                rank = json.load(answer)
            peer = socket.create_connection(
                (rank["rank_ip"], int(rank["rank_port"])), timeout=_CONNECT_S
            )
            peer.settimeout(None)
            send(peer, {"kind": HELLO, "receiver": list(self._receiver)})
            self._peers[address] = peer
        return self._peers[address]


def start_receiver(
    listener: socket.socket, handed_over: Callable[[Sequence[Handover]], None]
) -> None:
    """Start the decode engine's receiver; `handed_over` gets every batch that comes."""

    def receiver_thread() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=read, args=(connection,), daemon=True).start()

    def read(connection: socket.socket) -> None:
        with contextlib.suppress(ClosedSocket):
            while True:
                handed_over(receive_batch(connection))

    threading.Thread(target=receiver_thread, name="receiver", daemon=True).start()
