"""`lab serve`: an engine and its server in this process, until they are told to end."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dsv4doctor.errors import DoctorError, UsageError
from dsv4doctor.lab.faults import default_index_k, need_disaggregation
from dsv4doctor.lab.http_launch import (
    DECODE,
    PARSER_GROUPS,
    PREFILL,
    UNIFIED,
    LaunchOptions,
    default_faults,
    default_parser_group,
    resolve_index_k,
)
from dsv4doctor.lab.releases import COARSE_BARRIER_VARIABLE, EARLY_SEND_VARIABLE

if TYPE_CHECKING:
    from dsv4doctor.lab.config import EngineConfig
    from dsv4doctor.lab.http_log import PoolSizes
    from dsv4doctor.lab.probe_state import LabProbe

__all__ = [
    "LabPlan",
    "LaunchOptions",
    "default_faults",
    "default_index_k",
    "default_parser_group",
    "engine_config",
    "serve_lab",
]

SWITCH_INTERVAL_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class LabPlan:
    """One launch as the flags say it.

    The index-K dtype is decided by `index_k`, `fp4_indexer` and the environment together; `physics`
    are engine settings by name, None for the default.
    """

    options: LaunchOptions
    index_k: str | None = None
    fp4_indexer: bool = False
    physics: Mapping[str, float | int | None] = field(default_factory=dict)


def serve_lab(plan: LabPlan) -> int:
    """Serve until SIGTERM, SIGINT or the parent's end; returns the exit code.

    Raises:
        UsageError: for an unknown fault, fix or format, or a setting out of range.
        DoctorError: if the address is taken, or a file cannot be written.
    """
    # Before numpy is imported: its threads would fight with the client for two cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import asyncio

    options = _resolve(plan)
    if options.disaggregation and options.disaggregation_mode == UNIFIED:
        from dsv4doctor.lab.pd.launch import serve_pair

        return asyncio.run(serve_pair(options))
    import gc
    import sys

    from dsv4doctor.lab.http_log import log, log_boot
    from dsv4doctor.lab.probing import listening

    config = engine_config(options, plan.physics)
    try:
        served = _served(options, config, _writable(options.ground_truth, "--ground-truth"))
    except OSError as problem:
        said = f"{problem.filename} cannot be written: {problem.strerror}"
        raise DoctorError(said, "name a file in a folder that can be written") from problem
    log(f"server_args={options.launch_command or 'dsv4doctor lab serve'}", rank="")
    log_boot(options, _pool_sizes(config))
    gc.collect()
    gc.freeze()
    # The engine's thread and the event loop share one interpreter: streams are paced in
    # milliseconds, so the loop must not wait five of them for its turn.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        with listening(served.probe, options.environment):
            return asyncio.run(served.serve())
    finally:
        served.engine.close()


class _Closing(Protocol):
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Served:
    """An engine and what serves it."""

    engine: _Closing
    serve: Callable[[], Coroutine[Any, Any, int]]
    probe: LabProbe | None = None


def _served(options: LaunchOptions, config: EngineConfig, truth: Path | None) -> _Served:
    """The engine of this process's mode, not yet serving."""
    from dsv4doctor.lab.probing import probed_decode, probed_engine
    from dsv4doctor.lab.server import serve, serve_role

    if options.disaggregation_mode == PREFILL:
        from dsv4doctor.lab.pd.links import Outbox
        from dsv4doctor.lab.pd.prefill import PrefillEngine
        from dsv4doctor.lab.pd.roles import PrefillRole

        outbox = Outbox()
        beside = truth and truth.with_name(f"{truth.stem}.prefill{truth.suffix}")
        prefill = PrefillEngine(config, beside, outbox.put)
        role = PrefillRole(prefill, options, outbox)
        probe = probed_engine(prefill.engine, options, role=PREFILL)
        return _Served(prefill, lambda: serve_role(prefill, options, role, probe), probe)
    if options.disaggregation_mode == DECODE:
        from dsv4doctor.lab.pd.decode import DecodeEngine
        from dsv4doctor.lab.pd.roles import DecodeRole

        decode = DecodeEngine(config, truth)
        probe = probed_decode(decode, options)
        return _Served(
            decode, lambda: serve_role(decode, options, DecodeRole(decode), probe), probe
        )
    from dsv4doctor.lab.engine import Engine
    from dsv4doctor.lab.recording import Recorder

    path = _writable(options.record, "--record")
    engine = Engine(config, truth, Recorder(path, config) if path else None)
    probe = probed_engine(engine, options)
    return _Served(engine, lambda: serve(engine, options, probe), probe)


