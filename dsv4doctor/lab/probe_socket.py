"""The probe's UNIX socket in a lab process: one JSON object a line in, one a line out.

Threads of its own, so that neither the engine nor another client ever waits for one that asks and
does not read: that one is dropped.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from pathlib import Path

from dsv4doctor.errors import DoctorError
from dsv4doctor.lab.probe_state import LabProbe

FOLDER_VARIABLE = "DSV4DOCTOR_PROBE_DIR"
# How long a client may leave an answer unread.
_UNREAD_S = 5.0
_BACKLOG = 16
_LONGEST_REQUEST = 1 << 16


class ProbeSocket:
    """Listens for one probe until it is closed; a context manager."""

    def __init__(self, probe: LabProbe, folder: Path) -> None:
        self._probe = probe
        name = f"{probe.rank.role}-dp0-tp0-pp0-{os.getpid()}"
        self.path = folder / f"{name}.sock"
        probe.socket_path = self.path
        probe.file_path = folder / f"{name}.jsonl"
        probe.on_retire = self.close
        self._listener = _listen(self.path)
        threading.Thread(target=self._accept, name="probe", daemon=True).start()

    def __enter__(self) -> ProbeSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            lines = client.makefile("rb")
            while line := lines.readline(_LONGEST_REQUEST):
                answer = self._answer(line)
                # Set for the answer alone: a client may be silent as long as it likes.
                client.settimeout(_UNREAD_S)
                client.sendall(json.dumps(answer).encode() + b"\n")
                client.settimeout(None)

    def _answer(self, line: bytes) -> dict[str, object]:
        try:
            request = json.loads(line)
        except ValueError:
            request = None
        return self._probe.answer(request)

    def close(self) -> None:
        """Listen no more; the socket and the records' file are gone."""
        self._probe.close()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for path in (self.path, self._probe.file_path):
            if path is not None:
                path.unlink(missing_ok=True)


def _listen(path: Path) -> socket.socket:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise DoctorError(
            f"the probe's socket {path} cannot be made: {error.strerror or error}",
            f"name a shorter or another folder with {FOLDER_VARIABLE}",
        ) from error
    return listener
