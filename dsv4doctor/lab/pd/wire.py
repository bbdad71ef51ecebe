"""What goes over the sockets between a prefill and a decode engine: a JSON header, then raw bytes.

Control (decode to prefill): `hello` with the address of the receiver, `register` (a request waits
here under this room), `received`, `done`, `abort`. Data (prefill to decode): one `batch` a prefill,
then its chunks in order. Times are the prefill engine's virtual ones and travel with the pages.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsv4doctor.lab.layouts import Bytes
from dsv4doctor.lab.pools import PageOwner

_LENGTHS = struct.Struct("<IQ")

HELLO, REGISTER, RECEIVED, DONE, ABORT = "hello", "register", "received", "done", "abort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Pages of one request as a transfer worker read them: the logical pages from `first` on.

    The worker began at `start_ms` and reads pool by pool, layer by layer, page by page: main pages
    first, as the buffers are registered. `main` and `index_k` are [layers, pages, bytes]; `owners`
    names whose bytes a page holds where they are not the request's own, by (pool, layer, logical
    page), None for a page that was never written.
    """

    first: int
    start_ms: float
    main: Bytes
    index_k: Bytes
    owners: dict[tuple[str, int, int], PageOwner | None]

    @property
    def pages(self) -> int:
        return int(self.main.shape[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """One request of a prefill batch on its way: what the decode engine needs to go on."""

    room: int
    rid: str
    prompt_tokens: int
    cached_tokens: int
    chunks: tuple[Chunk, ...]

    @property
    def pages(self) -> int:
        return sum(chunk.pages for chunk in self.chunks)


class ClosedSocket(Exception):
    """The other side is gone."""


def send(connection: socket.socket, header: dict[str, Any], *buffers: bytes | memoryview) -> None:
    """One message.

    Raises:
        OSError: if the other side is gone.
    """
    text = json.dumps(header).encode()
    connection.sendall(_LENGTHS.pack(len(text), sum(len(buffer) for buffer in buffers)) + text)
    for buffer in buffers:
        connection.sendall(buffer)


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytearray]:
    """The next message.

    Raises:
        ClosedSocket: if there is none any more.
    """
    text_length, size = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
    header: dict[str, Any] = json.loads(_exactly(connection, text_length))
    return header, _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        try:
            count = connection.recv_into(view)
        except OSError as error:
            raise ClosedSocket from error
        if count == 0:
            raise ClosedSocket
        view = view[count:]
    return data


def send_batch(connection: socket.socket, batch: Sequence[Handover]) -> None:
    """A whole prefill batch, chunk by chunk."""
    send(connection, {"kind": "batch", "requests": [_request_header(one) for one in batch]})
    for handover in batch:
        for chunk in handover.chunks:
            buffers = (_raw(chunk.main), _raw(chunk.index_k))
            send(connection, _chunk_header(chunk), *buffers)


def receive_batch(connection: socket.socket) -> list[Handover]:
    """What `send_batch` sent.

    Raises:
        ClosedSocket: if the prefill engine is gone.
    """
    header, _ = receive(connection)
    batch = []
    for request in header["requests"]:
        count = request.pop("chunks")
        chunks = tuple(_chunk(*receive(connection)) for _ in range(count))
        batch.append(Handover(**request, chunks=chunks))
    return batch


def _raw(pages: Bytes) -> memoryview:
    flat: memoryview = np.ascontiguousarray(pages).reshape(-1).data
    return flat


def _request_header(handover: Handover) -> dict[str, Any]:
    return {
        "room": handover.room,
        "rid": handover.rid,
        "prompt_tokens": handover.prompt_tokens,
        "cached_tokens": handover.cached_tokens,
        "chunks": len(handover.chunks),
    }


def _chunk_header(chunk: Chunk) -> dict[str, Any]:
    return {
        "first": chunk.first,
        "start_ms": chunk.start_ms,
        "main": chunk.main.shape,
        "index_k": chunk.index_k.shape,
        "owners": [[*place, _owner_fields(owner)] for place, owner in chunk.owners.items()],
    }


def _chunk(header: dict[str, Any], payload: bytearray) -> Chunk:
    main_shape, index_shape = tuple(header["main"]), tuple(header["index_k"])
    split = int(np.prod(main_shape))
    data = np.frombuffer(payload, dtype=np.uint8)
    return Chunk(
        first=header["first"],
        start_ms=header["start_ms"],
        main=data[:split].reshape(main_shape),
        index_k=data[split:].reshape(index_shape),
        owners={
            (pool, layer, page): _owner(fields) for pool, layer, page, fields in header["owners"]
        },
    )


def _owner_fields(owner: PageOwner | None) -> list[Any] | None:
    return None if owner is None else [owner.digest.hex(), owner.logical_page, owner.rid]


def _owner(fields: list[Any] | None) -> PageOwner | None:
    if fields is None:
        return None
    digest, page, rid = fields
    return PageOwner(digest=bytes.fromhex(digest), logical_page=page, rid=rid)