def _resolve(plan: LabPlan) -> LaunchOptions:
    """The options with the index-K dtype in force.

    Raises:
        UsageError: for a parser that the lab does not have, or two index-K dtypes.
    """
    options = plan.options
    if options.tool_call_parser not in {"deepseekv4", None}:
        raise UsageError(
            f"the lab has no tool-call parser {options.tool_call_parser}", "deepseekv4, or none"
        )
    if options.parser_group not in PARSER_GROUPS:
        raise UsageError(
            f"there is no parser group {options.parser_group}",
            f"one of {', '.join(PARSER_GROUPS)}",
        )
    index_k = resolve_index_k(
        plan.index_k, fp4_indexer=plan.fp4_indexer, environment=options.environment
    )
    apart = options.disaggregation or need_disaggregation(options.faults)
    if options.record and (apart or options.disaggregation_mode != UNIFIED):
        raise UsageError("--record keeps one engine's run", "leave out --disaggregation")
    return replace(
        options,
        index_k=index_k,
        # Nothing is cached on the host of a decode server.
        hicache=options.hicache and options.disaggregation_mode != DECODE,
        disaggregation=apart,
    )


def engine_config(
    options: LaunchOptions, overrides: Mapping[str, float | int | None]
) -> EngineConfig:
    """The engine's settings.

    Raises:
        UsageError: if a setting is out of range.
    """
    from dsv4doctor.lab.config import EngineConfig

    physics = {name: value for name, value in overrides.items() if value is not None}
    for name, value in physics.items():
        if value <= 0:
            raise UsageError(f"--{name.replace('_', '-')} is {value}", "give a positive number")
    device_pages = int(physics.pop("device_pages", EngineConfig().device_pages))
    return EngineConfig(
        index_k=options.index_k,
        hicache=options.hicache,
        faults=options.faults,
        fixes=options.fixes,
        seed=options.seed,
        decodes=options.disaggregation_mode == UNIFIED,
        as_version=options.as_version,
        coarse_barrier=_is_on(options, COARSE_BARRIER_VARIABLE, default=False),
        early_send=_is_on(options, EARLY_SEND_VARIABLE, default=True),
        overlap_schedule=options.overlap_schedule,
        device_pages=device_pages,
        host_pages=int(device_pages * options.hicache_ratio),
        **physics,  # type: ignore[arg-type]  # each value has its field's type, see cli.lab_serve
    )


def _is_on(options: LaunchOptions, variable: str, *, default: bool) -> bool:
    """A boolean variable as SGLang reads it."""
    value = options.environment.get(variable)
    return default if value is None else value.lower() in {"1", "true", "yes"}


def _writable(name: str | None, flag: str) -> Path | None:
    """The file that a flag names, where one can be.

    Raises:
        DoctorError: if none can.
    """
    if name is None:
        return None
    path = Path(name)
    if path.is_dir() or not path.parent.is_dir():
        raise DoctorError(f"{flag} {path} cannot be written", "name a file in a folder that exists")
    return path


def _pool_sizes(config: EngineConfig) -> PoolSizes:
    from dsv4doctor.lab.http_log import PoolSizes
    from dsv4doctor.lab.latents import MAIN_PAGE_BYTES
    from dsv4doctor.lab.layouts import INDEX_FORMATS

    return PoolSizes(
        device_pages=config.device_pages,
        host_pages=config.host_pages,
        layers=config.layers,
        index_item_bytes=INDEX_FORMATS[config.index_k].page_bytes,
        main_item_bytes=MAIN_PAGE_BYTES,
    )
