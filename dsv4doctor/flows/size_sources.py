"""Where a sizing's inputs come from: flags, a spec file, a launch command, a live server."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsv4doctor.errors import DoctorError, UsageError
from dsv4doctor.sizing.architecture import FLASH, Architecture
from dsv4doctor.sizing.dsa import V32, DsaModel, is_dsa_name
from dsv4doctor.sizing.launch import Launch, read_launch, sglang_spec, vllm_spec
from dsv4doctor.sizing.modelconfig import read_model_config
from dsv4doctor.sizing.versions import NEWEST
from dsv4doctor.units import GIB

if TYPE_CHECKING:
    from dsv4doctor.serverinfo import ServerInfo
    from dsv4doctor.target import Endpoint

DEFAULT_AVAILABLE_BYTES = int(26.9 * GIB)  # a rank of the case's 96 GB cards after the weights


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeAsk:
    """What the command line asked. `args` are SGLang's flags in underscores, only those given."""

    args: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    engine: str | None = None
    version: str | None = None
    model: str | None = None
    model_config: Path | None = None
    available_bytes: int | None = None
    spec: Path | None = None
    launch: str | None = None
    from_log: Path | None = None
    endpoint: Endpoint | None = None
    gpu_memory_bytes: int | None = None
    weight_bytes: int | None = None
    mem_fraction_static: float | None = None
    gpus: int | None = None
    session_tokens: int | None = None
    sweep: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """One sizing's inputs before they are checked: a spec without its budget, or a DSA model.

    `args` are the server arguments that the spec came from; `served_tokens` what a live server
    says it holds.
    """

    spec: dict[str, Any]
    args: Mapping[str, Any]
    dsa: DsaModel | None = None
    served_tokens: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def engine(self) -> str:
        return str(self.spec.get("engine", "sglang"))


def gather(ask: SizeAsk) -> Gathered:
    """The inputs that `ask` names; flags lie over what a launch or a server says.

    Raises:
        UsageError: a file or a value that cannot be used.
        DoctorError: the server does not answer.
    """
    if ask.spec is not None:
        if ask.args or ask.model or ask.model_config or ask.launch or ask.endpoint:
            raise UsageError(
                "--spec stands alone: it holds every input", "put the other flags into the file"
            )
        data = load_json(ask.spec, "--spec")
        return Gathered(spec=data, args={})
    launch, served = _source(ask)
    args = {**launch.flags, **ask.args}
    env = {**launch.env, **ask.env}
    engine = ask.engine or launch.engine
    name = ask.model or _text(args.get("model_path")) or FLASH.name
    spec = vllm_spec(args) if engine == "vllm" else sglang_spec(args, env)
    if ask.launch is not None and engine == "sglang":
        spec.pop("page_size", None)  # V4 forces 256 whatever the launch says
    version = ask.version or (served.version if served else None)
    if engine == "sglang":
        spec["version"] = version or NEWEST
    model = _model(ask, name)
    if isinstance(model, DsaModel):
        return Gathered(spec=spec, args=args, dsa=model)
    spec["model"] = name
    if model is not None:
        spec |= _model_fields(model)
        if engine == "vllm":
            spec = {key: value for key, value in spec.items() if key in _VLLM_MODEL_KEYS}
    return Gathered(
        spec=spec,
        args=args,
        served_tokens=_served_tokens(served),
        notes=served.problems if served else (),
    )


def _source(ask: SizeAsk) -> tuple[Launch, ServerInfo | None]:
    """What is launched beside the flags, and what a server said of itself."""
    if ask.launch is not None:
        return read_launch(ask.launch), None
    if ask.endpoint is None:
        return Launch(engine=ask.engine or "sglang", flags={}, env={}), None
    served = ask_server(ask.endpoint)
    launch = Launch(
        engine=served.engine or "sglang",
        flags={key: _plain(value) for key, value in served.server_args.items()},
        env=_served_env(served),
    )
    return launch, served


