"""Where a person reads: notes and warnings on stderr, a rendered result on stdout."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 100  # columns of a rendering that goes to a file or a CI log
# Fewer show nothing of a table; more than a screen has only costs blanks.
_NARROWEST, _WIDEST = 20, 1000
SAID_CHARS = 4000  # more than any message of ours


def asked_width() -> int | None:
    """The columns that COLUMNS asks for, within reason; None where it says nothing usable."""
    told = os.environ.get("COLUMNS", "").strip()
    if not (told.isascii() and told.isdigit()) or int(told[:9]) == 0:
        return None
    return min(_WIDEST, max(_NARROWEST, int(told[:9])))


def result_width() -> int | None:
    """The width of a result: COLUMNS, else the terminal's own (None), else that of a pipe."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return asked_width() or (None if is_terminal else PIPE_WIDTH)


def stdout_console(*, no_color: bool = False) -> Console:
    """The console for results; plain when stdout is no terminal, and then as wide as COLUMNS says.

    A terminal of no columns (a serial line, some CI runners) is taken for a pipe.
    """
    from rich.console import Console

    console = Console(
        no_color=no_color or None, highlight=False, soft_wrap=False, width=result_width()
    )
    if console.width < 1:
        console.width = PIPE_WIDTH
    return console


def stderr_console(*, no_color: bool = False) -> Console:
    """The console for progress and warnings."""
    from rich.console import Console

    return Console(stderr=True, no_color=no_color or None, highlight=False)


def say(text: str) -> None:
    """One line on stderr, in the program's name; a stderr that is closed or full is nobody's
    error."""
    from dsv4doctor.safetext import one_line

    try:
        print(f"dsv4doctor: {one_line(text, SAID_CHARS)}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        return
