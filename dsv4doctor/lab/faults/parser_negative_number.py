"""The tool-call parser leaks DSML when a minus sign ends a delta (SGLang 0.5.12 to 0.5.17).

The engine is healthy; the output parser reads this flag. It is here so that a doctor can be tried
on corruption that no memory fault made.
"""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault
from dsv4doctor.lab.fixes import HELD_SIGN

FAULT = Fault(
    name="parser-negative-number",
    summary="a healthy model, but the parser leaks DSML at a negative number",
    fix=HELD_SIGN,
    parser_leaks_negative_numbers=True,
)
