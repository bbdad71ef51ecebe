"""Ctrl-C while the command line is still being imported: one line and code 130, no traceback.

Importing takes some tenths of a second, and nothing is under way yet that could be put in order.
`app.CommandGroup` takes over when it runs a command.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

# What `sys.argv[0]` is while this is imported: the script, or `python -m dsv4doctor`.
_OURS = frozenset({"dsv4doctor", "dsv4doctor.exe", "-m", "__main__.py"})
_INTERRUPTED = 130


def leave_quietly_on_interrupt() -> None:
    """Do so from now on, if this process is ours and nobody else has set what SIGINT does."""
    program = os.path.basename(sys.argv[0]) if sys.argv else ""
    is_main = threading.current_thread() is threading.main_thread()
    untouched = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if program in _OURS and is_main and untouched:
        signal.signal(signal.SIGINT, _leave)


def interrupt_as_usual() -> None:
    """Let SIGINT raise KeyboardInterrupt again, unless somebody else has set what it does."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):  # nobody is left to tell
        os.write(2, b"dsv4doctor: interrupted\n")
    os._exit(_INTERRUPTED)
