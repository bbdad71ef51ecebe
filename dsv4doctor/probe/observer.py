"""What a rank's probe has and does: pools, ring, limits, and launches in their order.

All methods but those of the drainer run on the scheduler's thread. What each hop means is in
`hops.py`; what SGLang calls it by is in `plugin.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.accounts import Accounts
from dsv4doctor.probe.banks import Bank, find_banks
from dsv4doctor.probe.budget import Budget
from dsv4doctor.probe.devices import Device, device_for
from dsv4doctor.probe.journal import Journal
from dsv4doctor.probe.launches import Flip, Launch, LayerState, LoadRound, Wanted
from dsv4doctor.probe.ring import DEFAULT_WORDS, Ring

MOST_ROUNDS = 64
MOST_PERTURBED = 1000


class Observer(Accounts):
    """One scheduler process. Off until armed."""

    def __init__(self) -> None:
        super().__init__()
        self.retired = False
        self.session: str | None = None
        self.settings: dict[str, Any] = {}
        self.pool: Any = None
        self.banks: dict[str, Bank] = {}
        self.problems: dict[str, str] = {}
        self.watched: tuple[str, ...] = ()
        self.device: Device | None = None
        self.ring: Ring | None = None
        self.budget = Budget()
        self.journal = Journal()
        self.perturbed: list[dict[str, Any]] = []
        self.step: int | None = None
        self.rounds: dict[str, deque[LoadRound]] = {}
        self._to_flip: dict[tuple[str, str], int] = {}  # (hop, pool) -> seed
        self._is_warm = False
        self.ring_words = DEFAULT_WORDS

    # -- pools ------------------------------------------------------------------------------------

    def adopt(self, pool: Any, device: Device | None = None) -> bool:
        """Take a new `DeepSeekV4TokenToKVPool`: find its tensors, make the ring, warm kernels up.

        A draft model's pool has fewer indexer layers than its target's, or none, and is left alone.
        Called before graphs are captured.
        """
        banks, problems = find_banks(pool)
        bank, known = banks.get(protocol.INDEX_K), self.banks.get(protocol.INDEX_K)
        if known is None:
            self.problems = problems
        if bank is None or (known is not None and len(known.layers) >= len(bank.layers)):
            return False
        self.problems = problems
        self.pool, self.banks = pool, banks
        self.device = device or device_for(bank)
        self.ring = Ring(self.device, self.ring_words)
        self._is_warm = False
        # Such a pool has addresses now, and memory behind them only after capture.
        if not getattr(pool, "post_capture_active", False):
            self._warm_up()
        return True

    def _warm_up(self) -> None:
        """Compile what will be launched, on page 0, where padding is written."""
        assert self.device is not None
        assert self.ring is not None
        for bank in self.banks.values():
            table, out = self.ring.words[:1], self.ring.words[1 : 1 + len(bank.layers)]
            self.device.confine(table, bank.pages)
            self.device.digest(bank, range(len(bank.layers)), table, out)
            # Twice: what was there stays.
            self.device.flip(bank, 0, table, 0, 0)
            self.device.flip(bank, 0, table, 0, 0)
        self.ring.words[: 1 + max(len(bank.layers) for bank in self.banks.values())] = 0
        self._is_warm = True

    # -- commands ---------------------------------------------------------------------------------

    def arm(self, request: Mapping[str, Any], file: Path | None) -> None:
        """Begin anew under the request's settings.

        Raises:
            ValueError: if a setting is none.
        """
        if self.pool is None:
            why = "".join(f": {name}: {problem}" for name, problem in self.problems.items())
            raise ValueError(f"this process has no DeepSeek-V4 cache that can be read{why}")
        pools = tuple(request.get("pools") or (protocol.INDEX_K,))
        for name in pools:
            if name not in self.banks:
                why = self.problems.get(name, "the model has none")
                raise ValueError(f"pool {name!r} cannot be observed: {why}")
        most = int(request.get("max_bytes_per_step", protocol.DEFAULT_MAX_BYTES_PER_STEP))
        share = float(request.get("max_share", protocol.DEFAULT_MAX_SHARE))
        if most < 0 or not 0 <= share <= 1:
            raise ValueError("max_bytes_per_step is at least 0, max_share from 0 to 1")
        if not self._is_warm:
            self._warm_up()
        self.session = str(request.get("session") or "")
        self.sessions += 1
        self.watched = pools
        self.settings = {"pools": list(pools), "max_bytes_per_step": most, "max_share": share}
        self.journal.begin(file)
        self.counts, self.skipped, self.perturbed = {}, {}, []
        self.rounds = {name: deque(maxlen=MOST_ROUNDS) for name in pools}
        self._to_flip, self._is_blank = {}, False
        self.budget.begin(most, share)
        self.armed = True

    def disarm(self) -> None:
        self.armed = False
        self._to_flip = {}
        self.abandon_open()

    def perturb(self, request: Mapping[str, Any]) -> None:
        """Flip a byte at the next launch of a hop.

        Raises:
            ValueError: if that cannot be.
        """
        hop, pool = request.get("hop"), request.get("pool", protocol.INDEX_K)
        if hop not in protocol.PERTURBABLE:
            raise ValueError(f"no byte can be flipped at {hop!r}")
        if not self.armed or pool not in self.watched:
            raise ValueError(f"{pool!r} is not being observed: arm first")
        if self.observes[hop] != protocol.YES:
            raise ValueError(f"{hop}: {self.observes[hop]}")
        self._to_flip[hop, pool] = int(request.get("seed", 0))

    # -- launches ---------------------------------------------------------------------------------

    def open(self, wanted: Wanted) -> Launch | None:
        """Room for the wanted pages, or None where limit or ring forbid it.

        Pages whose bytes have rightly changed are at least named where they are not digested, and
        failing that a gap is noted.
        """
        bank, count, hop = wanted.bank, wanted.count, wanted.hop
        if count <= 0 or self.ring is None or self.device is None:
            return None
        if not wanted.forgets and self.observes[hop] != protocol.YES:
            return None
        if self.device.is_capturing():  # nothing of ours may become part of a graph
            self.skip(count, "capture")
            if wanted.forgets:
                self.note_gap("capture", count)
            return None
        places = tuple(range(len(bank.layers)))
        if count * len(places) * bank.layout.digested_bytes > self.budget.left_bytes:
            self.skip(count, "limit")
            if not wanted.forgets:
                return None
            if self.budget.left_ms <= 0:  # naming pages costs time too
                self.note_gap("the bound on time was reached", count)
                return None
            places, hop = (), protocol.UNSEEN
        slot = self.ring_reserve(count * (2 + len(places)))
        if slot is None:
            self.skip(count, "ring")
            if wanted.forgets:
                self.note_gap("the ring was full", count)
            return None
        launch = Launch(
            hop=hop, bank=bank, layers=places, count=count, seq=self._take_numbers(count),
            slot=slot, step=self.step, session=self.sessions, owners=wanted.owners,
            transfer=wanted.transfer, has_host_pages=wanted.has_host_pages,
            reason="limit" if hop == protocol.UNSEEN else "",
        )  # fmt: skip
        self.queue.append(launch)
        self._is_blank = False
        return launch

    def ring_reserve(self, words: int) -> Any:
        assert self.ring is not None
        with self.lock:
            return self.ring.reserve(words)

    def put_pages(
        self, launch: Launch, pages: Any = None, host_pages: Any = None, host: Bank | None = None
    ) -> None:
        """Page ids into the launch's tables, on the current stream. An id that is no page's becomes
        0: whatever the ids mean on some release, no kernel of ours reads outside a pool."""
        assert self.device is not None
        assert self.ring is not None
        if pages is None:
            launch.has_pages = False
        else:
            target = self.ring.device_words(launch.slot, 0, launch.count)
            self.device.put(target, pages)
            self.device.confine(target, launch.bank.pages)
        if host_pages is not None:
            target = self.ring.device_words(launch.slot, launch.count, launch.count)
            self.device.put(target, host_pages)
            self.device.confine(target, (host or launch.bank).pages)

    def digest(
        self, launch: Launch, layers: Sequence[int], *, bank: Bank | None = None,
        state: LayerState | None = None,
    ) -> None:  # fmt: skip
        """Digest those layers of the launch's pages on the current stream, flipped if so asked."""
        assert self.device is not None
        assert self.ring is not None
        if not layers:
            return
        source, table_at = bank or launch.bank, launch.count if bank is not None else 0
        table = self.ring.device_words(launch.slot, table_at, launch.count)
        first = launch.digests_at(layers[0])
        out = self.ring.device_words(launch.slot, first, launch.count * len(layers))
        flip = self._flip_for(launch, layers)
        begin = self.device.mark()
        if flip is not None:
            self.device.flip(source, flip.layer, table, flip.row, flip.offset)
        self.device.digest(source, layers, table, out)
        if flip is not None:
            self.device.flip(source, flip.layer, table, flip.row, flip.offset)
        launch.spans.append((begin, self.device.mark()))
        for layer in layers:
            launch.digested[layer] = state or LayerState()
        self.budget.spend(launch.count * len(layers) * launch.bank.layout.digested_bytes)

    def _flip_for(self, launch: Launch, layers: Sequence[int]) -> Flip | None:
        seed = self._to_flip.pop((launch.hop, launch.bank.pool), None)
        if seed is None:
            return None
        layout = launch.bank.layout
        launch.flip = Flip(
            row=seed % launch.count,
            layer=layers[(seed // launch.count) % len(layers)],
            offset=(seed * 2654435761 + 12345) % (layout.rows * layout.row_words * 4),
        )
        return launch.flip

    def seal(self, launch: Launch) -> None:
        """Nothing more comes: bring the words back, on the current stream."""
        assert self.device is not None
        assert self.ring is not None
        on_device, on_host = self.ring.whole(launch.slot)
        self.device.fetch(on_host, on_device)
        launch.done = self.device.mark()

    def abandon(self, launch: Launch) -> None:
        """Its words will never be complete."""
        launch.is_abandoned = True

    def abandon_open(self) -> None:
        for launch in list(self.queue):
            if isinstance(launch, Launch) and launch.done is None:
                launch.is_abandoned = True
