"""Standard streams that no closing or odd terminal turns into an error: the one place for it.

A reader that has gone (`| head`) hides nothing of what is found: what is still written goes
nowhere, the command does its work, and its exit code is that of its findings.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Unread(io.FileIO):
    """A stream's descriptor; once its reader has gone, the null device is in its place."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            discard(self.fileno())
            return memoryview(data).nbytes


def discard(descriptor: int) -> None:
    """What is still to be written there goes nowhere: the interpreter's last flush stays quiet."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


def make_streams_safe() -> None:
    """Closed streams become the null device, and so does a pipe whose reader goes; characters that
    a terminal lacks become escapes."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # lives as long as we
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # lives as long as we
        elif stream is getattr(sys, f"__{name}__"):  # nobody else (a test) is listening there
            stream = _outliving(stream)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, stream)


def _outliving(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """`stream` over again, as it was opened, on a descriptor that outlives its reader."""
    stream.flush()
    descriptor = _Unread(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        # Unbuffered (PYTHONUNBUFFERED) stays unbuffered.
        descriptor if stream.write_through else io.BufferedWriter(descriptor),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
