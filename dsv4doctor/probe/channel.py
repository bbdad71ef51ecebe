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
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsv4doctor import probe_protocol as protocol

PATIENCE_S = 5.0  # for a client that does not read
COMMAND_S = 10.0  # for a scheduler that takes no step
MOST_CLIENTS = 16
MOST_REQUEST_BYTES = 1 << 16
MOST_NAMESAKES = 100
RETRY_S = 0.1
BREATH_RECORDS = 32
BREATH_S = 1e-4

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


def _unheard(_ms: float) -> None: ...


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
    """The socket of one rank, in a folder of this user's. `spent` is told how many ms of processor
    time an answer took: the interpreter is the scheduler's too."""

    def __init__(
        self, folder: Path, name: str, handle: Handler, spent: Callable[[float], None] = _unheard
    ) -> None:
        self._handle, self._spent = handle, spent
        self._clients = threading.Semaphore(MOST_CLIENTS)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.path = bind_free(self._listener, folder, name)
        self._listener.listen(MOST_CLIENTS)
        self._closed = False
        # A child that this process forks must not keep the socket alive when this process dies.
        os.register_at_fork(after_in_child=self._listener.close)
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
            except OSError:  # closed, or the process has no descriptor left just now
                time.sleep(0 if self._closed else RETRY_S)
                continue
            if not self._clients.acquire(blocking=False):
                client.close()
                continue
            try:
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()
            except RuntimeError:  # no thread left either
                self._clients.release()
                client.close()

    def _talk(self, client: socket.socket) -> None:
        try:
            # Reading may take as long as the client likes; only an answer has to be fetched.
            with client, client.makefile("rb") as lines:
                while line := lines.readline(MOST_REQUEST_BYTES):
                    began = time.thread_time()
                    text = encoded(handled(self._answer, {"line": line}))
                    self._spent((time.thread_time() - began) * 1e3)
                    client.settimeout(PATIENCE_S)
                    client.sendall(text)
                    client.settimeout(None)
        except Exception:  # whoever it was is gone, or gave what cannot be answered
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


def bind_free(listener: socket.socket, folder: Path, name: str) -> Path:
    """Bind to `name`.sock in `folder`, for this user alone; where a process that lives has that
    name (of another container, with a process id of its own), to the next free one.

    Raises:
        OSError: if that cannot be.
    """
    for number in range(1, MOST_NAMESAKES + 1):
        path = folder / (f"{name}.sock" if number == 1 else f"{name}-{number}.sock")
        if path.exists() or path.is_symlink():
            if _is_answered(path):
                continue
            path.unlink(missing_ok=True)  # left by a process that has died
        with _short(path) as address:
            listener.bind(address)
        path.chmod(0o600)  # before anybody can connect: it does not listen yet
        return path
    raise OSError(f"{folder} has {MOST_NAMESAKES} sockets of that name: {name}")


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        try:
            with _short(path) as address:
                client.connect(address)
        except TimeoutError:
            return True  # too busy, but alive
        except OSError:
            return False
    return True


def encoded(answer: Mapping[str, Any]) -> bytes:
    """One line. Records are encoded one by one, and the interpreter lent in between."""
    pieces = []
    for place, record in enumerate(answer.get("records") or ()):
        pieces.append(json.dumps(record, separators=(",", ":")))
        if place % BREATH_RECORDS == BREATH_RECORDS - 1:
            time.sleep(BREATH_S)
    rest = {name: value for name, value in answer.items() if name != "records"}
    text = json.dumps(rest, separators=(",", ":"))
    if "records" in answer:
        text = f'{text[:-1]},"records":[{",".join(pieces)}]}}'
    return text.encode() + b"\n"


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
