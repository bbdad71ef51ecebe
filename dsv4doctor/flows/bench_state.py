"""Where a bench stands, for the live display."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from dsv4doctor.flows.bench_book import BenchBook, BlockFacts
from dsv4doctor.flows.bench_plan import BenchPlan, BlockPlan
from dsv4doctor.flows.tally import commonest
from dsv4doctor.load.runner import Tick
from dsv4doctor.progress import ReproState
from dsv4doctor.throughput.metrics import duration_s


class BenchState:
    """Turns ticks of the block under way into whole pictures."""

    def __init__(self, plan: BenchPlan, blocks: Sequence[BlockFacts], book: BenchBook) -> None:
        self._plan = plan
        self._blocks = blocks
        self._book = book
        self._total = sum(level.num_prompts for level in plan.levels) * plan.blocks
        self.block = BlockPlan(level=0, number=0)

    def of(self, block: BlockPlan) -> BenchState:
        """This state, from now on about `block`."""
        self.block = block
        return self

    def after(self, tick: Tick) -> ReproState:
        """The picture after `tick`."""
        levels, book = self._plan.levels, self._book
        level = levels[self.block.level]
        limit = level.max_concurrency
        return ReproState(
            phase=f"bench at {limit or 'any'} in flight, block {self.block.number + 1} of "
            f"{self._plan.blocks}",
            unit="block",
            sessions=len(levels) * self._plan.blocks,
            sessions_done=len(self._blocks),
            requests=self._total,
            requests_done=sum(levels[each.level].num_prompts for each in self._blocks)
            + tick.turns_done,
            in_flight=tick.in_flight,
            responses=book.responses,
            corrupted_responses=book.corrupted,
            failures=book.errors,
            by_label=tuple(commonest(book.tally.by_label)),
            tokens_per_s=tick.tokens_per_s,
            elapsed_s=tick.elapsed_s,
            left_s=self._left_s(tick),
        )

    def _left_s(self, tick: Tick) -> float | None:
        """Seconds left by how long each level's blocks took; None until every level has had one."""
        seconds: dict[int, list[float]] = {}
        for facts in self._blocks:
            seconds.setdefault(facts.level, []).append(duration_s(self._book.samples(facts)))
        if len(seconds) < len(self._plan.levels):
            return None
        done = {(facts.level, facts.block) for facts in self._blocks}
        left = sum(
            fmean(seconds[each.level])
            for each in self._plan.order()
            if (each.level, each.number) not in done
        )
        return max(0.0, left - tick.elapsed_s)
