"""From a configuration's names to the parts that an engine is made of."""

from __future__ import annotations

from dataclasses import replace

from dsv4doctor.errors import UsageError
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.faults import FAULT_NAMES, fault_named, standing
from dsv4doctor.lab.faults.fault import whole_row
from dsv4doctor.lab.fixes import (
    EARLY_SEND_BLOCK,
    FIX_NAMES,
    INDEX_GATE,
    LOAD_FENCE,
    WRITE_FENCE,
)
from dsv4doctor.lab.layouts import INDEX_FORMATS
from dsv4doctor.lab.prefill import PrefillPhysics
from dsv4doctor.lab.releases import NEWEST, Orderings, release_named, with_switches


def check(config: EngineConfig) -> None:
    """Names and the release have to be known ones.

    Raises:
        UsageError: if one is not.
    """
    known = (
        ("index-K format", (config.index_k,), tuple(INDEX_FORMATS)),
        ("fault", config.faults, FAULT_NAMES),
        ("fix", config.fixes, FIX_NAMES),
    )
    for what, given, names in known:
        for name in given:
            if name not in names:
                raise UsageError(f"no {what} is called {name}", f"one of {', '.join(names)}")
    if config.as_version is not None:
        release_named(config.as_version)


def orderings_of(config: EngineConfig) -> Orderings:
    """What this engine's streams wait for: its release's, less its faults, plus its fixes."""
    release = release_named(config.as_version) if config.as_version else NEWEST
    faults = [fault_named(name) for name in config.faults]
    orderings = with_switches(
        release.orderings,
        overlap=config.overlap_schedule,
        coarse_barrier=config.coarse_barrier and release.reads_coarse_barrier_variable,
        early_send=config.early_send,
    )
    return replace(
        orderings,
        load_fence=LOAD_FENCE in config.fixes
        or (orderings.load_fence and all(fault.loads_wait_for_forward for fault in faults)),
        write_fence=WRITE_FENCE in config.fixes
        or (orderings.write_fence and all(fault.backups_wait_for_forward for fault in faults)),
        early_send_blocked_by_load=EARLY_SEND_BLOCK in config.fixes
        or (
            orderings.early_send_blocked_by_load
            and all(fault.early_send_waits_for_loads for fault in faults)
        ),
    )


def stores_replies(config: EngineConfig) -> bool:
    """Whether decode forwards write the pool. The record's table was calibrated without."""
    faults = [fault_named(name) for name in config.faults]
    is_asked_for = config.as_version is not None or any(fault.stores_replies for fault in faults)
    return config.decodes and is_asked_for


def physics_of(config: EngineConfig) -> PrefillPhysics:
    faults = standing(config.faults, config.fixes)
    rows = [fault.page_row for fault in faults if fault.page_row is not whole_row]
    return PrefillPhysics(
        slack_ms=config.slack_ms,
        layer_ms=config.layer_ms,
        copy_bytes_per_ms=config.copy_bytes_per_ms,
        index_read_waits=INDEX_GATE in config.fixes
        or all(fault.index_read_waits for fault in faults),
        page_row=rows[0] if rows else whole_row,
        orderings=orderings_of(config),
        stores_replies=stores_replies(config),
    )
