"""Backups do not wait for the forward stream (SGLang up to 0.5.22).

A request ends and its pages are cached and copied to the host while the forward that was launched
meanwhile still writes the last of them. The device page is whole a moment later; the host's copy
stays as it is, and comes back when the page has been evicted: minutes later, in the session's next
turn.
"""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault
from dsv4doctor.lab.fixes import WRITE_FENCE

FAULT = Fault(
    name="write-fence",
    summary="a page is backed up half-written and comes back when it is restored",
    fix=WRITE_FENCE,
    backups_wait_for_forward=False,
    stores_replies=True,
)
