"""Fixes that can be switched on beside a fault, by name."""

from __future__ import annotations

# The index-K read waits for its layer's event, as every other read of the pool does.
INDEX_GATE = "index-gate"
FIX_NAMES = (INDEX_GATE,)
