"""One arm of a diagnosis: its sessions driven at the server, judged, and what became of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.deploy.counters import read_counters
from dsv4doctor.differential.arms import ArmName
from dsv4doctor.errors import DoctorError
from dsv4doctor.experiment.factors import parse_setting
from dsv4doctor.experiment.verification import ServerState, Standing, Verification, combine
from dsv4doctor.flows.ab_block import BlockRecords, traces_of
from dsv4doctor.flows.diagnose_loads import FACTORS, client_plan
from dsv4doctor.flows.diagnose_plan import DiagnosePlan
from dsv4doctor.flows.repro_drive import Work, drive
from dsv4doctor.flows.tally import Tally
from dsv4doctor.label import Label
from dsv4doctor.load.events import Wedge
from dsv4doctor.progress import Progress
from dsv4doctor.target import Endpoint

# Where little went wrong, the load is repeated with further sessions up to so often.
MOST_ROUNDS = 3
Request = tuple[int, int]  # session, turn


@dataclass(slots=True)
class Bench:
    """Where the arms run: what is the same for all of them. `served` is there once a server is."""

    plan: DiagnosePlan
    run: RunDirectory
    progress: Progress
    served: Endpoint | None = None
    secrets: tuple[str, ...] = ()
    target: dict[str, Any] = field(default_factory=dict)
    number: int = 0

    @property
    def endpoint(self) -> Endpoint:
        assert self.served is not None
        return self.served


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRun:
    """What an arm brought. `wrong` are the corrupted requests in the order in which they ended,
    `foreign` those of them that hold another session's planted code; `records` are the wrong ones'
    records. A further round brings `plan.sessions` more sessions of the same seed."""

    name: ArmName
    tally: Tally
    wrong: tuple[Request, ...]
    foreign: tuple[Request, ...]
    records: tuple[Mapping[str, Any], ...]
    verification: Verification
    begun: int
    rounds: int
    wedge: Wedge | None
    lag_ms: float
    restored_tokens: float | None
    interrupted: bool
    seconds: float

    @property
    def requests(self) -> int:
        """Requests that came to an end of their own, aborted ones among them."""
        return self.tally.responses + self.tally.aborted_by_us

    @property
    def not_proved(self) -> str:
        """Why the arm is not what it says, where the server says otherwise; what it does not say
        at all we take from what we sent."""
        bad = [c for c in self.verification.checks if c.standing is Standing.REFUTED]
        said = [f"{check.setting}: {check.read}" for check in bad]
        if self.name is ArmName.FEW and self.restored_tokens:
            said.append(f"{self.restored_tokens:.0f} tokens were restored from the host")
        return "; ".join(said)

    def first_wrong(self) -> dict[int, int]:
        """Session -> the first of its turns that went wrong."""
        first: dict[int, int] = {}
        for session, turn in self.wrong:
            first[session] = min(turn, first.get(session, turn))
        return first


class ArmRecords(BlockRecords):
    """A block's records that also remember which requests went wrong."""

    def __init__(self, parent: RunDirectory, extra: Mapping[str, Any]) -> None:
        super().__init__(parent, extra, is_counted=True)
        self.wrong: list[Request] = []
        self.foreign: list[Request] = []
        self.kept: list[Mapping[str, Any]] = []

    def continue_after(self, before: ArmRun) -> None:
        """Remember what earlier rounds of the same arm brought."""
        self.wrong += before.wrong
        self.foreign += before.foreign
        self.kept += before.records

    def append_record(self, record: Mapping[str, Any]) -> None:
        super().append_record(record)
        if not record["corrupted"]:
            return
        request = (record["session"], record["turn"])
        self.wrong.append(request)
        self.kept.append(record)
        if _is_foreign(record):
            self.foreign.append(request)


def _is_foreign(record: Mapping[str, Any]) -> bool:
    """True where a code planted in another session came back: that cannot be made up."""
    label = Label.FOREIGN_CONTENT.value
    if label != record["primary"] and label not in record["also"]:
        return False
    return any("was planted in session" in item["what"] for item in record["evidence"])


