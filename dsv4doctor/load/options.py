"""How to drive a server: limits, identity, and what goes into every request."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Half of a UUID: no server has seen a prompt that begins with it.
_SALT_BYTES = 8

# One process reads this many paced streams with little lag (benchmarks/client.md).
SESSIONS_PER_PROCESS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Seconds for all limits. None: `max_concurrency` all sessions at once, `first_token_timeout_s`
    as long as the whole reply, `processes` as many as the sessions need.

    `run_prefix` begins every `X-Request-Id`. `expected_sessions` is needed for `processes=None`
    when the scripts come from a generator. `retries` repeats requests that failed before any token.
    `arrivals_s` holds sessions back: each to so many seconds after the first was taken.
    `salt` is new in every run: a prompt salted with it is in no server's cache, whoever sent the
    same one before. `names_requests` sends each request's id as SGLang's `rid` too, so that its
    scheduler knows it by that name.
    """

    model: str
    max_concurrency: int | None = None
    expected_sessions: int | None = None
    processes: int | None = None
    connect_timeout_s: float = 10.0
    first_token_timeout_s: float | None = None
    stall_timeout_s: float = 30.0
    request_timeout_s: float = 600.0
    probe_timeout_s: float = 10.0
    retries: int = 0
    arrivals_s: Mapping[int, float] = field(default_factory=dict)
    run_prefix: str = "run"
    salt: str = field(default_factory=lambda: secrets.token_hex(_SALT_BYTES))
    headers: tuple[tuple[str, str], ...] = ()
    names_requests: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    report_interval_s: float = 0.25

    def request_id(self, session: int, turn: int) -> str:
        return f"{self.run_prefix}-s{session:04d}-t{turn:02d}"
