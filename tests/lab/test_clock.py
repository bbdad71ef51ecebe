"""Copies land in their own time, and nobody waits unless told to."""

from __future__ import annotations

import pytest

from dsv4doctor.lab.clock import CopyStream, TransferThreadDead, VirtualClock


def test_a_copy_lands_when_its_bytes_had_their_time() -> None:
    stream, clock, landed = CopyStream(100.0), VirtualClock(), []
    for name in ("first", "second"):
        stream.copy(150, lambda name=name: landed.append(name), clock.now_ms)
    event = stream.record(clock.now_ms)
    clock.work(2.0)
    stream.advance(clock.now_ms)
    assert landed == ["first"]
    clock.wait(event)
    assert clock.now_ms == 3.0
    stream.advance(clock.now_ms)
    assert landed == ["first", "second"]


def test_an_idle_stream_starts_when_it_is_asked() -> None:
    stream = CopyStream(100.0)
    stream.copy(100, lambda: None, 5.0)
    assert stream.record(5.0).at_ms == 6.0


def test_a_dead_stream_never_reaches_its_event() -> None:
    stream, clock, landed = CopyStream(100.0), VirtualClock(), []
    stream.copy(100, lambda: landed.append("late"), 0.0)
    stream.drop()
    stream.copy(100, lambda: landed.append("later"), 0.0)
    with pytest.raises(TransferThreadDead):
        clock.wait(stream.record(0.0))
    stream.advance(1e9)
    assert landed == []
