"""The decode engine's first read does not wait for its index-K store.

Index keys that come from the prefill engine go through a staging buffer and are stored into their
pages by a stream of their own. One request at a time it keeps up. When several transfer workers
send at once, bf16 keys come faster than they are stored, and it falls behind by the bytes of the
batch: longer contexts, later stores. A request that begins to decode meanwhile scores the keys of
whoever had the page before. The host cache has no part in it.
"""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault
from dsv4doctor.lab.fixes import STORE_FENCE

FAULT = Fault(
    name="decode-store",
    summary="the decode engine reads index-K before its store of the pages has landed",
    fix=STORE_FENCE,
    needs_disaggregation=True,
    decode_read_waits_for_store=False,
)
