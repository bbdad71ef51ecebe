"""What a server says of itself over HTTP: SGLang's own routes, and vLLM's where they differ.

Every call has a short deadline, since `/server_info` asks each scheduler and hangs with a wedged
one. What a server does not have is None, never an empty answer.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsv4doctor.client.chunk import NotJson, decode_text, load_object
from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.http_errors import HttpFailure
from dsv4doctor.client.words import http_failure
from dsv4doctor.errors import DoctorError
from dsv4doctor.redact import redact_value
from dsv4doctor.serverinfo import ServerInfo
from dsv4doctor.target import Endpoint

DEADLINE_S = 5.0

_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{.*\})?\s+(\S+)")

# Of internal_states these say what the flat server arguments do not.
_STATE_KEYS = ("memory_usage", "env_vars", "effective_max_running_requests_per_dp")


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteAnswer:
    """What one route answered: `status` None when nothing came in time, `problem` says why."""

    route: str
    status: int | None
    seconds: float
    problem: str | None = None

    @property
    def is_ok(self) -> bool:
        return self.status == 200


async def ask_route(http: HttpClient, route: str, *, deadline_s: float = DEADLINE_S) -> RouteAnswer:
    """Call a route for its status, as `/health` and `/health_generate` are meant."""
    start = time.perf_counter()
    try:
        answer = await http.fetch(route, deadline_s=deadline_s)
    except HttpFailure as problem:
        seconds = time.perf_counter() - start
        return RouteAnswer(route=route, status=None, seconds=seconds, problem=str(problem))
    seconds = time.perf_counter() - start
    said = None if answer.status == 200 else http_failure(answer.status, answer.body).message
    return RouteAnswer(route=route, status=answer.status, seconds=seconds, problem=said)


async def document(
    http: HttpClient, *routes: str, deadline_s: float = DEADLINE_S
) -> dict[str, Any] | None:
    """The JSON object of the first of `routes` that the server has; None when it has none."""
    for route in routes:
        try:
            answer = await http.fetch(route, deadline_s=deadline_s)
            if answer.status == 200:
                return load_object(answer.body)
        except (HttpFailure, NotJson):
            continue
    return None


async def gauges(http: HttpClient, *, deadline_s: float = DEADLINE_S) -> dict[str, float] | None:
    """The engine's Prometheus samples, summed over their labels; None without `/metrics`.

    Histogram buckets are left out. Names keep their prefix (`sglang:num_running_reqs`).
    """
    try:
        answer = await http.fetch("/metrics", deadline_s=deadline_s)
    except HttpFailure:
        return None
    if answer.status != 200:
        return None
    return parse_metrics(decode_text(answer.body)) or None


def parse_metrics(text: str) -> dict[str, float]:
    """Samples of Prometheus' text format by name, summed over labels, without buckets."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        sample = _SAMPLE.match(line)
        if sample is None or sample[1].endswith(("_bucket", "_created")):
            continue
        try:
            found[sample[1]] = found.get(sample[1], 0.0) + float(sample[2])
        except ValueError:
            continue
    return found


async def read_server_info(http: HttpClient, *, deadline_s: float = DEADLINE_S) -> ServerInfo:
    """All that the server tells of itself, its routes asked at the same time."""
    server, model, models, version = await asyncio.gather(
        document(http, "/server_info", "/get_server_info", deadline_s=deadline_s),
        document(http, "/model_info", "/get_model_info", deadline_s=deadline_s),
        document(http, "/v1/models", deadline_s=deadline_s),
        document(http, "/version", deadline_s=deadline_s),
    )
    problems = []
    if server is None:
        problems.append("no /server_info: launch arguments are unknown")
    if models is None:
        problems.append("no /v1/models")
    names = _model_names(models)
    said = next((d["version"] for d in (server, version) if d and "version" in d), None)
    return ServerInfo(
        base_url=http.endpoint.base_url,
        engine=_engine(server, model, models, version),
        version=None if said is None else str(said),
        model=names[0] if names else (model or {}).get("model_path"),
        server_args=redact_value(_server_args(server, model)),
        problems=tuple(problems),
    )


def inspect_server(endpoint: Endpoint, *, deadline_s: float = DEADLINE_S) -> ServerInfo:
    """`read_server_info` for callers without an event loop."""

    async def read() -> ServerInfo:
        async with HttpClient(endpoint, connect_timeout_s=deadline_s) as http:
            return await read_server_info(http, deadline_s=deadline_s)

    return asyncio.run(read())


def list_models(endpoint: Endpoint, *, deadline_s: float = DEADLINE_S) -> tuple[str, ...]:
    """The names that the server serves under, first the default.

    Raises:
        DoctorError: if the server cannot be reached, refuses, or does not say.
    """
    return asyncio.run(_list_models(endpoint, deadline_s))


async def _list_models(endpoint: Endpoint, deadline_s: float) -> tuple[str, ...]:
    url = f"{endpoint.base_url}/v1/models"
    async with HttpClient(endpoint, connect_timeout_s=deadline_s) as http:
        try:
            answer = await http.fetch("/v1/models", deadline_s=deadline_s)
        except HttpFailure as problem:
            raise DoctorError(
                f"no model list from {url}: {problem}", "is the server up? check --base-url"
            ) from problem
    if answer.status in {401, 403}:
        said = http_failure(answer.status, answer.body).message
        raise DoctorError(f"{url} refused: {said}", "give --api-key or OPENAI_API_KEY")
    if answer.status != 200:
        said = http_failure(answer.status, answer.body).message
        raise DoctorError(f"{url} answered {said}", "is this an OpenAI-compatible server's root?")
    try:
        names = _model_names(load_object(answer.body))
    except NotJson as problem:
        raise DoctorError(
            f"{url} answered no JSON: {problem}", "is this an OpenAI-compatible server's root?"
        ) from problem
    if not names:
        raise DoctorError(f"{url} lists no model", "give --model")
    return names


def _model_names(models: Mapping[str, Any] | None) -> tuple[str, ...]:
    rows = (models or {}).get("data")
    if not isinstance(rows, list):
        return ()
    return tuple(str(row["id"]) for row in rows if isinstance(row, dict) and row.get("id"))


def _engine(
    server: Mapping[str, Any] | None,
    model: Mapping[str, Any] | None,
    models: Mapping[str, Any] | None,
    version: Mapping[str, Any] | None,
) -> str | None:
    """`sglang` or `vllm`, by the owner that they write into their model list, else by routes."""
    rows = (models or {}).get("data")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("owned_by") in {"sglang", "vllm"}:
            return str(row["owned_by"])
    if server is not None and "vllm_config" in server:
        return "vllm"
    if server is not None or model is not None:
        return "sglang"
    return "vllm" if version is not None and "version" in version else None


def _server_args(
    server: Mapping[str, Any] | None, model: Mapping[str, Any] | None
) -> dict[str, Any]:
    args = {key: value for key, value in (server or {}).items() if key != "internal_states"}
    states = (server or {}).get("internal_states")
    state = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
    for key, value in {**{k: state[k] for k in _STATE_KEYS if k in state}, **(model or {})}.items():
        args.setdefault(key, value)
    return args
