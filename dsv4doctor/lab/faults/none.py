"""No fault: every read waits for its load."""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault

FAULT = Fault(name="none", summary="nothing is wrong")
