"""Everything counted in a bench, one record at a time: live, on resume, and for `report`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.flows.tally import Tally
from dsv4doctor.report.members import mapping
from dsv4doctor.throughput.sample import Sample, sample_of


@dataclass(slots=True)
class LevelCounts:
    """What came back at one level, whole blocks or not."""

    responses: int = 0
    unjudged: int = 0
    corrupted: int = 0
    by_label: Counter[str] = field(default_factory=Counter)
    by_failure: Counter[str] = field(default_factory=Counter)

    @property
    def errors(self) -> int:
        return self.by_failure.total()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFacts:
    """A block that was run to its end, in which segment of the run, and how late we were."""

    level: int
    block: int
    segment: int
    client_lag_ms: Mapping[str, float | None]
    timings_valid: bool

    @classmethod
    def from_json(cls, value: Any) -> BlockFacts | None:
        """The facts that a manifest holds; None where they are damaged."""
        said = mapping(value)
        numbers = [said.get(name) for name in ("level", "block", "segment")]
        if not all(isinstance(number, int) for number in numbers):
            return None
        return cls(
            level=said["level"],
            block=said["block"],
            segment=said["segment"],
            client_lag_ms=mapping(said.get("client_lag_ms")),
            timings_valid=said.get("timings_valid") is not False,
        )


def facts_in(manifest: Mapping[str, Any]) -> list[BlockFacts]:
    """The whole blocks that a run's manifest tells of, each once: the one that counts."""
    held = manifest.get("blocks")
    facts = [BlockFacts.from_json(each) for each in (held if isinstance(held, list) else ())]
    return list({(each.level, each.block): each for each in facts if each is not None}.values())


class BenchBook:
    """Counts by level, samples by block. A block that was cut short and run again is held once for
    each segment; only what `facts_in` names is measured."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.levels: dict[int, LevelCounts] = {}
        self._blocks: dict[tuple[int, int, int], list[Sample]] = {}

    def add(self, record: Mapping[str, Any]) -> None:
        """Count one record in the form of `record.record_of`, with `level`, `block`, `segment`."""
        counts = self.levels.setdefault(record["level"], LevelCounts())
        key = (record["level"], record["block"], record["segment"])
        self._blocks.setdefault(key, []).append(sample_of(record))
        if record["failure"]:
            counts.by_failure[record["failure"]["kind"]] += 1
        elif record["primary"] is None:
            counts.responses += 1
            counts.unjudged += 1
            return  # a tally is of judged replies
        else:
            counts.responses += 1
            counts.by_label[record["primary"]] += 1
            counts.corrupted += bool(record["corrupted"])
        self.tally.add(record)

    def samples(self, facts: BlockFacts) -> list[Sample]:
        """The requests of one whole block."""
        return self._blocks.get((facts.level, facts.block, facts.segment), [])

    def completed_in(self, level: int, block: int, segment: int) -> int:
        """Requests of a block that became responses."""
        held: Iterable[Sample] = self._blocks.get((level, block, segment), ())
        return sum(sample.failure is None for sample in held)

    @property
    def responses(self) -> int:
        return sum(counts.responses for counts in self.levels.values())

    @property
    def errors(self) -> int:
        return sum(counts.errors for counts in self.levels.values())

    @property
    def corrupted(self) -> int:
        return sum(counts.corrupted for counts in self.levels.values())