_VLLM_MODEL_KEYS = (
    "engine", "model", "num_hidden_layers", "compress_ratios", "max_model_len",
    "max_num_batched_tokens", "num_gpu_blocks_override", "kv", "index",
)  # fmt: skip


def gpu_memory(kind: str) -> int:
    """Bytes of one GPU of `kind`, a name or a size.

    Raises:
        UsageError: neither.
    """
    from dsv4doctor.sizing.hardware import gpu_bytes

    return gpu_bytes(kind)


def ask_server(endpoint: Endpoint) -> ServerInfo:
    """What the server says of itself; the one place where sizing touches the network."""
    from dsv4doctor.client.sglang import inspect_server

    served = inspect_server(endpoint)
    if not (served.server_args or served.engine or served.model or served.version):
        raise DoctorError(
            f"{endpoint.base_url} answers neither /server_info nor /v1/models",
            "is the server up? check --base-url",
        )
    if not served.server_args:
        raise DoctorError(
            f"{endpoint.base_url} does not tell its launch arguments",
            "a router does not have them: give a worker's URL",
        )
    return served


def _served_env(served: ServerInfo) -> dict[str, str]:
    """SGLANG_* of the server, told only when it exposes its environment."""
    env = served.server_args.get("env_vars")
    return {str(k): str(v) for k, v in env.items()} if isinstance(env, Mapping) else {}


def _served_tokens(served: ServerInfo | None) -> int | None:
    value = served.server_args.get("max_total_num_tokens") if served else None
    return value if isinstance(value, int) and value > 0 else None


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _model(ask: SizeAsk, name: str) -> Architecture | DsaModel | None:
    """The model of `--model-config`, or of a config.json beside a local path; None: by its name."""
    if ask.model_config is not None:
        path = ask.model_config
        path = path / "config.json" if path.is_dir() else path
        return read_model_config(load_json(path, "--model-config"), ask.model or str(path))
    local = Path(name) / "config.json"
    if local.is_file():
        return read_model_config(load_json(local, "config.json"), name)
    return V32 if is_dsa_name(name) else None


def _model_fields(model: Architecture) -> dict[str, Any]:
    return {
        "model": model.name,
        "num_hidden_layers": model.num_hidden_layers,
        "compress_ratios": list(model.compress_ratios),
        "kv_source_layer_ids": list(model.kv_source_layer_ids),
        "head_dim": model.head_dim,
        "qk_rope_head_dim": model.qk_rope_head_dim,
        "index_head_dim": model.index_head_dim,
        "sliding_window": model.sliding_window,
    }


def load_json(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in `path` (`-`: stdin).

    Raises:
        UsageError: no such file, no JSON, or no object.
    """
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        data = json.loads(text)
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no text"
        raise UsageError(f"{what} {path} cannot be read: {reason}", "an existing JSON file") from (
            problem
        )
    except ValueError as problem:
        raise UsageError(f"{what} {path} is no JSON: {problem}", "a whole JSON file") from problem
    except RecursionError as problem:
        raise UsageError(f"{what} {path} is nested too deep", "a flat JSON object") from problem
    if not isinstance(data, dict):
        raise UsageError(f"{what} {path} holds no JSON object", "one object, in braces")
    return data


def read_lines(path: Path, what: str) -> Iterator[str]:
    """The lines of `path` (`-`: stdin; `.gz` as it is), undecodable bytes replaced.

    Raises:
        UsageError: the file cannot be read.
    """
    try:
        if str(path) == "-":
            yield from sys.stdin
            return
        if path.suffix == ".gz":
            import gzip

            with gzip.open(path, "rt", encoding="utf-8", errors="replace") as packed:
                yield from packed
            return
        with path.open(encoding="utf-8", errors="replace") as lines:
            yield from lines
    except (OSError, EOFError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise UsageError(f"{what} {path} cannot be read: {reason}", "an existing file") from problem
