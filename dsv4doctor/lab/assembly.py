"""From a configuration's names to the parts that an engine is made of."""

from __future__ import annotations

from dsv4doctor.errors import UsageError
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.faults import FAULT_NAMES, fault_named
from dsv4doctor.lab.faults.fault import whole_row
from dsv4doctor.lab.fixes import FIX_NAMES, INDEX_GATE
from dsv4doctor.lab.layouts import INDEX_FORMATS
from dsv4doctor.lab.prefill import PrefillPhysics


def check(config: EngineConfig) -> None:
    """Names have to be known ones.

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


def physics_of(config: EngineConfig) -> PrefillPhysics:
    faults = [fault_named(name) for name in config.faults]
    rows = [fault.page_row for fault in faults if fault.page_row is not whole_row]
    return PrefillPhysics(
        slack_ms=config.slack_ms,
        layer_ms=config.layer_ms,
        copy_bytes_per_ms=config.copy_bytes_per_ms,
        index_read_waits=INDEX_GATE in config.fixes
        or all(fault.index_read_waits for fault in faults),
        page_row=rows[0] if rows else whole_row,
    )
