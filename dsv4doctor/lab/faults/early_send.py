"""A cached prefix is sent early although another request of the batch is still loading it.

A restored page counts as on the device from the moment its load is queued. A second request of the
same batch that matches it sends it before the forward; the transfer worker knows nothing of the
copy stream and takes the bytes of the page's last owner. The prefill engine itself waits for the
load and answers right; the decode engine keeps the old bytes, and the range is never sent again.
It takes a host cache and requests at the same time that share an evicted prefix.
"""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault
from dsv4doctor.lab.fixes import EARLY_SEND_BLOCK

FAULT = Fault(
    name="early-send",
    summary="a prefix is sent to the decode engine while it is still being loaded",
    fix=EARLY_SEND_BLOCK,
    needs_disaggregation=True,
    early_send_waits_for_loads=False,
)
