"""This machine, through the same runner as every other host."""

from __future__ import annotations

import os
import secrets
import selectors
import subprocess
import threading
import time

from dsv4doctor.hosts.runner import (
    GRACE_S,
    HEARTBEAT,
    HEARTBEAT_S,
    command_line,
    first_input,
    read_answer,
)
from dsv4doctor.hosts.transport import Command, CommandResult, CommandTimeout

READ_BYTES = 1 << 16


class LocalTransport:
    """Runs commands here; `name` is what reports call this machine."""

    def __init__(self, name: str = "localhost") -> None:
        self._name = name
        self._running: set[subprocess.Popen[bytes]] = set()

    @property
    def name(self) -> str:
        return self._name

    def run(self, command: Command) -> CommandResult:
        """The command's answer.

        Raises:
            CommandTimeout: if it outran `command.timeout_s`; its processes are ended.
            HostError: if no complete answer came.
        """
        nonce = secrets.token_hex(16)
        started = time.monotonic()
        # A session of its own, so that Ctrl-C reaches us first and the runner sees end of input.
        with subprocess.Popen(
            ["sh", "-c", command_line(command, nonce)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            self._running.add(process)
            writer = threading.Thread(target=_write, args=(process, first_input(command)))
            writer.start()
            try:
                out, err = self._drain(process, command, started)
            finally:
                self._running.discard(process)
                writer.join(timeout=GRACE_S)
                _close(process)
                _let_it_end(process)
        return read_answer(self._name, nonce, out, err, time.monotonic() - started)

    def _drain(
        self, process: subprocess.Popen[bytes], command: Command, started: float
    ) -> tuple[bytes, bytes]:
        assert process.stdout is not None
        assert process.stderr is not None
        streams = {process.stdout: bytearray(), process.stderr: bytearray()}
        last_beat = started
        with selectors.DefaultSelector() as selector:
            for stream in streams:
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(timeout=1.0):
                    chunk = os.read(key.fd, READ_BYTES)
                    streams[key.fileobj] += chunk  # type: ignore[index]
                    if not chunk:
                        selector.unregister(key.fileobj)
                now = time.monotonic()
                if now - last_beat > HEARTBEAT_S:
                    _write(process, HEARTBEAT)
                    last_beat = now
                if now - started > command.timeout_s:
                    raise CommandTimeout(
                        f"{self._name}: no answer within {command.timeout_s:g} s",
                        "give it more time, or look at what keeps the machine busy",
                    )
        return bytes(streams[process.stdout]), bytes(streams[process.stderr])

    def close(self) -> None:
        """Ends what still runs: the end of its input is its runner's sign."""
        for process in tuple(self._running):
            _close(process)


def _write(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(data)
        process.stdin.flush()
    except (BrokenPipeError, ValueError):
        return  # it ended already; what it said tells why


def _close(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    try:
        process.stdin.close()
    except BrokenPipeError:
        return


def _let_it_end(process: subprocess.Popen[bytes]) -> None:
    """End of input makes the runner end its command; a runner that does not is killed."""
    try:
        process.wait(timeout=GRACE_S + 4)
    except subprocess.TimeoutExpired:
        process.kill()
