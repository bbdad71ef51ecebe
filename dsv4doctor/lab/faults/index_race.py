"""The index-K read does not wait for its layer's load: whatever bytes lie in the page are scored.

Every read of the main pool waits for the layer's event; the indexer's does not. Under load the
copies queue up, and pages that have not landed still hold their previous owner's keys.
"""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault
from dsv4doctor.lab.fixes import INDEX_GATE

FAULT = Fault(
    name="index-race",
    summary="the index-K read does not wait for its layer's load",
    fix=INDEX_GATE,
    index_read_waits=False,
)
