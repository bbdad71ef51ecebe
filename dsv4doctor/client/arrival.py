"""When bytes came, by the kernel's clock: a late event loop then spoils no measurement.

A reader that stamps the time when its turn comes adds its own lateness to every gap; on a busy
client that is milliseconds. Linux stamps what a socket receives as it arrives (SO_TIMESTAMPNS, for
TCP too: the stamp of the last bytes that a read took). What is left of lateness shows only where
two chunks lay in the kernel together and are read as one.

Source: Documentation/networking/timestamping.rst of Linux, `tcp_recv_timestamp` in net/ipv4/tcp.c.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
import weakref
from typing import Any

# The option and its control message have the same number; `socket` has no name for it before 3.15.
_SO_TIMESTAMPNS = getattr(socket, "SO_TIMESTAMPNS", 35)
_TIMESPEC = struct.Struct("@ll")
_ROOM = socket.CMSG_SPACE(_TIMESPEC.size) if hasattr(socket, "CMSG_SPACE") else 0
# Two 64-bit words; elsewhere the layout is another one.
IS_STAMPED = sys.platform == "linux" and _TIMESPEC.size == 16 and _ROOM > 0

# Asked for 256 KiB, as asyncio does, Python gets them from the kernel and gives them back for every
# read of a few hundred bytes: 40 us a read instead of 10. What is left is read in the next turn.
_MOST_BYTES = 64 * 1024

# A stamp that is older, or that lies ahead, was made before somebody set the clock.
_OLDEST_NS = 60 * 1_000_000_000


class StampedSocket(socket.socket):
    """A stream socket that keeps the kernel's stamp of what was last read (`stamp_ns`; 0: none)."""

    stamp_ns = 0

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        data, ancillary, _, _ = self.recvmsg(min(bufsize, _MOST_BYTES), _ROOM, flags)
        if ancillary:
            self._keep(ancillary)
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        view = memoryview(buffer)[:nbytes] if nbytes else buffer
        count, ancillary, _, _ = self.recvmsg_into([view], _ROOM, flags)
        if ancillary:
            self._keep(ancillary)
        return count

    def _keep(self, ancillary: list[tuple[int, int, bytes]]) -> None:
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) == 16:
                seconds, nanoseconds = _TIMESPEC.unpack(data)
                self.stamp_ns = seconds * 1_000_000_000 + nanoseconds


class StampedSockets:
    """Makes sockets that stamp, and finds one again by its descriptor."""

    def __init__(self) -> None:
        self._open: weakref.WeakValueDictionary[int, StampedSocket] = weakref.WeakValueDictionary()

    def make(self, address: Any) -> socket.socket:
        """A socket for `address` (of `getaddrinfo`); a plain one where there are no stamps."""
        family, kind, protocol = address[:3]
        if not IS_STAMPED:
            return socket.socket(family, kind, protocol)
        stamped = StampedSocket(family, kind, protocol)
        try:
            stamped.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        except OSError:
            stamped.close()
            return socket.socket(family, kind, protocol)
        self._open[stamped.fileno()] = stamped
        return stamped

    def find(self, descriptor: int) -> StampedSocket | None:
        """The open socket with this descriptor, if it is one of ours."""
        return self._open.get(descriptor)


def arrived_at(source: StampedSocket | None, now: float) -> float:
    """When what was last read from `source` had arrived; `now` where that is not known.

    `now` is this moment on the scale of `time.perf_counter()`, and so is the answer.
    """
    if source is None or not source.stamp_ns:
        return now
    age_ns = time.time_ns() - source.stamp_ns
    return now - age_ns / 1e9 if 0 <= age_ns <= _OLDEST_NS else now
