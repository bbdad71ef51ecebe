"""SGLang 0.5.23: ratios 1 and 2 are priced by their padded layout, their reserved pages covered.

`full` is lowered page by page until the reserved pages fit. Requests per worker are at least one.
The DSpark draft of an encoder-replay server keeps its SWA in a ring priced with the request window.

Source: `model_executor/pool_configurator.py` and `mem_cache/deepseek_v4_memory_pool.py`, 0.5.23.
"""

from dataclasses import replace

from dsv4doctor.sizing.versions import sglang_0_5_22 as before

VERSION = replace(
    before.VERSION,
    releases=("0.5.23",),
    summary="low ratios priced by layout with their reserved pages; draft SWA ring",
    low_ratio_by_layout=True,
    at_least_one_request=True,
    draft_swa_ring=True,
    replay_scales_tails=True,
)
