"""A prefill and a decode engine in one process, joined as the wire joins them."""

from __future__ import annotations

from collections.abc import Sequence

from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.pd.decode import DecodeEngine
from dsv4doctor.lab.pd.prefill import PrefillEngine
from dsv4doctor.lab.pd.wire import Handover
from dsv4doctor.lab.requests import EngineRequest, Generation


class Pair:
    """Serves rounds as an `Engine` does, through both engines."""

    def __init__(self, **settings: object) -> None:
        config = EngineConfig(**settings)  # type: ignore[arg-type]
        self.batches: list[list[Handover]] = []
        self.prefill = PrefillEngine(config, None, self.batches.append)
        self.decode = DecodeEngine(config)
        self.first_tokens: list[Generation] = []

    def serve_round(self, requests: Sequence[EngineRequest]) -> list[Generation]:
        rooms = dict(enumerate(requests))
        numbered = [
            EngineRequest(
                rid=request.rid,
                messages=request.messages,
                tools=request.tools,
                tool_choice=request.tool_choice,
                max_tokens=request.max_tokens,
                room=number,
            )
            for number, request in rooms.items()
        ]
        self.batches.clear()
        self.first_tokens = self.prefill.serve_round(numbered)
        answers: dict[str, Generation] = {}
        for batch in self.batches:
            for generation in self.decode.serve_transferred(batch, rooms):
                answers[generation.rid] = generation
        return [answers[request.rid] for request in requests]
