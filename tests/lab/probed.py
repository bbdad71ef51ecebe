"""Engines with a probe, driven in this process, and what their observations join to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from lab_sessions import Answer, run, scripts

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.engine import Engine
from dsv4doctor.lab.groundtruth import read_log
from dsv4doctor.lab.http_launch import LaunchOptions
from dsv4doctor.lab.layouts import PAGE_TOKENS
from dsv4doctor.lab.pd.decode import DecodeEngine
from dsv4doctor.lab.pd.prefill import PrefillEngine
from dsv4doctor.lab.pd.wire import Handover
from dsv4doctor.lab.probe_state import LabProbe, ProbedRank
from dsv4doctor.lab.probing import PREFILL, probed_decode, probed_engine
from dsv4doctor.lab.requests import EngineRequest, Generation, Room
from dsv4doctor.session import SessionScript
from dsv4doctor.tracing.trace import Trace

# Batches of four requests load some 60 pages: more than the bf16 pages (38) that land before the
# first read, and fewer than the fp8 ones (75). As the record, at a fifth of its size.
SMALL = {"prefill_batch_requests": 4, "device_pages": 130, "slack_ms": 0.3}
SESSIONS = 14
TURNS = 5
POOLS = ("index_k", "c4")
# Observed by hand, without an engine.
LONE_RANK = ProbedRank(
    role="aggregated",
    version="0.5.20",
    layout="fp8",
    layers=1,
    pages=4,
    page_bytes={"index_k": 8448},
    page_tokens=256,
    hops=frozenset({protocol.STORE, protocol.READ}),
)
# (pool, request, layer, place in the request, device page)
Stale = tuple[str, str, int, int, int]


def options(folder: Path | None, **environment: str) -> LaunchOptions:
    """A launch whose environment asks for a probe."""
    variables = {**environment, **({"DSV4DOCTOR_PROBE_DIR": str(folder)} if folder else {})}
    return LaunchOptions(environment=variables)


def begun(scenario: str, sessions: int) -> tuple[SessionScript, ...]:
    """The first turns of some sessions."""
    return tuple(
        replace(script, turns=script.turns[:TURNS]) for script in scripts(scenario, 0, sessions)
    )


def armed(probe: LabProbe | None, pools: Sequence[str] = ("index_k",)) -> LabProbe:
    assert probe is not None
    assert probe.answer(protocol.arm("test", pools=pools, max_bytes_per_step=1 << 30))["ok"]
    return probe


def drained(probe: LabProbe) -> protocol.Drained:
    """All that is ready, over as many drains as it takes."""
    seen: list[protocol.Observation] = []
    forgotten: list[protocol.Forgotten] = []
    after = 0
    while True:
        told = protocol.parse_drained(probe.answer(protocol.drain(after, limit=700)))
        seen += told.observations
        forgotten += told.forgotten
        if told.next_after == after:
            return replace(told, observations=tuple(seen), forgotten=tuple(forgotten))
        after = told.next_after


def feed(trace: Trace, rank: str, probe: LabProbe) -> None:
    """One rank's records into a trace."""
    told = drained(probe)
    status = protocol.parse_status(probe.answer(protocol.status())["status"])
    trace.add(rank, [*told.observations, *told.forgotten], status.perturbed)


def stale_in(trace: Trace, rank: str) -> set[Stale]:
    """The reads of one rank that saw other bytes."""
    return {
        (
            one.seen.pool,
            str(one.seen.request),
            one.seen.layer,
            int(one.seen.index or 0),
            int(one.seen.page or 0),
        )
        for one in trace.changes
        if one.seen.hop == protocol.READ and one.rank == rank
    }


def stale_truly(log: Path, pools: Sequence[str] = ("index_k",)) -> set[Stale]:
    """The stale reads of a ground-truth log; what it calls main is the probe's c4."""
    names = {"index_k": "index_k", "main": "c4"}
    records = list(read_log(log))
    whole = {
        record["rid"]: record["prompt_tokens"] // PAGE_TOKENS
        for record in records
        if record["kind"] == "served"
    }
    found = {
        (
            names[record["pool"]],
            record["rid"],
            record["layer"],
            record["logical_page"],
            record["physical_page"],
        )
        for record in records
        # A page whose last slot is not filled is observed by nobody.
        if record["kind"] == "stale_read" and record["logical_page"] < whole[record["rid"]]
    }
    return {each for each in found if each[0] in pools}


class Pair:
    """A prefill and a decode engine joined as the wire joins them; serves rounds as an `Engine`."""

    def __init__(self, folder: Path, **settings: object) -> None:
        config = EngineConfig(**settings)  # type: ignore[arg-type]
        self.logs = {"prefill": folder / "prefill.jsonl", "decode": folder / "decode.jsonl"}
        self._rooms = count()
        self._batches: list[list[Handover]] = []
        self.prefill = PrefillEngine(config, self.logs["prefill"], self._batches.append)
        self.decode = DecodeEngine(replace(config, hicache=False), self.logs["decode"])
        launch = options(folder)
        self.probes = {
            "prefill": armed(probed_engine(self.prefill.engine, launch, role=PREFILL), POOLS),
            "decode": armed(probed_decode(self.decode, launch), POOLS),
        }

    def serve_round(self, requests: Sequence[EngineRequest]) -> list[Generation]:
        rooms = {next(self._rooms): request for request in requests}
        self._batches.clear()
        self.prefill.serve_round(
            [
                replace(request, room=Room(host="127.0.0.1", port=1, number=number))
                for number, request in rooms.items()
            ]
        )
        answers: dict[str, Generation] = {}
        for batch in self._batches:
            for generation in self.decode.serve_transferred(batch, rooms):
                answers[generation.rid] = generation
        return [answers[request.rid] for request in requests]

    def close(self) -> None:
        self.prefill.close()
        self.decode.close()


@dataclass(frozen=True, slots=True)
class Observed:
    """A run of one engine under observation."""

    trace: Trace
    answers: list[Answer]
    truth: set[Stale]
    probe: LabProbe


def observed(folder: Path, *, scenario: str = "tool-calls", **settings: object) -> Observed:
    """Sessions served by one engine whose probe was armed before the first."""
    log = folder / "truth.jsonl"
    engine = Engine(EngineConfig(**{**SMALL, **settings}), log)  # type: ignore[arg-type]
    probe = armed(probed_engine(engine, options(folder)))
    answers = run(engine, begun(scenario, SESSIONS))
    engine.close()
    trace = Trace()
    feed(trace, "rank", probe)
    trace.finish()
    return Observed(trace, answers, stale_truly(log), probe)


@dataclass(frozen=True, slots=True)
class ObservedPair:
    """A run of a prefill and a decode engine under observation; `truth` by role."""

    trace: Trace
    answers: list[Answer]
    truth: dict[str, set[Stale]]


def observed_pair(
    folder: Path, *, scenario: str = "tool-calls", sessions: int = SESSIONS, **settings: object
) -> ObservedPair:
    """As `observed`, through both engines."""
    pair = Pair(folder, **{**SMALL, **settings})
    answers = run(pair, begun(scenario, sessions))
    pair.close()
    trace = Trace(awaits_sends=True)
    # The decode side first: its arrivals have to wait for the sends.
    for rank in ("decode", "prefill"):
        feed(trace, rank, pair.probes[rank])
    trace.finish()
    return ObservedPair(
        trace, answers, {role: stale_truly(log, POOLS) for role, log in pair.logs.items()}
    )
