"""The prefill engine of a disaggregated lab: one token a request, and its pages on their way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dsv4doctor.lab.assembly import check
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.engine import Engine
from dsv4doctor.lab.faults import fault_named, standing
from dsv4doctor.lab.pd.physics import physics_of
from dsv4doctor.lab.pd.transfer import TransferWorkers
from dsv4doctor.lab.pd.wire import Handover
from dsv4doctor.lab.releases import NEWEST, RELEASES, release_named
from dsv4doctor.lab.requests import EngineRequest, Generation

# The first release whose prefill engine says that its bootstrap thread has died.
_TELLING = release_named("0.5.21")


class PrefillEngine:
    """An `Engine` whose batches are handed to `deliver` as they are done (`rounds.ServingEngine`).

    Aborts are no business of this engine's streams: they come as messages to the bootstrap thread.
    """

    def __init__(
        self,
        config: EngineConfig,
        ground_truth: Path | None,
        deliver: Callable[[list[Handover]], None],
    ) -> None:
        check(config)
        kept = (n for n in config.faults if not fault_named(n).abort_kills_transfer_thread)
        own = replace(config, faults=tuple(kept) or ("none",), decodes=False)
        self._engine = Engine(own, ground_truth)
        workers = TransferWorkers(self._engine.prefill, self._engine.device, physics_of(config))
        self._engine.prefill.sender = workers
        self._engine.on_prefilled = lambda batch: deliver(workers.take(batch))
        faults = standing(config.faults, config.fixes)
        self.knows_abort = not any(fault.abort_kills_transfer_thread for fault in faults)
        release = release_named(config.as_version) if config.as_version else NEWEST
        self.tells_of_thread_death = release in RELEASES[RELEASES.index(_TELLING) :]
        self.max_prompt_tokens = self._engine.max_prompt_tokens
        self.parser_leaks_negative_numbers = self._engine.parser_leaks_negative_numbers

    @property
    def engine(self) -> Engine:
        return self._engine

    def prompt_tokens(self, request: EngineRequest) -> int:
        return self._engine.prompt_tokens(request)

    def serve_round(self, requests: Sequence[EngineRequest]) -> list[Generation]:
        """The first token of every reply; the rest is the decode engine's."""
        return self._engine.serve_round([replace(one, max_tokens=1) for one in requests])

    def on_abort(self, rid: str) -> None:
        self._engine.on_abort(rid)

    def flush_cache(self) -> bool:
        return self._engine.flush_cache()

    def gauges(self) -> Mapping[str, float]:
        return self._engine.gauges()

    def close(self) -> None:
        self._engine.close()