def run_arm(
    bench: Bench,
    name: ArmName,
    *,
    only: Collection[Request] | None = None,
    enough: Callable[[Tally], str | None] = lambda _: None,
    before: ArmRun | None = None,
) -> ArmRun:
    """Drive the arm's sessions, or `only` some of their requests, until `enough` says why not;
    after `before`, its rounds so far, one more.

    Raises:
        DoctorError: if the server served nothing at all.
    """
    work, records = _prepare(bench, name, only, before)
    work.secrets, work.enough = bench.secrets, enough
    counted = read_counters([bench.endpoint])
    drive(work, bench.endpoint)
    restored = read_counters([bench.endpoint]).since(counted).host_hit_tokens
    if work.unreachable is not None:
        raise DoctorError(f"arm {name}: {work.unreachable}", "is the server up?")
    bench.target.update(work.target)
    if before is not None and restored is not None:
        earlier = before.restored_tokens
        restored = None if earlier is None else earlier + restored
    return replace(_arm_run(name, work, records, before), restored_tokens=restored)


def _prepare(
    bench: Bench, name: ArmName, only: Collection[Request] | None, before: ArmRun | None
) -> tuple[Work, ArmRecords]:
    """The load still to be driven, and where its records go."""
    rounds = 1 if before is None else before.rounds + 1
    plan = client_plan(bench.plan, name)
    earlier = plan.sessions * (rounds - 1)
    reach = max((session + 1 for session, _ in only or ()), default=0)
    plan = replace(plan, sessions=max(plan.sessions * rounds, reach))
    extra = {
        "arm": name.value, "block": bench.number, "round": rounds, "attempt": 1,
        "block_sessions": MOST_ROUNDS * bench.plan.sessions,
    }  # fmt: skip
    bench.number += 1
    records = ArmRecords(bench.run, extra)
    work = Work(plan, records, bench.progress)
    every = {(s, t) for s in range(plan.sessions) for t in range(plan.turn_count)}
    if before is not None:
        work.tally = before.tally
        records.continue_after(before)
        only = {request for request in every if request[0] >= earlier}
    if only is not None:
        work.done = every - set(only)
    return work, records


def _arm_run(name: ArmName, work: Work, records: ArmRecords, before: ArmRun | None) -> ArmRun:
    ended, proofs = work.ended, [_verify(name, work, records)]
    lag_ms = (ended.client_lag.max_ms if ended else None) or 0.0
    return ArmRun(
        name=name,
        tally=work.tally,
        wrong=tuple(records.wrong),
        foreign=tuple(records.foreign),
        records=tuple(records.kept),
        verification=combine([before.verification, *proofs] if before else proofs),
        begun=len(work.tally.by_session.keys() | work.tally.failed_sessions),
        rounds=1 if before is None else before.rounds + 1,
        wedge=work.wedge,
        lag_ms=max(lag_ms, before.lag_ms if before else 0.0),
        restored_tokens=None,
        interrupted=work.interrupted,
        seconds=(before.seconds if before else 0.0) + (ended.elapsed_s if ended else 0.0),
    )


def _verify(name: ArmName, work: Work, records: ArmRecords) -> Verification:
    from dsv4doctor.experiment.proofs import verify

    settings = [parse_setting(f"{key}={value}") for key, value in FACTORS[name].items()]
    state = ServerState()
    return verify(settings, state, state, traces_of(work, records))


def different_sessions(wrong: Sequence[Request], most: int) -> tuple[Request, ...]:
    """Up to `most` of the wrong requests, of as many sessions as there are."""
    chosen: list[Request] = []
    left = list(wrong)
    while left and len(chosen) < most:
        taken: set[int] = set()
        for request in list(left):
            if request[0] not in taken and len(chosen) < most:
                taken.add(request[0])
                chosen.append(request)
                left.remove(request)
    return tuple(sorted(chosen))
