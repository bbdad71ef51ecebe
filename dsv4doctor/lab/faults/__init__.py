"""Every fault there is. Adding one: write its module, add it to this tuple."""

from __future__ import annotations

from dsv4doctor.lab.faults import (
    abort_wedge,
    foreign_page,
    index_race,
    load_fence,
    none,
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
