"""A page's way through one rank or two, as probes would tell it: every hop right, or one wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from dsv4doctor.probe_protocol import (
    ARRIVE,
    BACKUP,
    HELD,
    HOST,
    HOST_LOAD,
    LOAD,
    READ,
    SEND,
    STORE,
    Observation,
)

RIGHT = "00" * 8
WRONG = "bad0" * 4
ROOM = 7


def observation(hop: str, seq: int, **fields: object) -> Observation:
    """One layer of page 3 (host page 9) at one hop, with the right bytes."""
    base = Observation(
        seq=seq,
        hop=hop,
        pool="index_k",
        layer=2,
        digest=RIGHT,
        time_ms=1000.0 + seq,
        page=3,
        host_page=9 if hop in (BACKUP, HOST, HOST_LOAD, LOAD) else None,
        request="r1",
        index=5,
        transfer={BACKUP: 1, HOST: 1, HOST_LOAD: 2, LOAD: 2, READ: 2}.get(hop),
        ordered=True if hop == READ else None,
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def way(*hops: str, wrong: dict[str, str] | None = None) -> Iterator[Observation]:
    """Observations of these hops in order; `wrong` gives some of them other bytes."""
    numbers = count(1)
    for hop in hops:
        room = ROOM if hop in (SEND, ARRIVE) else None
        yield observation(hop, next(numbers), digest=(wrong or {}).get(hop, RIGHT), room=room)


PREFILL_WAY = (STORE, BACKUP, HOST, HOST_LOAD, LOAD, READ, SEND)
AGGREGATED_WAY = (STORE, BACKUP, HOST, HOST_LOAD, LOAD, READ, HELD)
DECODE_WAY = (ARRIVE, READ, HELD)
