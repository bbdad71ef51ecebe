"""One benchmarked request as the metrics see it, read from its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request. Times in ms, `sent_unix` in seconds; `failure` is None for a whole reply.

    `output_tokens` is what the server counted, or for want of that the chunks that carried output
    (`counted` is then False). `ttft_ms` is None without a streamed token. `corrupted` is None where
    the reply was not judged.
    """

    sent_unix: float
    ttft_ms: float | None
    itl_ms: tuple[float, ...]
    e2e_latency_ms: float
    input_tokens: int
    output_tokens: int
    counted: bool
    failure: str | None = None
    corrupted: bool | None = None

    @property
    def end_unix(self) -> float:
        return self.sent_unix + self.e2e_latency_ms / 1000

    @property
    def chunks(self) -> int:
        """Chunks that carried output; every gap lies between two of them."""
        return 0 if self.ttft_ms is None else len(self.itl_ms) + 1

    @property
    def tpot_ms(self) -> float | None:
        """(E2E - TTFT) / (output tokens - 1); None below two tokens or without a first one."""
        if self.ttft_ms is None or self.output_tokens < 2:
            return None
        return (self.e2e_latency_ms - self.ttft_ms) / (self.output_tokens - 1)

    @property
    def tokens_per_s(self) -> float | None:
        """The pace of this one stream once it runs: the reciprocal of its TPOT."""
        tpot = self.tpot_ms
        return 1000 / tpot if tpot else None


def sample_of(record: Mapping[str, Any]) -> Sample:
    """The sample of one record in the form of `record.record_of`."""
    ttft = record["ttft_ms"] if record["stream"] else None
    gaps = tuple(record["itl_ms"]) if ttft is not None else ()
    counted = record["completion_tokens"]
    failure = record["failure"]
    return Sample(
        sent_unix=record["sent_unix"],
        ttft_ms=ttft,
        itl_ms=gaps,
        e2e_latency_ms=record["e2e_latency_ms"],
        input_tokens=record["prompt_tokens"] or 0,
        output_tokens=(len(gaps) + 1 if ttft is not None else 0) if counted is None else counted,
        counted=counted is not None,
        failure=failure["kind"] if failure else None,
        corrupted=None if record["primary"] is None or failure else bool(record["corrupted"]),
    )
