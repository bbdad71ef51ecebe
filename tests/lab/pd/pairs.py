"""A prefill and a decode engine in one process, joined as the wire joins them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.pd.decode import DecodeEngine
from dsv4doctor.lab.pd.prefill import PrefillEngine
from dsv4doctor.lab.pd.wire import Handover
from dsv4doctor.lab.requests import EngineRequest, Generation, Room


class Pair:
    """Serves rounds as an `Engine` does, through both engines."""

    def __init__(self, **settings: object) -> None:
        config = EngineConfig(**settings)  # type: ignore[arg-type]
        self.batches: list[list[Handover]] = []
        self.prefill = PrefillEngine(config, None, self.batches.append)
        self.decode = DecodeEngine(config)

    @property
    def stale_reads(self) -> tuple[int, int]:
        """What the prefill engine and what the decode engine read that was not right."""
        prefill, decode = self.prefill.engine.ground_truth, self.decode.ground_truth
        return prefill.stale_reads, decode.stale_reads

    def serve_round(self, requests: Sequence[EngineRequest]) -> list[Generation]:
        rooms = dict(enumerate(requests))
        self.batches.clear()
        first_tokens = self.prefill.serve_round(
            [
                replace(request, room=Room(host="", port=0, number=number))
                for number, request in rooms.items()
            ]
        )
        answers = {token.rid: token for token in first_tokens if token.hung}
        for batch in self.batches:
            for generation in self.decode.serve_transferred(batch, rooms):
                answers[generation.rid] = generation
        return [answers[request.rid] for request in requests]
