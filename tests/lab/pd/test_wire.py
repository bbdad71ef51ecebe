"""What goes over the socket comes out the same, times and owners included."""

from __future__ import annotations

import socket
import threading

import numpy as np
import pytest

from dsv4doctor.lab.pd.wire import Chunk, ClosedSocket, Handover, receive, receive_batch, send_batch
from dsv4doctor.lab.pools import PageOwner


def chunk(first: int, pages: int) -> Chunk:
    random = np.random.default_rng(first)
    return Chunk(
        first=first,
        start_ms=1.5 + first,
        main=random.integers(0, 256, (2, pages, 40), dtype=np.uint8),
        index_k=random.integers(0, 256, (2, pages, 24), dtype=np.uint8),
        owners={
            ("index_k", 1, first): PageOwner(digest=b"\x00\xff", logical_page=3, rid="other"),
            ("main", 0, first): None,
        },
    )


def test_a_batch_arrives_as_it_was_sent() -> None:
    batch = [
        Handover(room=2**61, rid="a", prompt_tokens=700, cached_tokens=256,
                 chunks=(chunk(0, 1), chunk(1, 2))),
        Handover(room=7, rid="b", prompt_tokens=10, cached_tokens=0, chunks=(chunk(0, 0),)),
    ]  # fmt: skip
    here, there = socket.socketpair()
    with here, there:
        there.settimeout(30)
        sender = threading.Thread(target=send_batch, args=(here, batch), daemon=True)
        sender.start()
        arrived = receive_batch(there)
        sender.join()
    assert [one.pages for one in arrived] == [3, 0]
    for sent, got in zip(batch, arrived, strict=True):
        assert (got.room, got.rid, got.prompt_tokens, got.cached_tokens) == (
            sent.room, sent.rid, sent.prompt_tokens, sent.cached_tokens,
        )  # fmt: skip
        for one, other in zip(sent.chunks, got.chunks, strict=True):
            assert (one.first, one.start_ms, one.owners) == (
                other.first, other.start_ms, other.owners,
            )  # fmt: skip
            assert (one.main == other.main).all()
            assert (one.index_k == other.index_k).all()


def test_an_end_in_the_middle_is_an_end() -> None:
    here, there = socket.socketpair()
    with there:
        here.sendall(b"\x05\x00")
        here.close()
        with pytest.raises(ClosedSocket):
            receive(there)
