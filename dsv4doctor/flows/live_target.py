"""The server under load: the one given or a lab, its model, what it says of itself, our secrets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from dsv4doctor.artifacts.store import LAB_LOG
from dsv4doctor.client.sglang import inspect_server, list_models
from dsv4doctor.errors import DoctorError
from dsv4doctor.lab.deployment import LabOptions, start_lab
from dsv4doctor.progress import Progress
from dsv4doctor.redact import REDACTED, is_secret_name, scrub
from dsv4doctor.serverinfo import ServerInfo
from dsv4doctor.target import Endpoint

__all__ = [
    "Inspection", "LabOptions", "first_model", "scrub_bytes", "secrets_of", "serving",
]  # fmt: skip

# Shorter ones would turn up in any text.
_SHORTEST_SECRET = 5


class TargetPlan(Protocol):
    """What a plan says of its target: `endpoint` None means the lab, with `lab` or its defaults."""

    @property
    def endpoint(self) -> Endpoint | None: ...

    @property
    def lab(self) -> LabOptions | None: ...

    @property
    def seed(self) -> int: ...


@contextmanager
def serving(plan: TargetPlan, run_path: Path, progress: Progress) -> Iterator[Endpoint]:
    """The server to drive: the one given, or a lab that is gone in the end."""
    if plan.endpoint is not None:
        yield plan.endpoint
        return
    options = replace(plan.lab or LabOptions(), seed=plan.seed, log_file=run_path / LAB_LOG)
    fixes = f", fix {', '.join(options.fixes)}" if options.fixes else ""
    apart = ", prefill and decode apart" if options.is_apart else ""
    progress.note(
        f"no server given: starting the lab (index-K {options.index_k}, HiCache "
        f"{'on' if options.hicache else 'off'}, fault {', '.join(options.faults)}{fixes}{apart})"
    )
    with start_lab(options) as lab:
        yield Endpoint(base_url=lab.base_url)


def first_model(endpoint: Endpoint, secrets: tuple[str, ...]) -> str:
    """The first model that the server serves.

    Raises:
        DoctorError: if it does not say, with what it said instead, scrubbed of `secrets`.
    """
    try:
        return list_models(endpoint)[0]
    except DoctorError as problem:
        raise DoctorError(scrub(problem.told, secrets)) from problem


def secrets_of(endpoint: Endpoint) -> tuple[str, ...]:
    """What was sent to prove who we are, to be kept out of whatever the server says of it."""
    hidden = [value for name, value in endpoint.headers if is_secret_name(name)]
    hidden += [value.split(" ", 1)[1] for value in hidden if " " in value]
    hidden += (endpoint.userinfo or "").split(":", 1)[-1:]
    hidden.append(endpoint.api_key or "")
    return tuple(sorted({each for each in hidden if len(each) >= _SHORTEST_SECRET}, key=len)[::-1])


def scrub_bytes(body: bytes, secrets: tuple[str, ...]) -> bytes:
    """A body without the secrets that the server sent back in it."""
    for secret in secrets:
        body = body.replace(secret.encode(), REDACTED.encode())
    return body


class Inspection:
    """What the server says of itself, asked beside the load: a slow answer delays no request."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._info: ServerInfo | None = None
        self._endpoint = endpoint
        self._thread = threading.Thread(target=self._ask, name="inspect", daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        self._info = inspect_server(self._endpoint)

    def result(self, model: str) -> dict[str, Any]:
        """The `target` keys; every question has a deadline of its own, so this ends."""
        self._thread.join()
        info = self._info
        return {
            "engine": info.engine if info else None,
            "version": info.version if info else None,
            "model": model,
            "server_args": dict(info.server_args) if info else {},
        }
