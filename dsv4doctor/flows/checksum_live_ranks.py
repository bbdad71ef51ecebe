"""The ranks under observation: found, armed, drained while the load goes on, and let go.

A rank or a host that stops answering is noted and asked no more; what it had told before counts.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.artifacts.jsonlines import encode
from dsv4doctor.checksum.probe_sites import Answered, Ask, Site
from dsv4doctor.errors import DoctorError
from dsv4doctor.flows.checksum_live_plan import LivePlan
from dsv4doctor.probe_protocol import ProtocolError, Status
from dsv4doctor.tracing.selftest import SelfTest
from dsv4doctor.tracing.trace import Seen, Trace

# Between two rounds of drains on this machine.
LOCAL_POLL_S = 0.25
# The lab's time is virtual: what a digest costs slows nobody down.
_LAB_BYTES_PER_STEP = 1 << 30
_SIDES = frozenset({"prefill", "decode"})
# Digests that are still on the device when the load has ended come within this.
_LAST_RECORDS_S = 5.0
# Records kept on disk in all; more are joined but not kept.
_MOST_KEPT_BYTES = 512 << 20


@dataclass(slots=True, kw_only=True)
class RankWatch:
    """One rank: where it is asked, what it last said, and where its drains stand."""

    site: Site
    socket: str
    status: Status
    after: int = 0
    lost: int = 0
    left: int = 0
    gone: str | None = None

    @property
    def name(self) -> str:
        rank = self.status.rank
        where = rank.host or self.site.name
        return f"{where} {rank.role} dp{rank.dp} tp{rank.tp} pp{rank.pp}"

    @property
    def key(self) -> str:
        """Unique among all ranks: two hosts may be named alike, and pids tell restarts apart."""
        return f"{self.name} pid{self.status.rank.pid}"

    @property
    def testable(self) -> tuple[str, ...]:
        """Hops at which this rank can flip a byte."""
        observes = self.status.observes
        return tuple(hop for hop in protocol.PERTURBABLE if observes.get(hop) == protocol.YES)


@dataclass(slots=True)
class Watch:
    """All ranks under observation, and what they have shown."""

    ranks: list[RankWatch]
    trace: Trace
    tests: SelfTest | None
    unreachable: list[str] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    folder: Path | None = None
    _kept_bytes: int = 0
    _has_ended: bool = False

    @property
    def live(self) -> list[RankWatch]:
        return [rank for rank in self.ranks if rank.gone is None]

    def begin(self, plan: LivePlan) -> None:
        """Arm every rank, and ask for the first flips."""
        bound = plan.max_bytes_per_step
        if bound is None:
            is_lab = all(rank.status.engine == "lab" for rank in self.ranks)
            bound = _LAB_BYTES_PER_STEP if is_lab else protocol.DEFAULT_MAX_BYTES_PER_STEP
        session = f"dsv4doctor-{plan.load.seed}"
        pools = plan.pools or self._usual_pools()
        self._command(
            protocol.arm(session, pools=pools, max_bytes_per_step=bound, max_share=plan.max_share)
        )
        self._flip()

    def _usual_pools(self) -> tuple[str, ...]:
        """Index-K; where pages go from a prefill to a decode side also the c4 latents."""
        has_transfers = any(rank.status.rank.role in _SIDES for rank in self.ranks)
        offered = [{pool.pool for pool in rank.status.pools} for rank in self.ranks]
        if has_transfers and all("c4" in pools for pools in offered):
            return (protocol.INDEX_K, "c4")
        return (protocol.INDEX_K,)

    def poll(self) -> bool:
        """Drain every rank once, and ask for the flips that are due; whether anything came."""
        came = False
        for site in dict.fromkeys(rank.site for rank in self.live):
            ranks = [rank for rank in self.live if rank.site is site]
            asks = [Ask(request=protocol.drain(rank.after), socket=rank.socket) for rank in ranks]
            # The status comes second: it names every flip that the drained records may hold.
            asks += [Ask(request=protocol.status(), socket=rank.socket) for rank in ranks]
            answers = self._ask(site, ranks, asks)
            for rank, drained, status in zip(
                ranks, answers[: len(ranks)], answers[len(ranks) :], strict=False
            ):
                came |= self._take(rank, drained, status)
        self._flip()
        return came

    def _ask(self, site: Site, ranks: list[RankWatch], asks: list[Ask]) -> list[Answered]:
        try:
            return site.ask(asks)
        except DoctorError as problem:
            for rank in ranks:
                rank.gone = str(problem)
            return []

    def _take(self, rank: RankWatch, drained: Answered, status: Answered) -> bool:
        try:
            told = protocol.parse_drained(answer_of(drained))
            rank.status = protocol.parse_status(answer_of(status).get("status"))
        except (ProtocolError, Gone) as problem:
            rank.gone = str(problem)
            return False
        if told.lost > rank.lost:
            self.trace.lose(rank.key, told.lost - rank.lost)
            rank.lost = told.lost
        rank.after, rank.left = told.next_after, told.left
        seen: list[Seen] = [*told.observations, *told.forgotten]
        self.trace.add(rank.key, seen, rank.status.perturbed)
        if self.tests is not None:
            self.tests.settle(self.trace.flips)
        self._keep(rank, drained)
        return bool(seen)

    def _keep(self, rank: RankWatch, drained: Answered) -> None:
        """The records as they came, one a line, beside the run."""
        records = (drained.answer or {}).get("records") or ()
        if self.folder is None or not records or self._kept_bytes > _MOST_KEPT_BYTES:
            return
        self.folder.mkdir(exist_ok=True)
        lines = b"".join(encode(record) + b"\n" for record in records)
        self._kept_bytes += len(lines)
        name = rank.key.replace("/", "_").replace(" ", "-")
        with (self.folder / f"{name}.jsonl").open("ab") as file:
            file.write(lines)

    def _flip(self) -> None:
        if self.tests is None or self._has_ended:
            return
        for rank in self.live:
            asks = [
                Ask(request=protocol.perturb(hop, seed=seed), socket=rank.socket)
                for hop, seed in self.tests.due(rank.key)
            ]
            for answered in self._ask(rank.site, [rank], asks) if asks else ():
                self._note_refusal(rank, answered)

    def _note_refusal(self, rank: RankWatch, answered: Answered) -> None:
        try:
            protocol.parse_answer(answer_of(answered))
        except (ProtocolError, Gone) as problem:
            self.problems.append(f"{rank.name}: {problem}")

    def end(self) -> None:
        """Stop observing, take in what is still on its way, and let the ranks be."""
        self._has_ended = True
        try:
            self._command(protocol.disarm())
        except KeyboardInterrupt:
            # No impatience leaves a rank observing: each is told once more, by itself.
            self._command(protocol.disarm())
            raise
        finally:
            self._settle()

    def _settle(self) -> None:
        """What was seen is complete, or will not be."""
        try:
            self._drain()
        finally:
            self.trace.finish()
            if self.tests is not None:
                self.tests.settle(self.trace.flips)

    def _drain(self) -> None:
        """Digests that are still on the device come within a moment of the end."""
        deadline = time.monotonic() + _LAST_RECORDS_S
        while self.live and time.monotonic() < deadline:
            if self.poll():
                continue
            if not any(rank.left for rank in self.live):
                break
            time.sleep(LOCAL_POLL_S)

    def _command(self, request: Mapping[str, Any]) -> None:
        for rank in self.live:
            asks = [Ask(request=request, socket=rank.socket)]
            for answered in self._ask(rank.site, [rank], asks):
                self._note_refusal(rank, answered)


class Gone(Exception):
    """No answer came from a rank's socket."""


def answer_of(answered: Answered) -> Mapping[str, Any]:
    if answered.answer is None:
        raise Gone(answered.gone)
    return answered.answer
