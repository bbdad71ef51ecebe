"""Loads do not wait for the forward stream (SGLang up to 0.5.18; fixed by pull 36738).

A request ends while its last forward, already launched, still writes its tail page. The page is
freed, handed to a request that restores a prefix, and restored; then the late store lands in it.
The page is in the prefix cache by then: whoever matches it next reads the damage too.
"""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault
from dsv4doctor.lab.fixes import LOAD_FENCE

FAULT = Fault(
    name="load-fence",
    summary="a freed page's late store lands in the page that was restored into its place",
    fix=LOAD_FENCE,
    loads_wait_for_forward=False,
    stores_replies=True,
)
