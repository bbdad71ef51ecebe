"""The probe's protocol: what is asked of it, and what it tells of cache pages (`docs/probe.md`).

Every value on the wire is native to JSON and msgpack. A *record* says what one page looked like at
one hop, in one or more layers; `parse_record` spreads it into one `Observation` a layer. The module
is shipped to hosts with the probe, so it imports nothing and runs on Python 3.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PROTOCOL = 1
STATE_KEY = "dsv4doctor"  # in /server_info's internal_states[]

# The hops of a page's bytes, in the order in which they happen.
STORE = "store"  # device, after the forward that filled the page's last slot
BACKUP = "backup"  # device, on the copy's stream, before it is copied to the host
HOST = "host"  # host, after that copy
HOST_LOAD = "host_load"  # host, on the load's stream, before it is copied back
LOAD = "load"  # device, after that copy
READ = "read"  # device, on the reader's stream, as the indexer asks for the layer
HELD = "held"  # device, between two decode steps (graph replays run no hooks)
SEND = "send"  # device of the prefill side, when the page is handed to the transfer
ARRIVE = "arrive"  # device of the decode side, when the transfer reports its end
HOPS = (STORE, BACKUP, HOST, HOST_LOAD, LOAD, READ, HELD, SEND, ARRIVE)
# Not observations, but what a reader must know to draw no wrong conclusion.
UNSEEN = "unseen"  # these pages' bytes are rightly replaced and not digested: forget them
GAP = "gap"  # something was missed: forget every device page of this rank
REUSED = "reused"  # the reason for host pages that are about to be written anew: nothing is missed
# Where bytes rightly change, by the hops that would take an unseen change for a wrong one.
NEEDED_BY = {
    BACKUP: (STORE, LOAD, ARRIVE),
    READ: (STORE, LOAD, ARRIVE),
    HELD: (STORE, LOAD, ARRIVE),
    SEND: (STORE, LOAD, ARRIVE),
    HOST_LOAD: (HOST,),
}
# Hops whose bytes can be flipped for the self-test: each has a hop before it to differ from.
PERTURBABLE = (BACKUP, HOST, HOST_LOAD, LOAD, READ, HELD, SEND, ARRIVE)

WAITED = "waited"  # the reader's stream waits for the layer's load
COMPLETE = "complete"  # the layer's load had ended when the read was launched
MISSED = "missed"  # neither: the read may run before the load's end
GATES = (WAITED, COMPLETE, MISSED)

INDEX_K = "index_k"
POOLS = (INDEX_K, "c4", "c128")

YES = "yes"
NOT_OBSERVABLE = "not observable on this version"  # followed by ": " and why
DISABLED = "disabled"  # followed by ": " and the failure that did it

DIGEST_DIGITS = 16
DEFAULT_MAX_BYTES_PER_STEP = 64 << 20
DEFAULT_MAX_SHARE = 0.02  # of the scheduler's time
MOST_RECORDS_A_DRAIN = 5000


class ProtocolError(ValueError):
    """What came is not of this protocol; the message says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One scheduler process. `role` is prefill, decode or aggregated."""

    role: str = "aggregated"
    dp: int = 0
    tp: int = 0
    pp: int = 0
    pid: int = 0
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One layer's bytes of one page at one hop.

    `seq` is the order in which the rank's scheduler launched its observations, `time_ms` the host's
    wall clock at launch. `page` and `host_page` are page ids, `index` the page's place in its
    request (tokens 256·index on), `transfer` the number of the HiCache copy that moved the page
    (for a read: of the load that last brought it). `ordered` says whether a read was ordered behind
    that load (None: no load of this rank brought the page), `gate` how, and `distance_ms` how long
    after the load's end the read ran (negative: before it; None: not measured).
    """

    seq: int
    hop: str
    pool: str
    layer: int
    digest: str
    time_ms: float
    step: int | None = None
    page: int | None = None
    host_page: int | None = None
    request: str | None = None
    room: int | None = None
    index: int | None = None
    transfer: int | None = None
    ordered: bool | None = None
    gate: str | None = None
    distance_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """`page` or `host_page` of `pool` is known no longer, and why; neither: no page of the rank."""

    seq: int
    time_ms: float
    pool: str | None
    page: int | None
    reason: str
    missed: int = 0
    host_page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPool:
    """A pool that the rank can observe: the model's layers that have it, and its geometry."""

    pool: str
    layout: str
    layers: tuple[int, ...]
    pages: int
    page_bytes: int
    page_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """One byte that the self-test flipped and put back, seen by observation `seq` only."""

    hop: str
    seq: int
    pool: str
    layer: int
    page: int | None
    host_page: int | None
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What one rank's probe says of itself.

    `observes` maps every hop to `yes`, or to `not observable on this version: …`, or to
    `disabled: …`. `skipped` counts pages not digested, by reason. `cost` holds `bytes` digested,
    `hook_ms` spent on the scheduler's thread, `device_ms` of digests, `steps` and `step_ms` since
    it was armed.
    """

    probe: str
    engine: str
    version: str | None
    rank: Rank
    armed: bool
    session: str | None
    observes: Mapping[str, str]
    pools: tuple[WatchedPool, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    cost: Mapping[str, float] = field(default_factory=dict)
    perturbed: tuple[Perturbation, ...] = ()
    failures: tuple[str, ...] = ()
    kept: int = 0
    lost: int = 0
    socket: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """The answer to `drain`: what was launched after the asked-for sequence number.

    `next_after` goes into the next `drain`; `left` records wait; `lost` were overwritten unread
    since the probe was armed.
    """

    observations: tuple[Observation, ...]
    forgotten: tuple[Forgotten, ...]
    next_after: int
    left: int
    lost: int


def arm(
    session: str,
    *,
    pools: Sequence[str] = (INDEX_K,),
    max_bytes_per_step: int = DEFAULT_MAX_BYTES_PER_STEP,
    max_share: float = DEFAULT_MAX_SHARE,
    to_file: bool = False,
) -> dict[str, Any]:
    """Begin to observe, from nothing: earlier records and counts are dropped."""
    return {
        **_request("arm"),
        "session": session,
        "pools": list(pools),
        "max_bytes_per_step": max_bytes_per_step,
        "max_share": max_share,
        "to_file": to_file,
    }


def disarm() -> dict[str, Any]:
    """Stop observing; records stay to be drained."""
    return _request("disarm")


def perturb(hop: str, *, pool: str = INDEX_K, seed: int = 0) -> dict[str, Any]:
    """Flip one byte of the next page that reaches `hop`, digest it, and flip it back."""
    return {**_request("perturb"), "hop": hop, "pool": pool, "seed": seed}


def drain(after: int = 0, *, limit: int = MOST_RECORDS_A_DRAIN) -> dict[str, Any]:
    """Hand over records with a sequence number above `after`; those up to it are released."""
    return {**_request("drain"), "after": after, "limit": limit}


def status() -> dict[str, Any]:
    """Say how it stands."""
    return _request("status")


def retire() -> dict[str, Any]:
    """Disarm for good: remove socket and files; the hooks stay and do nothing."""
    return _request("retire")


def _request(command: str) -> dict[str, Any]:
    return {"v": PROTOCOL, "command": command}


COMMANDS = ("arm", "disarm", "perturb", "drain", "status", "retire")


def parse_answer(document: Any) -> Mapping[str, Any]:
    """The answer's fields.

    Raises:
        ProtocolError: if it is of another version, or the probe refused the command.
    """
    answer = _mapping(document, "answer")
    if answer.get("v") != PROTOCOL:
        raise ProtocolError(f"the probe speaks protocol {answer.get('v')!r}, not {PROTOCOL}")
    if answer.get("ok") is not True:
        raise ProtocolError(f"the probe refused: {answer.get('error')}")
    return answer


def parse_status(document: Any) -> Status:
    """A status, from an answer's `status` or from `/server_info`.

    Raises:
        ProtocolError: if it is of another version or a field is missing or of another type.
    """
    said = _mapping(document, "status")
    if said.get("protocol") != PROTOCOL:
        raise ProtocolError(f"the probe speaks protocol {said.get('protocol')!r}, not {PROTOCOL}")
    try:
        return Status(
            probe=str(said["probe"]),
            engine=str(said["engine"]),
            version=said.get("version"),
            rank=Rank(**_mapping(said["rank"], "rank")),
            armed=bool(said["armed"]),
            session=said.get("session"),
            observes=dict(_mapping(said["observes"], "observes")),
            pools=tuple(
                WatchedPool(**{**each, "layers": tuple(each["layers"])})
                for each in said.get("pools", ())
            ),
            settings=dict(said.get("settings", {})),
            counts=dict(said.get("counts", {})),
            skipped=dict(said.get("skipped", {})),
            cost=dict(said.get("cost", {})),
            perturbed=tuple(Perturbation(**each) for each in said.get("perturbed", ())),
            failures=tuple(said.get("failures", ())),
            kept=int(said.get("kept", 0)),
            lost=int(said.get("lost", 0)),
            socket=said.get("socket"),
            file=said.get("file"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"status: {type(error).__name__}: {error}") from error


def parse_drained(document: Any) -> Drained:
    """The answer to `drain`.

    Raises:
        ProtocolError: if a record is not of this protocol; the message names it.
    """
    answer = parse_answer(document)
    seen: list[Observation] = []
    forgotten: list[Forgotten] = []
    for record in answer.get("records", ()):
        for each in parse_record(record):
            if isinstance(each, Observation):
                seen.append(each)
            else:
                forgotten.append(each)
    return Drained(
        observations=tuple(seen),
        forgotten=tuple(forgotten),
        next_after=int(answer.get("next", 0)),
        left=int(answer.get("left", 0)),
        lost=int(answer.get("lost", 0)),
    )


def parse_record(document: Any) -> tuple[Observation | Forgotten, ...]:
    """One line of a probe's file, or one record of a drain, by layer.

    Raises:
        ProtocolError: if it is not a record of this protocol.
    """
    record = _mapping(document, "record")
    try:
        hop = record["hop"]
        if hop == GAP:
            return (_forgotten(record),)
        if hop == UNSEEN and "host_pages" in record:
            return tuple(_forgotten(record, host_page=int(each)) for each in record["host_pages"])
        if hop == UNSEEN:
            return (_forgotten(record, page=int(record["page"])),)
        if hop not in HOPS:
            raise ProtocolError(f"record {record.get('n')}: no hop {hop!r}")
        return tuple(_observations(record))
    except ProtocolError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"record {record.get('n')}: {type(error).__name__}: {error}") from error


def _forgotten(
    record: Mapping[str, Any], *, page: int | None = None, host_page: int | None = None
) -> Forgotten:
    return Forgotten(
        seq=int(record["n"]),
        time_ms=float(record["t"]),
        pool=record.get("pool") if record["hop"] == UNSEEN else None,
        page=page,
        reason=str(record.get("reason", "")),
        missed=int(record.get("missed", 0)),
        host_page=host_page,
    )


def _observations(record: Mapping[str, Any]) -> list[Observation]:
    layers, digests = record["layers"], record["digests"]
    number = int(record["n"])
    by_layer = {}
    for name in ("ordered", "gate", "distance_ms"):
        found = record.get(name)
        by_layer[name] = [None] * len(layers) if found is None else found
        if len(by_layer[name]) != len(layers):
            raise ProtocolError(f"record {number}: {name} is not one a layer")
    if len(digests) != len(layers):
        raise ProtocolError(f"record {number}: {len(digests)} digests of {len(layers)} layers")
    if any(not isinstance(each, str) or len(each) != DIGEST_DIGITS for each in digests):
        raise ProtocolError(f"record {number}: a digest is not {DIGEST_DIGITS} hex digits")
    shared = {
        name: record.get(name)
        for name in ("step", "page", "host_page", "request", "room", "index", "transfer")
    }
    return [
        Observation(
            seq=number,
            hop=record["hop"],
            pool=str(record["pool"]),
            layer=int(layer),
            digest=digests[place],
            time_ms=float(record["t"]),
            ordered=by_layer["ordered"][place],
            gate=by_layer["gate"][place],
            distance_ms=by_layer["distance_ms"][place],
            **shared,
        )
        for place, layer in enumerate(layers)
    ]


def _mapping(document: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise ProtocolError(f"{what} is no object but {type(document).__name__}")
    return document
