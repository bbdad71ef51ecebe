"""The orderings that SGLang's source leaves open, each as a program of about ten operations.

A program gives its work out as the scheduler does, through `lab.ordering`. Which of its
interleavings goes wrong, and whether any does, follows from the orderings alone.

| race | needs | found in |
|---|---|---|
| load-fence | overlap; a finished request's page reused by a load | 0.5.12, 0.5.14-0.5.18 |
| write-fence | overlap; a finished request's page backed up | 0.5.12-0.5.22 |
| early-send-of-loads | prefill apart; two requests that share an evicted prefix | 0.5.15-0.5.22 |
| early-send-of-chunk | prefill apart, overlap; a prompt in chunks | 0.5.15 |
| graph-prefill | a prefill replayed from a full graph that loads a prefix | up to 0.5.22 |
"""

from __future__ import annotations

from collections.abc import Callable

from dsv4doctor.lab.interleaving import Memory, Program, Race, Recording
from dsv4doctor.lab.ordering import EngineStreams, Forward
from dsv4doctor.lab.releases import Orderings
from dsv4doctor.lab.streams import Mark, Stream

LAYERS = (0, 1)
OLD, OURS, LATE = b"someone else's", b"the prefix", b"a late store"


class _Stage:
    """One engine's streams and pages, about to be given a program."""

    def __init__(self, orderings: Orderings) -> None:
        self.clock = Recording()
        self.streams = EngineStreams(self.clock, orderings)
        (self.load,) = self.streams.loads
        places = ("device page", "other device page", "host page", "decode page")
        pages = {f"{place}, layer {layer}": OLD for place in places for layer in LAYERS}
        self.memory = Memory(pages)

    def program(self, name: str) -> Program:
        return Program(name=name, timeline=self.clock, memory=self.memory)

    def holds(self, place: str, data: bytes) -> None:
        """A page's bytes before the program begins."""
        for layer in LAYERS:
            self.memory.pages[f"{place}, layer {layer}"] = data

    def copy(self, stream: Stream, what: str, source: str, target: str) -> list[Mark]:
        """Copy a page layer by layer; the event behind each."""
        events = []
        for layer in LAYERS:
            at = f", layer {layer}"
            stream.run(f"{what}{at}", self.memory.copy(f"{source}{at}", f"{target}{at}"))
            events.append(stream.record())
        return events

    def load_page(self, target: str) -> list[Mark]:
        """Load the host page to `target`: queued now, to be waited for layer by layer."""
        self.streams.start_loading()
        return self.copy(self.load, "load", "host page", target)

    def decode(self, what: str, place: str | None = None, data: bytes = LATE) -> Mark:
        """Launch one decode from its graph, which stores into a page (None: into nobody's)."""
        self.streams.begin_step()
        with self.streams.forward_pass(Forward.GRAPH_DECODE) as forward:
            for layer in LAYERS if place is not None else ():
                at = f"layer {layer}"
                forward.run(f"{what}, {at}", self.memory.put(f"{place}, {at}", data))
            if place is None:
                forward.run(what, _nothing)
            return forward.record()

    def prefill(
        self, reader: str, place: str, loads: list[Mark], kind: Forward = Forward.PREFILL
    ) -> Mark:
        """Launch a prefill that reads a page in every layer, behind the layer's gate."""
        with self.streams.forward_pass(kind) as forward:
            for layer in LAYERS:
                if loads:
                    self.streams.layer_gate(loads[layer])
                self.expect(forward, reader, place, layer)
            return forward.record()

    def expect(self, stream: Stream, reader: str, place: str, layer: int) -> None:
        """A read of one layer of a page that ought to see the prefix."""
        where = f"{place}, layer {layer}"
        stream.run(f"{reader}, layer {layer}", self.memory.read(where, OURS, reader))


def _nothing() -> None:
    """What a step does that touches none of the pages in question."""


