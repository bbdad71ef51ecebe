"""What came back for one request: the reply, when its parts came, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.exchange import Response
from dsv4doctor.label import Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why there is no response to judge; `kind` is one of `label.FAILURES`.

    `is_stranger` says that what answered is no such server: another protocol, or a page.
    """

    kind: Label
    message: str
    http_status: int | None = None
    is_stranger: bool = False

    @property
    def is_refusal(self) -> bool:
        """True where something answered that will not serve such a request, however long one
        waits: neither silence nor a reply that broke off."""
        return self.kind is Label.HTTP_ERROR or self.is_stranger


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts as the server reported them; None where it did not."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When things happened. `sent_unix` is the wall clock in seconds, the rest durations from it.

    `itl_ms` are the gaps between consecutive content chunks; `queue_ms` is how long the request
    waited in this client before it was sent.
    """

    sent_unix: float
    queue_ms: float
    ttft_ms: float | None
    itl_ms: tuple[float, ...]
    e2e_latency_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One request's outcome. `response` is what was received, also when `failure` cut it short;
    `raw` are the body's bytes as received (cut at a stated limit, then `raw_truncated`)."""

    response: Response
    failure: Failure | None
    aborted: bool
    usage: Usage
    timing: Timing
    raw: bytes
    raw_truncated: bool = False
    saw_done: bool = False
