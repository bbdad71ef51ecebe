"""Fixes that can be switched on beside a fault, by name."""

from __future__ import annotations

# The index-K read waits for its layer's event, as every other read of the pool does.
INDEX_GATE = "index-gate"
# Loads wait for the forward stream (SGLang 0.5.19, pull 36738).
LOAD_FENCE = "load-fence"
# Backups wait for the forward stream (SGLang 0.5.23).
WRITE_FENCE = "write-fence"
# The transfer thread has a branch for ABORT.
ABORT_BRANCH = "abort-branch"
# A page-table row is written whole.
WHOLE_ROW = "whole-row"
# The parser holds a minus sign back until the number's next digit (SGLang 0.5.18).
HELD_SIGN = "held-sign"
# Every rank waits for the copy of the results before it builds the next batch.
AWAITED_RESULTS = "awaited-results"
# The decode engine's first read waits for the store of the pages that came.
STORE_FENCE = "store-fence"
# Nothing is sent early while the batch has loads (SGLang 0.5.23, issue 44070).
EARLY_SEND_BLOCK = "early-send-block"
# The decode engine reads index pages in the layout that the bootstrap server names.
AGREED_LAYOUT = "agreed-layout"
FIX_NAMES = (
    INDEX_GATE,
    LOAD_FENCE,
    WRITE_FENCE,
    ABORT_BRANCH,
    WHOLE_ROW,
    HELD_SIGN,
    AWAITED_RESULTS,
    STORE_FENCE,
    EARLY_SEND_BLOCK,
    AGREED_LAYOUT,
)
