"""Every order in which a handful of operations may happen, tried one by one.

A program (`lab.races`) gives its work to the same streams, fences and gates as the engine does;
what they allow is searched here. Time plays no part: an operation may happen as soon as all that it
comes behind has happened. A read says what it ought to see; an order in which one sees something
else is a race, and can be kept and run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dsv4doctor.errors import DoctorError
from dsv4doctor.lab.releases import Orderings
from dsv4doctor.lab.streams import Operation, Timeline


@dataclass(slots=True)
class Recording(Timeline):
    """A timeline on which nothing happens by itself: it remembers what comes behind what."""

    operations: list[Operation] = field(default_factory=list)
    behind: dict[int, frozenset[int]] = field(default_factory=dict)

    def _plan(self, operation: Operation, behind: tuple[Operation, ...]) -> None:
        self.behind[operation.serial] = frozenset(other.serial for other in behind)
        self.operations.append(operation)

    def settle(self) -> None:
        """Nothing: the search decides when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A read that saw other bytes than it should: `reader` found `got` at `place`."""

    reader: str
    place: str
    expected: bytes
    got: bytes


class Memory:
    """Named pages and their bytes; reads are checked as they happen."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        self.pages = dict(pages)
        self.violations: list[Violation] = []

    def put(self, place: str, data: bytes) -> Callable[[], None]:
        """The store of `data`."""

        def store() -> None:
            self.pages[place] = data

        return store

    def copy(self, source: str, target: str) -> Callable[[], None]:
        """The copy of what lies at `source` when its turn comes."""

        def move() -> None:
            self.pages[target] = self.pages[source]

        return move

    def read(self, place: str, expected: bytes, reader: str) -> Callable[[], None]:
        """A read that ought to see `expected`."""

        def look() -> None:
            got = self.pages[place]
            if got != expected:
                violation = Violation(reader=reader, place=place, expected=expected, got=got)
                self.violations.append(violation)

        return look


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Some operations and the memory that they work on; `name` is its race's."""

    name: str
    timeline: Recording
    memory: Memory

    @property
    def steps(self) -> dict[str, Operation]:
        """The operations that do something, by the name that an order has for them."""
        named = {}
        for operation in self.timeline.operations:
            if operation.effect is not None:
                name = f"{operation.stream}: {operation.name}"
                assert name not in named, name
                named[name] = operation
        return named


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """A way to go wrong; `build` makes its program anew under given orderings."""

    name: str
    summary: str
    build: Callable[[Orderings], Program]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a search found: the first order that violates a read, if there is one.

    `interleavings` counts all orders that were possible.
    """

    race: str
    interleavings: int
    order: tuple[str, ...] = ()
    violation: Violation | None = None


def _requirements(program: Program) -> dict[str, frozenset[str]]:
    """For each step the steps that must have happened before it; marks are seen through."""
    names = {operation.serial: name for name, operation in program.steps.items()}
    before: dict[int, frozenset[str]] = {}
    for operation in program.timeline.operations:
        needed: frozenset[str] = frozenset()
        for serial in program.timeline.behind[operation.serial]:
            own = frozenset({names[serial]}) if serial in names else frozenset()
            needed |= before[serial] | own
        before[operation.serial] = needed
    return {name: before[operation.serial] for name, operation in program.steps.items()}


def search(race: Race, orderings: Orderings) -> Search:
    """All interleavings of a race's program under `orderings`, up to the first that goes wrong."""
    program = race.build(orderings)
    requirements = _requirements(program)
    found = next(_violating_orders(program, requirements), None)
    return Search(
        race=race.name,
        interleavings=_count(requirements),
        order=found[0] if found else (),
        violation=found[1] if found else None,
    )


def _violating_orders(
    program: Program, requirements: dict[str, frozenset[str]]
) -> Iterator[tuple[tuple[str, ...], Violation]]:
    """Depth first. Two ways to the same steps done and the same bytes have the same future."""
    steps, memory = program.steps, program.memory
    seen: set[tuple[frozenset[str], tuple[bytes, ...]]] = set()
    stack: list[tuple[tuple[str, ...], dict[str, bytes]]] = [((), dict(memory.pages))]
    while stack:
        order, pages = stack.pop()
        done = frozenset(order)
        state = (done, tuple(pages[place] for place in sorted(pages)))
        if state in seen:
            continue
        seen.add(state)
        # Reversed: the stack gives the order in which the steps were given out first.
        for name in reversed([n for n in steps if n not in done and requirements[n] <= done]):
            memory.pages = dict(pages)
            memory.violations.clear()
            effect = steps[name].effect
            assert effect is not None
            effect()
            if memory.violations:
                yield (*order, name), memory.violations[0]
            else:
                stack.append(((*order, name), memory.pages))


def _count(requirements: dict[str, frozenset[str]]) -> int:
    """How many orders respect the requirements."""
    ways: dict[frozenset[str], int] = {frozenset(): 1}
    for _ in requirements:
        longer: dict[frozenset[str], int] = {}
        for done, count in ways.items():
            for name, needed in requirements.items():
                if name not in done and needed <= done:
                    more = done | {name}
                    longer[more] = longer.get(more, 0) + count
        ways = longer
    return sum(ways.values())


def run_order(race: Race, orderings: Orderings, order: Sequence[str]) -> Violation | None:
    """Run a race's program in one order; the violation that it ends in, if it does.

    Raises:
        DoctorError: if `orderings` do not allow that order.
    """
    program = race.build(orderings)
    requirements, steps = _requirements(program), program.steps
    done: set[str] = set()
    for name in order:
        if name not in steps or name in done:
            raise DoctorError(
                f"{race.name} has no step {name!r} left to take",
                "the file was made by another version: search again",
            )
        missing = [other for other in steps if other in requirements[name] and other not in done]
        if missing:
            raise DoctorError(
                f"{name!r} cannot happen here: it comes behind {missing[0]!r}",
                "these orderings close the race",
            )
        effect = steps[name].effect
        assert effect is not None
        effect()
        done.add(name)
    return program.memory.violations[0] if program.memory.violations else None
