"""How far a scan is, on stderr: a line that is redrawn on a terminal, notes as plain lines
elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from dsv4doctor.cli.console import say
from dsv4doctor.units import many

if TYPE_CHECKING:
    from dsv4doctor.flows.scan import ScanState

_MIB = 1 << 20


class ScanProgress:
    """A `Progress`; silent but for notes when stderr is no terminal or it is disabled."""

    def __init__(self, *, enabled: bool) -> None:
        self._live = enabled and sys.stderr is not None and sys.stderr.isatty()
        self._drawn = False

    def __enter__(self) -> ScanProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._clear()

    def note(self, text: str) -> None:
        """One line for a person."""
        self._clear()
        say(text)

    def update(self, state: object) -> None:
        """Redraw the line; `state` is a `ScanState`."""
        if not self._live:
            return
        print(f"\r\x1b[2K{_line(state)}", end="", file=sys.stderr, flush=True)  # type: ignore[arg-type]
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
            self._drawn = False


def _line(state: ScanState) -> str:
    read = state.bytes_read / _MIB
    pace = read / state.elapsed_s if state.elapsed_s else 0.0
    of_total = f" of {state.bytes_total / _MIB:,.0f}" if state.bytes_total else ""
    left = f", {state.left_s:,.0f} s left" if state.left_s is not None else ""
    return (
        f"scan: {read:,.0f}{of_total} MiB, {pace:,.1f} MiB/s, {many(state.records, 'response')},"
        f" {state.corrupted:,} corrupted{left}"
    )
