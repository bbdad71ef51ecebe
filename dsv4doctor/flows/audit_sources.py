"""Where an audit's facts come from: launches, server answers, logs, source trees, hosts, people."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsv4doctor.audit.facts import Facts, gather_facts
from dsv4doctor.errors import DoctorError, UsageError
from dsv4doctor.flows.size_sources import ask_server, load_json
from dsv4doctor.sizing.launch import Launch, read_launch

if TYPE_CHECKING:
    from dsv4doctor.serverinfo import ServerInfo
    from dsv4doctor.target import Endpoint

# What a server's own answer says under these names is read from the log's or the client's side.
_PRIVATE_KEYS = ("internal_states", "env_vars", "memory_usage", "launch_command")
_BOOTSTRAP_ROUTE = (
    "/route?prefill_dp_rank=-1&prefill_cp_rank=-1&target_tp_rank=-1&target_pp_rank=-1"
)


def model_family(name: str) -> str | None:
    """The family that a model's name says: v3, v31, v32, v4, v41 or glm."""
    text = name.lower().replace("_", "-")
    for family, parts in (
        ("v41", ("v4.1", "v41")),
        ("v4", ("deepseek-v4", "v4-flash", "v4-pro", "dsv4")),
        ("v32", ("v3.2", "v32")),
        ("v31", ("v3.1", "v31")),
        ("v3", ("deepseek-v3", "deepseek-r1")),
        ("glm", ("glm-5",)),
    ):
        if any(part in text for part in parts):
            return family
    return None


