"""What a person sees on stderr while an experiment runs: arms, rates, evidence, what is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dsv4doctor.cli.console import stderr_console
from dsv4doctor.cli.live import LivePanel, Notes, PlainLines, panel_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dsv4doctor.flows.ab_state import AbState
    from dsv4doctor.progress import Progress


@contextmanager
def ab_display(*, enabled: bool, no_color: bool = False) -> Iterator[Progress]:
    """The display that fits: a live table on a terminal, plain lines elsewhere, notes alone if not
    enabled. Nothing goes to stdout."""
    if not enabled:
        yield Notes()
    elif sys.stderr.isatty():
        with AbPanel(stderr_console(no_color=no_color)) as panel:
            yield panel
    else:
        yield AbLines()


class AbLines(PlainLines):
    """Notes at once; of a block under way its state now and then."""

    def update(self, state: object) -> None:
        from dsv4doctor.flows.ab_state import AbState

        super().update(state.block if isinstance(state, AbState) else state)


class AbPanel(LivePanel):
    """The table of arms over the block under way."""

    _shown: AbState | None = None

    def update(self, state: object) -> None:
        """Show this state from the next refresh on."""
        from dsv4doctor.flows.ab_state import AbState

        if isinstance(state, AbState):
            with self._lock:
                self._shown = state

    def _render(self) -> RenderableType:
        with self._lock:
            state = self._shown
        return "" if state is None else table_of(state)


def table_of(state: AbState) -> RenderableType:
    """Arm, sessions, corrupted, rate with interval, e-value; below it what is happening."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right", "right", "left", "right"):
        grid.add_column(justify=justify)
    grid.add_row(
        *(Text(t, style="bold") for t in ("arm", "sessions", "corrupted", "rate", "", "e"))
    )
    for arm in state.arms:
        rate = arm.rate
        estimate = "–" if rate.estimate is None else f"{100 * rate.estimate:.1f} %"
        grid.add_row(
            Text(arm.name),
            Text(str(arm.sessions)),
            Text(str(arm.corrupted)),
            Text(estimate),
            Text(f"[{100 * rate.low:.1f}, {100 * rate.high:.1f}]" if rate.n else ""),
            Text("–" if arm.e_value is None else f"{arm.e_value:.3g}"),
        )
    doing = Text(f"{state.doing} ({state.blocks_done} of {state.blocks} blocks done)", style="bold")
    unproved = [
        Text(f"{arm.name}: {arm.not_proved}", style="bold magenta")
        for arm in state.arms
        if arm.not_proved
    ]
    below = [panel_of(state.block)] if state.block is not None else []
    return Group(grid, *unproved, doing, *below)
