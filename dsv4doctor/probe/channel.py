"""The way in and back: a UNIX socket a rank, one JSON object a line each way.

`status` and `drain` are answered here; what changes the probe is left for the scheduler, which
takes it between two steps (`Inbox.serve`). Nothing here ever waits for a reader longer than
`PATIENCE_S`, and nothing of SGLang waits for this.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsv4doctor import probe_protocol as protocol

PATIENCE_S = 5.0  # for a client that does not read
COMMAND_S = 10.0  # for a scheduler that takes no step
MOST_CLIENTS = 16
MOST_REQUEST_BYTES = 1 << 16

Handler = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(slots=True)
class Letter:
    """A command on its way to the scheduler."""

    request: Mapping[str, Any]
    answer: dict[str, Any] = field(default_factory=dict)
    answered: threading.Event = field(default_factory=threading.Event)
    is_withdrawn: bool = False


class Inbox:
    """Commands for the scheduler's thread."""

    def __init__(self, wait_s: float = COMMAND_S) -> None:
        self._letters: queue.SimpleQueue[Letter] = queue.SimpleQueue()
        self._wait_s = wait_s

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The scheduler's answer, from another thread."""
        letter = Letter(request)
        self._letters.put(letter)
        if letter.answered.wait(self._wait_s):
            return letter.answer
        letter.is_withdrawn = True
        return refusal(f"the scheduler took no step within {self._wait_s:g} s")

    @property
    def is_empty(self) -> bool:
        return self._letters.empty()

    def serve(self, handle: Handler) -> None:
        """Carry out what has come; on the scheduler's thread."""
        while not self._letters.empty():
            letter = self._letters.get()
            if letter.is_withdrawn:
                continue
            letter.answer = handled(handle, letter.request)
            letter.answered.set()


def accepted(**fields: Any) -> dict[str, Any]:
    return {"v": protocol.PROTOCOL, "ok": True, **fields}


def refusal(problem: str) -> dict[str, Any]:
    return {"v": protocol.PROTOCOL, "ok": False, "error": problem}


def handled(handle: Handler, request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return handle(request)
    except Exception as error:  # whatever a request does, the rank lives
        return refusal(f"{type(error).__name__}: {error}")


class Channel:
    """The socket of one rank."""

    def __init__(self, path: Path, handle: Handler) -> None:
        self.path, self._handle = path, handle
        self._clients = threading.Semaphore(MOST_CLIENTS)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short(path) as address:
            self._listener.bind(address)
        self._listener.listen(MOST_CLIENTS)
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name="dsv4doctor-socket", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if not self._clients.acquire(blocking=False):
                client.close()
                continue
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        try:
            # Reading may take as long as the client likes; only an answer has to be fetched.
            with client, client.makefile("rb") as lines:
                while line := lines.readline(MOST_REQUEST_BYTES):
                    answer = handled(self._answer, {"line": line})
                    client.settimeout(PATIENCE_S)
                    client.sendall(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
                    client.settimeout(None)
        except OSError:
            return
        finally:
            self._clients.release()

    def _answer(self, wrapped: Mapping[str, Any]) -> dict[str, Any]:
        try:
            request = json.loads(wrapped["line"])
        except ValueError:
            return refusal("a request is one JSON object on one line")
        if not isinstance(request, dict) or request.get("v") != protocol.PROTOCOL:
            return refusal(f"this probe speaks protocol {protocol.PROTOCOL}")
        return self._handle(request)


@contextlib.contextmanager
def _short(path: Path) -> Any:
    """An address of `path` that fits into the 107 bytes of a socket's name."""
    if len(os.fsencode(path)) < 100:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