def derived(args: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that follow from the arguments: the model's family, requests a DP rank."""
    found: dict[str, Any] = {}
    model = args.get("model_path") or args.get("served_model_name")
    if isinstance(model, str):
        found["model"] = model
        family = model_family(model)
        if family is not None:
            found["model_family"] = family
    requests, dp = _number(args.get("max_running_requests")), _number(args.get("dp_size"))
    if requests is not None:
        found["requests_per_dp_rank"] = requests // max(1, dp or 1)
    if _number(args.get("hicache_size")):
        found["hicache_size_set"] = args["hicache_size"]
    return found


def _number(value: Any) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


def facts_of_launch(
    launch: Launch,
    source: str,
    stated: Mapping[str, Any],
    has: frozenset[int],
    *,
    env_known: bool = True,
) -> Facts:
    """A launch command's facts: every argument is known, absent ones are at their defaults."""
    args = dict(launch.flags)
    env: dict[str, Any] = {f"env.{name}": value for name, value in launch.env.items()}
    if env_known:
        env["env_known"] = True
    return gather_facts(
        subject=_subject(source, args),
        groups=[
            (source, {"engine": launch.engine, **args, **derived(args), **env}),
            ("stated", with_family(stated)),
        ],
        complete=True,
        has_changes=has,
    )


def _subject(source: str, args: Mapping[str, Any]) -> str:
    role = str(args.get("disaggregation_mode") or "")
    return f"{source} ({role})" if role in ("prefill", "decode") else source


def with_family(stated: Mapping[str, Any]) -> dict[str, Any]:
    """What was stated, and the model's family that follows from it."""
    model = stated.get("model")
    family = model_family(model) if isinstance(model, str) else None
    extra = {"model_family": family} if family and "model_family" not in stated else {}
    return {**extra, **stated}


def facts_of_command(
    command: str, number: int, stated: Mapping[str, Any], has: frozenset[int]
) -> Facts:
    """The facts of `--launch`.

    Raises:
        UsageError: it cannot be read.
    """
    return facts_of_launch(read_launch(command), f"launch {number}", stated, has)


def facts_of_server_info(
    data: Mapping[str, Any], source: str, stated: Mapping[str, Any], has: frozenset[int]
) -> Facts:
    """The facts of `/server_info`'s answer; its environment is known only when it exposes it."""
    if not any(key in data for key in ("model_path", "tp_size", "version", "internal_states")):
        raise UsageError(f"{source} is no /server_info answer", "curl http://HOST:PORT/server_info")
    states = data.get("internal_states")
    state = states[0] if isinstance(states, list) and states and isinstance(states[0], dict) else {}
    args = {k: v for k, v in {**state, **data}.items() if k not in _PRIVATE_KEYS}
    env = data.get("env_vars") or state.get("env_vars")
    groups: list[tuple[str, Mapping[str, Any]]] = [
        (source, {"engine": "sglang", **args, **derived(args)})
    ]
    if isinstance(env, Mapping):
        named = {f"env.{name}": value for name, value in env.items()}
        groups.append((f"{source} env_vars", {"env_known": True, **named}))
    groups.append(("stated", with_family(stated)))
    return gather_facts(_subject(source, args), groups, complete=True, has_changes=has)


def facts_of_url(endpoint: Endpoint, stated: Mapping[str, Any], has: frozenset[int]) -> Facts:
    """The facts of a live server, and of its gauges where it shows them.

    Raises:
        DoctorError: it does not answer.
    """
    served: ServerInfo = ask_server(endpoint)
    data = dict(served.server_args)
    data.setdefault("version", served.version)
    data.setdefault("model_path", served.model)
    facts = facts_of_server_info(data, served.base_url, stated, has)
    known = dict(facts.known)
    gauges = _gauges(endpoint)
    if gauges and "sglang:load_back_tokens_total" in gauges:
        extra = gather_facts(
            facts.subject,
            [(f"{served.base_url}/metrics",
              {"load_back_tokens": gauges["sglang:load_back_tokens_total"]})],
            complete=True,
        )  # fmt: skip
        known |= extra.known
    return Facts(subject=facts.subject, known=known, complete=True, has_changes=has)


def _gauges(endpoint: Endpoint) -> dict[str, float] | None:
    from dsv4doctor.client.http import HttpClient
    from dsv4doctor.client.sglang import gauges

    async def read() -> dict[str, float] | None:
        async with HttpClient(endpoint, connect_timeout_s=5.0) as http:
            return await gauges(http)

    return asyncio.run(read())


def facts_of_bootstrap(endpoint: Endpoint, has: frozenset[int]) -> Facts:
    """What a prefill server's bootstrap port says of its layout, free of any key.

    Raises:
        DoctorError: nothing answers there.
    """
    from dsv4doctor.client.http import HttpClient
    from dsv4doctor.client.sglang import document

    async def read() -> dict[str, Any] | None:
        async with HttpClient(endpoint, connect_timeout_s=5.0) as http:
            return await document(http, _BOOTSTRAP_ROUTE)

    answer = asyncio.run(read())
    if answer is None:
        raise DoctorError(
            f"no bootstrap answer from {endpoint.base_url}/route",
            "the prefill host and its --disaggregation-bootstrap-port; are all ranks registered?",
        )
    source = f"{endpoint.base_url}/route"
    said = {"disaggregation_mode": "prefill", "engine": "sglang", **answer}
    return gather_facts(source, [(source, said)], complete=False, has_changes=has)


def facts_of_check_env(text: str) -> dict[str, Any]:
    """Versions and GPU out of a pasted `python -m sglang.check_env` block."""
    found: dict[str, Any] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(":")
        key = name.strip().lower()
        if not separator or not value.strip():
            continue
        if key == "sglang":
            found["version"] = value.strip()
            found["engine"] = "sglang"
        elif key in ("flashinfer_python", "flashinfer"):
            found["flashinfer"] = value.strip()
        elif key.startswith("gpu ") and "compute" not in key:
            found["gpu"] = value.strip()
        elif key in ("cuda driver version", "torch", "triton"):
            found[key.replace(" ", "_")] = value.strip()
    if not found:
        raise UsageError(
            "nothing of a check_env block was recognised", "paste python -m sglang.check_env"
        )
    return found


def read_server_info_file(path: Path) -> dict[str, Any]:
    """The JSON object of `--server-info`."""
    return load_json(path, "--server-info")
