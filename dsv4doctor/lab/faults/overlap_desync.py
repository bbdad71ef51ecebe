"""Two tensor-parallel ranks disagree about the next batch, and both wait for ever.

With the overlap schedule the next batch is built while results of the last one are still being
copied to the host. A rank that polls its copy instead of waiting for it sees what its own link has
done so far: the one with the slower link still holds the pages of a batch that the other one has
given up already. While the pool has room to spare that makes no difference. When it has not, the
ranks admit different batches, enter collectives of different shapes, and neither ever ends. Without
the overlap schedule results are there before the next batch is thought of.
"""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault
from dsv4doctor.lab.fixes import AWAITED_RESULTS

FAULT = Fault(
    name="overlap-desync",
    summary="two ranks admit different batches and wait for each other for ever",
    fix=AWAITED_RESULTS,
    ranks_await_results=False,
)
