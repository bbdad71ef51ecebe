"""A page-table slip: a row is written one entry short, so one column keeps another session's page.

Rows are written into a buffer that the previous request of the batch used. The last restored page
is left out of the copy; its column still names the page that the previous request had there, whose
index keys and latents are another session's.
"""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault, RowWrite
from dsv4doctor.lab.fixes import WHOLE_ROW


def _one_entry_short(row: RowWrite) -> tuple[int, ...]:
    column = row.restored - 1
    if not 0 <= column < len(row.previous_row):
        return row.pages
    return (*row.pages[:column], row.previous_row[column], *row.pages[column + 1 :])


FAULT = Fault(
    name="foreign-page",
    summary="a page-table row written one entry short shows one session another's page",
    fix=WHOLE_ROW,
    page_row=_one_entry_short,
)
