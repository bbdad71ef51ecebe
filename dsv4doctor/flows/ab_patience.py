"""Putting back is not interrupted by the first Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dsv4doctor.progress import Progress


@contextmanager
def patient(progress: Progress) -> Iterator[None]:
    """The first Ctrl-C inside is told that we are putting back; the second is obeyed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        if len(heard) > 1:
            raise KeyboardInterrupt
        progress.note("putting the deployment back first; interrupt again to leave it as it is")

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard:
        raise KeyboardInterrupt
