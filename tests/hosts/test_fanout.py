"""Ctrl-C while many hosts are at work: what had ended is kept, what had not is ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from argv import argv_command

from dsv4doctor.hosts.fanout import FanOutInterrupted, fan_out
from dsv4doctor.hosts.local import LocalTransport
from dsv4doctor.hosts.transport import Command, Transport


def test_an_interrupted_fan_out_keeps_what_had_ended(tmp_path: Path) -> None:
    names: dict[int, str] = {}
    begun = tmp_path / "begun"

    def interrupt() -> None:
        """When one has ended and the other has begun."""
        while not begun.exists():
            time.sleep(0.02)
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)

    def connect(name: str) -> Transport:
        transport = LocalTransport()
        names[id(transport)] = name
        return transport

    def work(transport: Transport) -> str:
        if names[id(transport)] == "slow":
            return transport.run(Command(script=f"touch {begun}; sleep 60")).text
        answer = transport.run(argv_command(["echo", "done"])).text
        threading.Thread(target=interrupt, daemon=True).start()
        return answer

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt) as told:
        fan_out(["quick", "slow"], connect, work)
    assert isinstance(told.value, FanOutInterrupted)
    quick, slow = told.value.results
    assert (quick.host, quick.answer) == ("quick", "done\n")
    assert (slow.host, slow.answer) == ("slow", None)
    assert slow.problem is not None
    assert "interrupted" in slow.problem
    assert time.monotonic() - start < 50  # the sleep was cut short
