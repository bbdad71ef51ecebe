"""What runs beside the ranks: finds their probes' sockets and passes questions and answers.

Imported here and sent to hosts as text, so it imports the standard library alone, runs on Python
3.8 and prints nothing but its answer.
"""

from __future__ import annotations

import glob
import json
import os
import socket
import sys
from typing import Any

# Longer than a scheduler may take to come to a command between two of its steps.
_ANSWER_S = 15.0
_MOST_BYTES = 64 << 20


def relay(job: dict[str, Any]) -> dict[str, Any]:
    """The answers to `job["asks"]` (pairs of a socket and a request, or null for all sockets).

    `job["folders"]` are patterns of folders that may hold sockets. The result has `sockets` and, in
    the order of the asks, `answers`: the rank's own, or an object with `gone`: why there is none.
    """
    found = sockets_in(job.get("folders", []))
    asks: list[tuple[str, Any]] = []
    for path, request in job.get("asks", ()):
        asks += [(path, request)] if path is not None else [(each, request) for each in found]
    asked = [path for path, _ in asks]
    return {"sockets": found, "asked": asked, "answers": [_ask(*each) for each in asks]}


def sockets_in(patterns: list[str]) -> list[str]:
    """Paths of all sockets in the folders; `~`, variables and wildcards are understood."""
    found: list[str] = []
    for pattern in patterns:
        folder = os.path.expanduser(os.path.expandvars(pattern))
        # A folder of sockets, or one that `probe install` was given: they are in its `run`.
        found += glob.glob(os.path.join(folder, "*.sock"))
        found += glob.glob(os.path.join(folder, "run", "*.sock"))
    return sorted(set(found))


def _ask(path: str, request: Any) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(_ANSWER_S)
            place = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
            try:  # a socket's name holds 107 bytes; this way every path is short enough
                client.connect(f"/proc/self/fd/{place}/{os.path.basename(path)}")
            finally:
                os.close(place)
            client.sendall(json.dumps(request).encode() + b"\n")
            line = _line(client)
        answer: dict[str, Any] = json.loads(line)
    except ConnectionRefusedError:
        return {"gone": "nobody listens there any more", "is_old": True}
    except (OSError, ValueError) as error:
        return {"gone": f"{type(error).__name__}: {error}"}
    return answer


def _line(client: socket.socket) -> bytes:
    data = bytearray()
    while not data.endswith(b"\n"):
        part = client.recv(1 << 20)
        if not part:
            raise OSError("the probe hung up")
        data += part
        if len(data) > _MOST_BYTES:
            raise OSError("the answer has no end")
    return bytes(data)


def main(job: str) -> None:
    """Print the answer to `job`, a JSON text, as JSON."""
    json.dump(relay(json.loads(job)), sys.stdout)
