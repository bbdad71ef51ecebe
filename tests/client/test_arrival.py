"""The kernel's stamp of what was read, of plain sockets and through the HTTP client."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from dsv4doctor.client.arrival import IS_STAMPED, StampedSockets, arrived_at
from dsv4doctor.client.http import HttpClient
from dsv4doctor.target import parse_endpoint

pytestmark = pytest.mark.skipif(not IS_STAMPED, reason="this system stamps no stream sockets")

# The two clocks are read one after the other, and the stamp is made inside the sending.
SLACK_S = 0.005
LATE_S = 0.2


def pair() -> tuple[StampedSockets, socket.socket, socket.socket]:
    """The maker, a stamped socket, and its peer."""
    sockets = StampedSockets()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = sockets.make((socket.AF_INET, socket.SOCK_STREAM, 0, "", listener.getsockname()))
        ours.connect(listener.getsockname())
        theirs, _ = listener.accept()
    return sockets, ours, theirs


@pytest.mark.parametrize("reads_into", [False, True], ids=["recv", "recv_into"])
def test_a_late_reader_learns_when_the_bytes_came(reads_into: bool) -> None:
    sockets, ours, theirs = pair()
    with ours, theirs:
        before = time.perf_counter()
        theirs.sendall(b"token")
        after = time.perf_counter()
        time.sleep(LATE_S)
        if reads_into:
            buffer = bytearray(16)
            assert ours.recv_into(buffer) == 5
            assert buffer[:5] == b"token"
        else:
            assert ours.recv(16) == b"token"
        now = time.perf_counter()
        arrived = arrived_at(sockets.find(ours.fileno()), now)
        assert before - SLACK_S <= arrived <= after + SLACK_S
        assert now - arrived >= LATE_S - SLACK_S


def test_recv_into_reads_no_more_than_was_asked_for() -> None:
    _, ours, theirs = pair()
    with ours, theirs:
        theirs.sendall(b"abcdef")
        buffer = bytearray(6)
        assert ours.recv_into(buffer, 2) == 2
        assert buffer == b"ab\0\0\0\0"


def test_without_a_stamp_it_is_now() -> None:
    sockets, ours, theirs = pair()
    with ours, theirs:
        assert arrived_at(None, 7.0) == 7.0
        assert arrived_at(sockets.find(ours.fileno()), 7.0) == 7.0  # nothing was read yet
        assert sockets.find(-1) is None


def test_a_stamp_from_before_the_clock_was_set_is_not_believed() -> None:
    sockets, ours, theirs = pair()
    with ours, theirs:
        source = sockets.find(ours.fileno())
        assert source is not None
        source.stamp_ns = time.time_ns() + 10**12
        assert arrived_at(source, 7.0) == 7.0
        source.stamp_ns = time.time_ns() - 10**12
        assert arrived_at(source, 7.0) == 7.0


class Chunks(threading.Thread):
    """Answers one request: the head with a chunk, and another chunk when told to."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.go = threading.Event()
        self.sent = threading.Event()
        self.times = (0.0, 0.0)

    def run(self) -> None:
        connection, _ = self._listener.accept()
        with connection, self._listener:
            connection.recv(1 << 16)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
            )
            self.go.wait(30)
            before = time.perf_counter()
            connection.sendall(b"6\r\nsecond\r\n0\r\n\r\n")
            self.times = (before, time.perf_counter())
            self.sent.set()
            connection.recv(1)


@pytest.fixture
def chunks() -> Iterator[Chunks]:
    server = Chunks()
    server.start()
    yield server
    server.go.set()
    server.join(30)


def test_a_chunk_is_stamped_though_the_event_loop_was_late(chunks: Chunks) -> None:
    async def read() -> tuple[float, float]:
        async with HttpClient(parse_endpoint(f"127.0.0.1:{chunks.port}")) as http:
            reply = await http.open("POST", f"http://127.0.0.1:{chunks.port}/", content=b"{}")
            parts = reply.chunks()
            assert await anext(parts) == b"first"
            chunks.go.set()
            assert chunks.sent.wait(30)  # the loop stands still meanwhile
            time.sleep(LATE_S)
            assert await anext(parts) == b"second"
            now = time.perf_counter()
            arrived = reply.arrived(now)
            await reply.close()
            return now, arrived

    now, arrived = asyncio.run(read())
    before, after = chunks.times
    assert before - SLACK_S <= arrived <= after + SLACK_S
    assert now - arrived >= LATE_S - SLACK_S