def _load_fence(orderings: Orderings) -> Program:
    """A has ended in step n; step n + 1 is on its way and still stores A's last token."""
    stage = _Stage(orderings)
    stage.holds("host page", OURS)
    results = stage.decode("decode step n")
    stage.decode("A's late store", "device page")
    stage.clock.wait(results)
    # A's page is freed, and the next batch restores B's prefix into it.
    stage.streams.begin_step()
    loads = stage.load_page("device page")
    stage.prefill("B reads", "device page", loads)
    return stage.program("load-fence")


def _write_fence(orderings: Orderings) -> Program:
    """A has ended in step n and its page is backed up; step n + 1 still stores its last token."""
    stage = _Stage(orderings)
    results = stage.decode("decode step n")
    stage.decode("A's last store", "device page", OURS)
    stage.clock.wait(results)
    stage.streams.start_writing()
    saved = stage.copy(stage.streams.backup, "back up", "device page", "host page")
    # Later: acknowledged, evicted, and restored in the session's next turn.
    stage.clock.wait(saved[-1])
    stage.streams.begin_step()
    loads = stage.load_page("other device page")
    stage.prefill("A's next turn reads", "other device page", loads)
    return stage.program("write-fence")


def _send(stage: _Stage, *, has_loads: bool, launch: Callable[[], Mark]) -> None:
    """Send a cached prefix early if that is done, else behind its forward; then it is read."""
    worker = stage.clock.stream("transfer worker")
    early = stage.streams.send_early(worker, has_loads=has_loads)
    if early:
        sent = stage.copy(worker, "send", "device page", "decode page")[-1]
    done = launch()
    if not early:
        stage.clock.wait(done)
        sent = stage.copy(worker, "send", "device page", "decode page")[-1]
    decode = stage.clock.stream("decode engine")
    decode.wait(sent)
    for layer in LAYERS:
        stage.expect(decode, "the decode engine reads", "decode page", layer)


def _early_send_of_loads(orderings: Orderings) -> Program:
    """R1 restores a shared prefix; R2 of the same batch finds it on the device and sends it."""
    stage = _Stage(orderings)
    stage.holds("host page", OURS)
    stage.streams.begin_step()
    loads = stage.load_page("device page")
    _send(stage, has_loads=True, launch=lambda: stage.prefill("R1 reads", "device page", loads))
    return stage.program("early-send-of-loads")


def _early_send_of_chunk(orderings: Orderings) -> Program:
    """A prompt's first chunk is still being computed when its second is launched."""
    stage = _Stage(orderings)
    stage.streams.begin_step()
    with stage.streams.forward_pass(Forward.PREFILL) as forward:
        for layer in LAYERS:
            where = f"device page, layer {layer}"
            forward.run(f"store the first chunk, layer {layer}", stage.memory.put(where, OURS))
        stored = forward.record()
    if not orderings.overlap:
        stage.clock.wait(stored)
    stage.streams.begin_step()
    _send(
        stage,
        has_loads=False,
        launch=lambda: stage.prefill("the second chunk reads", "device page", []),
    )
    return stage.program("early-send-of-chunk")


def _graph_prefill(orderings: Orderings) -> Program:
    """A prefill replayed from a full graph: the getters that would wait are not in it."""
    stage = _Stage(orderings)
    stage.holds("host page", OURS)
    stage.streams.begin_step()
    loads = stage.load_page("device page")
    stage.prefill("the replayed prefill reads", "device page", loads, Forward.GRAPH_PREFILL)
    return stage.program("graph-prefill")


RACES = (
    Race(
        name="load-fence",
        summary="a late store lands in a page that was restored meanwhile",
        build=_load_fence,
    ),
    Race(
        name="write-fence",
        summary="a page is backed up before its last store",
        build=_write_fence,
    ),
    Race(
        name="early-send-of-loads",
        summary="a prefix is sent while another request's load still writes it",
        build=_early_send_of_loads,
    ),
    Race(
        name="early-send-of-chunk",
        summary="a prefix is sent while the step before still writes it",
        build=_early_send_of_chunk,
    ),
    Race(
        name="graph-prefill",
        summary="a prefill from a full graph reads before its loads have landed",
        build=_graph_prefill,
    ),
)


def race_named(name: str) -> Race:
    """The race of that name.

    Raises:
        KeyError: if there is none.
    """
    return {race.name: race for race in RACES}[name]
