"""The lab's probe: armed or not, what it has counted, and its answer to every command.

It speaks the protocol of `dsv4doctor.probe_protocol` as the plugin in a real SGLang does. Digests
are the lab's own (SHA-256, which processors compute in hardware): only whether two are equal says
anything, and a check that shared the doctor's function would share its mistakes. Commands come
between two observations, from any thread.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from dsv4doctor import __version__
from dsv4doctor.lab.layouts import Bytes
from dsv4doctor.lab.probe_ring import KEPT_RECORDS, Entry, Ring
from dsv4doctor.probe_protocol import (
    ARRIVE,
    BACKUP,
    COMMANDS,
    DEFAULT_MAX_BYTES_PER_STEP,
    DEFAULT_MAX_SHARE,
    DIGEST_DIGITS,
    GAP,
    HOPS,
    HOST,
    INDEX_K,
    LOAD,
    MOST_RECORDS_A_DRAIN,
    NOT_OBSERVABLE,
    PROTOCOL,
    STORE,
    UNSEEN,
    YES,
)

# The lab's main page holds a token range's c4 and c128 latents together; it goes by this name.
LATENT = "c4"
# Hops that give a device page its bytes; one that is left out makes the page unknown.
_SETS_DEVICE = frozenset({STORE, LOAD, ARRIVE})
_SETS_HOST = frozenset({BACKUP, HOST})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedRank:
    """Who observes what: the rank's role, the release it stands for, its pools' pages.

    `page_bytes` is by pool; `layout` is the index-K format.
    """

    role: str
    version: str | None
    layout: str
    layers: int
    pages: int
    page_bytes: Mapping[str, int]
    page_tokens: int
    hops: frozenset[str]
    why_not: Mapping[str, str] = field(default_factory=dict)


class LabProbe:
    """One rank's probe. Off until it is armed."""

    def __init__(self, rank: ProbedRank, *, capacity: int = KEPT_RECORDS) -> None:
        self.rank = rank
        self.armed = False
        self.socket_path: Path | None = None
        self.file_path: Path | None = None
        self.on_retire: Callable[[], None] = lambda: None
        self._ring = Ring(capacity)
        self._lock = threading.RLock()
        self._forget_counts()
        self._session: str | None = None
        self._settings: dict[str, Any] = {}
        self._to_perturb: dict[tuple[str, str], int] = {}
        self._step: int | None = None
        self._step_bytes = 0
        self._step_began_s = 0.0

    def _forget_counts(self) -> None:
        self._counts: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._cost = {"bytes": 0, "hook_ms": 0.0, "device_ms": 0.0, "steps": 0, "step_ms": 0.0}
        self._perturbed: list[dict[str, Any]] = []

    # What the engine calls.

    def begin_step(self) -> None:
        """A forward is about to be launched."""
        with self._lock:
            self._step = (self._step or 0) + 1
            self._step_bytes = 0
            self._step_began_s = time.perf_counter()

    def end_step(self) -> None:
        """It is over."""
        if self.armed:
            with self._lock:
                self._cost["steps"] += 1
                self._cost["step_ms"] += (time.perf_counter() - self._step_began_s) * 1000

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools that are observed now; none while not armed."""
        return self._settings["pools"] if self.armed else ()

    def launch(self, hop: str, pool: str, layers: Sequence[int], **fields: Any) -> Entry | None:
        """Number an observation; None where it is not made (not armed, or over the bound)."""
        if pool not in self.pools:
            return None
        with self._lock:
            size = len(layers) * self.rank.page_bytes[pool]
            if self._step_bytes + size > self._settings["max_bytes_per_step"]:
                self._skip(hop, pool, fields)
                return None
            self._step_bytes += size
            self._counts[hop] += 1
            record = {
                "hop": hop,
                "t": time.time() * 1000,
                "step": self._step,
                "pool": pool,
                "layers": list(layers),
                "digests": [""] * len(layers),
                **fields,
            }
            return self._ring.add(record, len(layers))

    def _skip(self, hop: str, pool: str, fields: Mapping[str, Any]) -> None:
        """Over the bound: say what is known no longer."""
        self._skipped["limit"] += 1
        now = time.time() * 1000
        if hop in _SETS_DEVICE:
            record = {"hop": UNSEEN, "t": now, "pool": pool, "page": fields["page"]}
            self._ring.add({**record, "reason": "limit"}, 0)
        elif hop in _SETS_HOST:
            self._ring.add({"hop": GAP, "t": now, "reason": "limit", "missed": 1}, 0)

    def digest(self, entry: Entry | None, layer: int, data: Bytes) -> None:
        """The page's bytes of one layer, now that the stream has come to the observation."""
        if entry is None:
            return
        began_s = time.perf_counter()
        with self._lock:
            if (entry.fields["hop"], entry.fields["pool"]) in self._to_perturb:
                data = self._flip(entry, layer, data)
            found = sha256(data.tobytes()).hexdigest()[:DIGEST_DIGITS]
            entry.fields["digests"][entry.fields["layers"].index(layer)] = found
            self._cost["bytes"] += len(data)
            self._cost["hook_ms"] += (time.perf_counter() - began_s) * 1000
            self._ring.came(entry)

    def _flip(self, entry: Entry, layer: int, data: Bytes) -> Bytes:
        """A copy with one byte flipped: what the digest sees, and nobody else."""
        hop, pool = entry.fields["hop"], entry.fields["pool"]
        seed = self._to_perturb.pop((hop, pool))
        draw = blake2b(f"{seed} {hop}".encode(), digest_size=8).digest()
        offset = int.from_bytes(draw, "little") % len(data)
        flipped = data.copy()
        flipped[offset] ^= 0xFF
        self._perturbed.append(
            {
                "hop": hop,
                "seq": entry.number,
                "pool": pool,
                "layer": layer,
                "page": entry.fields.get("page"),
                "host_page": entry.fields.get("host_page"),
                "offset": offset,
            }
        )
        return flipped

    # What a client asks.

    def answer(self, request: Any) -> dict[str, Any]:
        """The answer to one request of the protocol, whatever it holds."""
        try:
            fields = self._checked(request)
            with self._lock:
                said = getattr(self, f"_{fields['command']}")(fields)
            return {"v": PROTOCOL, "ok": True, **said}
        except (ValueError, OSError) as error:
            return {"v": PROTOCOL, "ok": False, "error": str(error)}

    def _checked(self, request: Any) -> Mapping[str, Any]:
        if not isinstance(request, Mapping) or request.get("v") != PROTOCOL:
            raise ValueError(f"this probe speaks protocol {PROTOCOL}")
        if request.get("command") not in COMMANDS:
            raise ValueError(f"no command {request.get('command')!r}: {', '.join(COMMANDS)}")
        return request

    def _status(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"status": self.status()}

    def _arm(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        pools = fields.get("pools", [INDEX_K])
        if not pools or not set(pools) <= self.rank.page_bytes.keys():
            raise ValueError(f"the lab has the pools {', '.join(self.rank.page_bytes)}: {pools}")
        self._settings = {
            "pools": tuple(pools),
            "max_bytes_per_step": _positive(fields, "max_bytes_per_step", int)
            or DEFAULT_MAX_BYTES_PER_STEP,
            # The lab's time is virtual: a digest takes none of it.
            "max_share": _positive(fields, "max_share", float) or DEFAULT_MAX_SHARE,
            "to_file": bool(fields.get("to_file")),
        }
        self._ring.begin(self.file_path if self._settings["to_file"] else None)
        self._forget_counts()
        self._to_perturb.clear()
        self._session = str(fields.get("session", ""))
        self.armed = True
        return {"status": self.status()}

    def _disarm(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self.armed = False
        self._to_perturb.clear()
        return {"status": self.status()}

    def _perturb(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        hop = fields.get("hop")
        if not self.armed:
            raise ValueError("arm the probe first: nothing is observed")
        if hop == STORE or hop not in self.rank.hops:
            raise ValueError(f"no byte can be flipped at {hop!r} here")
        pool = fields.get("pool", INDEX_K)
        if pool not in self.pools:
            raise ValueError(f"{pool!r} is not observed: {', '.join(self.pools)}")
        self._to_perturb[hop, pool] = int(fields.get("seed", 0))
        return {"status": self.status()}

    def _drain(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        after = fields.get("after", 0)
        limit = fields.get("limit", MOST_RECORDS_A_DRAIN)
        if not isinstance(after, int) or not isinstance(limit, int) or limit < 1:
            raise ValueError("drain takes whole numbers, `limit` above 0")
        return self._ring.drain(after, limit)

    def _retire(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self.armed = False
        said = {"status": self.status()}
        self.on_retire()
        return said

    def status(self) -> dict[str, Any]:
        """What the probe says of itself; native to JSON."""
        rank = self.rank
        with self._lock:
            return {
                "protocol": PROTOCOL,
                "probe": __version__,
                "engine": "lab",
                "version": rank.version,
                "rank": self._rank_fields(),
                "armed": self.armed,
                "session": self._session,
                "observes": {hop: self._observes(hop) for hop in HOPS},
                "pools": [
                    {
                        "pool": pool,
                        "layout": rank.layout if pool == INDEX_K else pool,
                        "layers": list(range(rank.layers)),
                        "pages": rank.pages,
                        "page_bytes": page_bytes,
                        "page_tokens": rank.page_tokens,
                    }
                    for pool, page_bytes in rank.page_bytes.items()
                ],
                "settings": {**self._settings, "pools": list(self._settings.get("pools", ()))},
                "counts": dict(self._counts),
                "skipped": dict(self._skipped),
                "cost": dict(self._cost),
                "perturbed": [dict(each) for each in self._perturbed],
                "failures": [],
                "kept": self._ring.kept,
                "lost": self._ring.lost,
                "socket": str(self.socket_path) if self.socket_path else None,
                "file": str(self.file_path) if self._settings.get("to_file") else None,
            }

    def _rank_fields(self) -> dict[str, Any]:
        host = socket.gethostname()
        role = self.rank.role
        return {"role": role, "dp": 0, "tp": 0, "pp": 0, "pid": os.getpid(), "host": host}

    def _observes(self, hop: str) -> str:
        if hop in self.rank.hops:
            return YES
        return f"{NOT_OBSERVABLE}: {self.rank.why_not.get(hop, 'this rank has no such step')}"

    def close(self) -> None:
        """Observe no more; the file is closed."""
        self.armed = False
        self._ring.close()


def _positive(fields: Mapping[str, Any], name: str, kind: type) -> Any:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or value <= 0:
        raise ValueError(f"{name} is {value!r}, not a positive number")
    return kind(value)
