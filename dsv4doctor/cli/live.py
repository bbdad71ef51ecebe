"""What a person sees on stderr while a run goes on: a live panel, or a line now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dsv4doctor.cli.console import say, stderr_console

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from dsv4doctor.progress import Progress, ReproState

# Often enough to be watched; each refresh takes the interpreter from the load for about 2 ms.
REFRESHES_PER_SECOND = 4
# A CI log grows by one line in this many seconds.
PLAIN_INTERVAL_S = 5.0
_LABELS_SHOWN = 4


@contextmanager
def progress_display(*, enabled: bool, no_color: bool = False) -> Iterator[Progress]:
    """The display that fits: live on a terminal, plain lines elsewhere; notes alone if not enabled.

    Nothing goes to stdout. The live panel is gone when the context ends.
    """
    if not enabled:
        yield Notes()
    elif sys.stderr.isatty():
        with LivePanel(stderr_console(no_color=no_color)) as panel:
            yield panel
    else:
        yield PlainLines()


class Notes:
    """Tells notes and nothing else (`--no-progress`)."""

    def note(self, text: str) -> None:
        from dsv4doctor.safetext import one_line

        say(one_line(text))

    def update(self, state: object) -> None:
        """States are not shown."""


class PlainLines(Notes):
    """Tells notes at once and the state at most once every `interval_s`."""

    def __init__(
        self,
        *,
        interval_s: float = PLAIN_INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
        write: Callable[[str], None] = say,
    ) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._write = write
        self._told: float | None = None
        self._phase = ""

    def update(self, state: object) -> None:
        """Tell where the run stands, unless that was just told; a new phase is told at once."""
        from dsv4doctor.progress import ReproState

        if not isinstance(state, ReproState):
            return
        now = self._clock()
        is_due = self._told is None or now - self._told >= self._interval_s
        if is_due or state.phase != self._phase:
            self._told = now
            self._phase = state.phase
            self._write(state_line(state))


class LivePanel(Notes):
    """A panel that follows the state; notes scroll by above it."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._console = console
        self._state: ReproState | None = None
        self._lock = threading.Lock()
        self._live = Live(
            get_renderable=self._render,
            console=console,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> LivePanel:
        self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._live.stop()

    def note(self, text: str) -> None:
        from rich.text import Text

        from dsv4doctor.safetext import one_line

        self._console.print(Text(f"dsv4doctor: {one_line(text)}"))

    def update(self, state: object) -> None:
        """Show this state from the next refresh on."""
        from dsv4doctor.progress import ReproState

        if isinstance(state, ReproState):
            with self._lock:
                self._state = state

    def _render(self) -> RenderableType:
        with self._lock:
            state = self._state
        return "" if state is None else panel_of(state)


def panel_of(state: ReproState) -> RenderableType:
    """The live panel: a bar, the counts, the labels so far."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    head = Table.grid(padding=(0, 1), expand=True)
    head.add_column()
    head.add_column(ratio=1)
    head.add_column(justify="right")
    total = max(state.requests, 1)
    head.add_row(
        Text(state.phase, style="bold"),
        ProgressBar(total=total, completed=state.requests_done),
        Text(f"{state.requests_done}/{state.requests}  {_time_left(state)}"),
    )
    lines: list[Any] = [head, Text(_counts(state))]
    labels = _labels(state)
    if labels:
        lines.append(Text(labels, style="bold red" if state.corrupted_responses else ""))
    if state.quiet_s is not None and state.quiet_s >= 1:
        lines.append(
            Text(f"no token from any session for {state.quiet_s:.0f} s", style="bold magenta")
        )
    return Group(*lines)


def state_line(state: ReproState) -> str:
    """The state in one line, for logs."""
    parts = [
        f"{state.phase}: {state.requests_done}/{state.requests} requests",
        _counts(state),
        _labels(state),
        _time_left(state),
    ]
    return ", ".join(part for part in parts if part)


def _counts(state: ReproState) -> str:
    parts = [
        f"{state.sessions_done}/{state.sessions} {state.unit}s",
        f"{state.in_flight} in flight",
    ]
    if state.tokens_per_s is not None:
        parts.append(f"{state.tokens_per_s:,.0f} tok/s")
    if state.failures:
        parts.append(f"{state.failures} failed")
    if state.aborted_by_us:
        parts.append(f"{state.aborted_by_us} aborted by us")
    return ", ".join(parts)


def _labels(state: ReproState) -> str:
    if not state.responses:
        return ""
    said = f"{state.corrupted_responses} of {state.responses} corrupted"
    found = [(label, count) for label, count in state.by_label if label != "clean"]
    if not found:
        return said
    shown = ", ".join(f"{label} {count}" for label, count in found[:_LABELS_SHOWN])
    more = ", ..." if len(found) > _LABELS_SHOWN else ""
    return f"{said} ({shown}{more})"


def _time_left(state: ReproState) -> str:
    if state.left_s is None:
        return f"{_clock_time(state.elapsed_s)} so far"
    return f"{_clock_time(state.left_s)} left"


def _clock_time(seconds: float) -> str:
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
