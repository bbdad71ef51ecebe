"""A lab process with a probe: its rank described, its engine's hooks set, its socket open."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.http_launch import DECODE, PREFILL, LaunchOptions
from dsv4doctor.lab.latents import MAIN_PAGE_BYTES
from dsv4doctor.lab.layouts import INDEX_FORMATS, PAGE_TOKENS
from dsv4doctor.lab.observing import (
    DECODE_HOPS,
    HELD_WHY_NOT,
    HICACHE_HOPS,
    PREFILL_HOPS,
    SEND_HOPS,
    DecodeObserver,
    EngineObserver,
)
from dsv4doctor.lab.output.behaviour import behaviour_of
from dsv4doctor.lab.probe_ring import KEPT_RECORDS
from dsv4doctor.lab.probe_socket import FOLDER_VARIABLE, ProbeSocket
from dsv4doctor.lab.probe_state import LATENT, LabProbe, ProbedRank
from dsv4doctor.probe_protocol import HELD, INDEX_K

if TYPE_CHECKING:
    from dsv4doctor.lab.engine import Engine
    from dsv4doctor.lab.pd.decode import DecodeEngine

AGGREGATED = "aggregated"
# How many records wait to be drained, for tests of a ring that overflows.
RECORDS_VARIABLE = "DSV4DOCTOR_PROBE_RECORDS"


def probe_of(
    config: EngineConfig, role: str, hops: frozenset[str], options: LaunchOptions
) -> LabProbe | None:
    """A probe for one rank; None where the environment names no folder for its socket."""
    environment = options.environment
    if not environment.get(FOLDER_VARIABLE):
        return None
    form = INDEX_FORMATS[config.index_k]
    rank = ProbedRank(
        role=role,
        version=_version(options),
        layout=form.name,
        layers=config.layers,
        pages=config.device_pages,
        page_bytes={INDEX_K: form.page_bytes, LATENT: MAIN_PAGE_BYTES},
        page_tokens=PAGE_TOKENS,
        hops=hops,
        why_not={HELD: HELD_WHY_NOT},
    )
    return LabProbe(rank, capacity=int(environment.get(RECORDS_VARIABLE, KEPT_RECORDS)))


def _version(options: LaunchOptions) -> str:
    """The release that the lab stands for, as `/server_info` says it."""
    parser = behaviour_of(options.parser_group, leaks_negative_numbers=False)
    return options.as_version or parser.version


def probed_engine(
    engine: Engine, options: LaunchOptions, *, role: str = AGGREGATED
) -> LabProbe | None:
    """A probe with its hooks in `engine`, as `probe_of`."""
    hops = PREFILL_HOPS | (HICACHE_HOPS if engine.config.hicache else frozenset())
    if role == PREFILL:
        hops |= SEND_HOPS
    probe = probe_of(engine.config, role, hops, options)
    if probe is not None:
        engine.observe(EngineObserver(probe, engine.prefill))
    return probe


def probed_decode(engine: DecodeEngine, options: LaunchOptions) -> LabProbe | None:
    """As `probed_engine`, in a decode engine."""
    probe = probe_of(engine.config, DECODE, DECODE_HOPS, options)
    if probe is not None:
        engine.observer = DecodeObserver(probe, engine.pool)
    return probe


def listening(
    probe: LabProbe | None, environment: Mapping[str, str]
) -> AbstractContextManager[ProbeSocket | None]:
    """The probe's socket, open until the context ends.

    Raises:
        DoctorError: if it cannot be made.
    """
    if probe is None:
        return nullcontext()
    return ProbeSocket(probe, Path(environment[FOLDER_VARIABLE]))
