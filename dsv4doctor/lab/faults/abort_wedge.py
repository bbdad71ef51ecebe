"""An abort kills the transfer thread, which has no branch for the message.

Nothing is seen at once. The next batch that has pages to load waits for an event that never comes,
and with it the compute stream: every later request hangs, while the health route says 200.
"""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault
from dsv4doctor.lab.fixes import ABORT_BRANCH

FAULT = Fault(
    name="abort-wedge",
    summary="an abort kills the transfer thread; the next load hangs the engine",
    fix=ABORT_BRANCH,
    abort_kills_transfer_thread=True,
)
