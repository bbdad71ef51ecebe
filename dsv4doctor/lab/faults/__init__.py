"""Every fault there is. Adding one: write its module, add it to this tuple."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dsv4doctor.lab.faults import (
    abort_wedge,
    decode_store,
    early_send,
    foreign_page,
    index_race,
    layout_mismatch,
    load_fence,
    none,
    overlap_desync,
    parser_negative_number,
    write_fence,
)
from dsv4doctor.lab.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    index_race.FAULT,
    abort_wedge.FAULT,
    foreign_page.FAULT,
    load_fence.FAULT,
    write_fence.FAULT,
    overlap_desync.FAULT,
    decode_store.FAULT,
    early_send.FAULT,
    layout_mismatch.FAULT,
    parser_negative_number.FAULT,
    none.FAULT,
)
FAULT_NAMES = tuple(fault.name for fault in FAULTS)


def fault_named(name: str) -> Fault:
    """The fault of that name.

    Raises:
        KeyError: if there is none.
    """
    return {fault.name: fault for fault in FAULTS}[name]


def default_index_k(faults: Iterable[str]) -> str:
    """The index-K format of a lab with these faults where none is asked for: the record's bf16, or
    the one that a fault shows in. Unknown names count for nothing here."""
    formats = [fault.index_k for fault in FAULTS if fault.name in set(faults) and fault.index_k]
    return formats[0] if formats else "bf16"


def need_disaggregation(faults: Iterable[str]) -> bool:
    """Whether one of the faults happens only between two servers."""
    return any(fault.needs_disaggregation for fault in FAULTS if fault.name in set(faults))


def standing(faults: Iterable[str], fixes: Collection[str]) -> list[Fault]:
    """The named faults that none of the fixes takes away.

    Raises:
        KeyError: if there is no such fault.
    """
    return [fault for fault in map(fault_named, faults) if fault.fix not in fixes]
