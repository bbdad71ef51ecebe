"""Where a person reads: notes and warnings on stderr, a rendered result on stdout."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 100  # columns of a rendering that goes to a file or a CI log


def stdout_console(*, no_color: bool = False) -> Console:
    """The console for results; plain and of fixed width when stdout is no terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(no_color=no_color or None, highlight=False, soft_wrap=False, width=width)


def stderr_console(*, no_color: bool = False) -> Console:
    """The console for progress and warnings."""
    from rich.console import Console

    return Console(stderr=True, no_color=no_color or None, highlight=False)


def say(text: str) -> None:
    """One line on stderr, in the program's name; a closed stderr is nobody's error."""
    try:
        print(f"dsv4doctor: {text}", file=sys.stderr, flush=True)
    except (BrokenPipeError, ValueError):
        return
