"""Fixes that can be switched on beside a fault, by name."""

from __future__ import annotations

# The index-K read waits for its layer's event, as every other read of the pool does.
INDEX_GATE = "index-gate"
# Loads wait for the forward stream (SGLang 0.5.19, pull 36738).
LOAD_FENCE = "load-fence"
# Backups wait for the forward stream (SGLang 0.5.23).
WRITE_FENCE = "write-fence"
FIX_NAMES = (INDEX_GATE, LOAD_FENCE, WRITE_FENCE)
