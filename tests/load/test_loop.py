"""The gathering loop: nothing is lost or held back for longer than a turn, and turns are few."""

from __future__ import annotations

import asyncio
import os
import socket
import time

from dsv4doctor.load.loop import TURN_S, GatheringSelector, new_loop, run


def test_a_turn_takes_what_came_meanwhile() -> None:
    """Many sockets that become readable one by one within a turn are read in few turns."""
    selector = GatheringSelector()
    pairs = [socket.socketpair() for _ in range(64)]
    for ours, _ in pairs:
        selector.register(ours, 1)
    turns, seen = 0, set()
    for ours, theirs in pairs:
        theirs.send(b"x")
        if not seen:
            selector.select(1.0)  # the first wait sets the clock
        seen.add(ours)
    while seen and turns < 64:
        found = selector.select(1.0)
        turns += 1
        for key, _ in found:
            key.fileobj.recv(1)
            seen.discard(key.fileobj)
    assert not seen
    assert turns <= 2
    selector.close()
    for pair in pairs:
        for each in pair:
            each.close()


def test_waits_end_no_sooner_than_a_turn_apart() -> None:
    selector = GatheringSelector()
    ours, theirs = socket.socketpair()
    selector.register(ours, 1)
    theirs.send(b"x")
    selector.select(1.0)
    start = time.perf_counter()
    selector.select(1.0)
    assert time.perf_counter() - start >= TURN_S * 0.5
    # What has to be looked at now is looked at now, and a short wait stays short.
    assert selector.select(0)
    for each in (ours, theirs, selector):
        each.close()


def test_the_loop_keeps_its_timers_and_its_wakeups() -> None:
    async def work() -> list[str]:
        loop = asyncio.get_running_loop()
        told: list[str] = []
        reader, writer = os.pipe()
        loop.add_reader(reader, lambda: told.append(os.read(reader, 1).decode()))
        loop.call_later(0.02, os.write, writer, b"p")
        loop.run_in_executor(None, loop.call_soon_threadsafe, told.append, "t")
        await asyncio.sleep(0.1)
        while len(told) < 2:
            await asyncio.sleep(0.01)
        loop.remove_reader(reader)
        os.close(reader)
        os.close(writer)
        return sorted(told)

    assert run(work()) == ["p", "t"]


def test_every_driver_gets_a_loop_of_its_own() -> None:
    one, two = new_loop(), new_loop()
    assert one is not two
    one.close()
    two.close()
