"""Who waits for whom: an engine's streams as a release orders them.

The engine and the search over interleavings (`lab.interleaving`) give their work out through this
one class, so that what the search proves is what the engine runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

from dsv4doctor.lab.releases import Barrier, BarrierPosition, Orderings
from dsv4doctor.lab.streams import Mark, Stream, Timeline

SCHEDULE, FORWARD, BACKUP = "schedule", "forward", "d2h"


class Forward(Enum):
    """How a forward pass is run: `GRAPH_` ones are replayed from a CUDA graph."""

    PREFILL = "prefill"
    GRAPH_PREFILL = "prefill from a full graph"
    GRAPH_DECODE = "decode from a graph"


class EngineStreams:
    """The streams of one engine. `loads` names its host-to-device streams."""

    def __init__(
        self, timeline: Timeline, orderings: Orderings, loads: Sequence[str] = ("h2d",)
    ) -> None:
        self.orderings = orderings
        self.schedule = timeline.stream(SCHEDULE)
        # Without overlap there is one stream, and so one order.
        self.forward = timeline.stream(FORWARD) if orderings.overlap else self.schedule
        self.loads = tuple(timeline.stream(name) for name in loads)
        self.backup = timeline.stream(BACKUP)
        self._barrier: Mark | None = None
        self._kind = Forward.PREFILL

    def begin_step(self) -> None:
        """The top of the scheduler's loop."""
        if self.orderings.barrier_position is BarrierPosition.TOP_OF_LOOP:
            self._apply_barrier()

    @contextmanager
    def forward_pass(self, kind: Forward) -> Iterator[Stream]:
        """The forward stream, to give one pass to: behind the scheduler's work so far."""
        self._kind = kind
        self.forward.wait(self.schedule.record())
        read_done = self.forward.record()
        yield self.forward
        is_fast = self.orderings.barrier is Barrier.READ_DONE and (
            kind is Forward.GRAPH_DECODE or self.orderings.prefill_read_done
        )
        self._barrier = read_done if is_fast else self.forward.record()
        if self.orderings.barrier_position is BarrierPosition.AFTER_LAUNCH:
            self._apply_barrier()

    def _apply_barrier(self) -> None:
        if self.orderings.barrier is not Barrier.NONE and self._barrier is not None:
            self.schedule.wait(self._barrier)

    def layer_gate(self, event: Mark) -> None:
        """Before a layer reads a pool: wait until its loads have landed.

        A replayed graph runs no Python, so the getters' wait is not in it.
        """
        if self._kind is Forward.GRAPH_PREFILL and not self.orderings.prefill_graph_waits:
            return
        self.forward.wait(event)

    def start_loading(self) -> None:
        """Before a round of loads is queued."""
        start = self.schedule.record()
        for stream in self.loads:
            self._fence(stream, self.orderings.load_fence)
            stream.wait(start)

    def start_writing(self) -> None:
        """Before a round of backups is queued."""
        start = self.schedule.record()
        self._fence(self.backup, self.orderings.write_fence)
        self.backup.wait(start)

    def _fence(self, stream: Stream, is_fenced: bool) -> None:
        if is_fenced:
            stream.wait(self.forward.record())

    def send_early(self, worker: Stream, *, has_loads: bool) -> bool:
        """Before a forward is launched: whether its cached prefix is sent now, by `worker`.

        `has_loads` says that the batch to be launched has loads of its own under way.
        """
        if not self.orderings.early_send:
            return False
        if has_loads and self.orderings.early_send_blocked_by_load:
            return False
        if self.orderings.early_send_waits:
            worker.wait(self.forward.record())
        return True
