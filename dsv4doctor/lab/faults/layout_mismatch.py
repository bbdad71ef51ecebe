"""The decode engine reads index pages as rows of value and scale; they were written in two blocks.

All values of a page stand first, all scales behind them. Read row by row, each key is made of two
keys' values and each scale of four values: numbers as plausible as any. The same bytes give the
same garbage at one session as at sixty. bf16 keys have no scales, so there is nothing to mistake.
"""

from __future__ import annotations

from dsv4doctor.lab.faults.fault import Fault
from dsv4doctor.lab.fixes import AGREED_LAYOUT

FAULT = Fault(
    name="layout-mismatch",
    summary="prefill and decode engine disagree on the layout of an index page",
    fix=AGREED_LAYOUT,
    needs_disaggregation=True,
    index_k="fp8",
    decode_reads_interleaved=True,
)
