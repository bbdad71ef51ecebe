"""SGLang 0.5.14: compress state can be bf16; draft banks for online c128; a unified pool on HIP.

The unified pool is allocated and not priced. Requests are capped by half of the tokens from here.

Source: `model_executor/pool_configurator.py` and `mem_cache/deepseek_v4_memory_pool.py`, 0.5.14.
"""

from dataclasses import replace

from dsv4doctor.sizing.versions import sglang_0_5_13 as before

VERSION = replace(
    before.VERSION,
    releases=("0.5.14",),
    summary="state dtype switch; online c128 draft banks; unified pool on HIP, not priced",
    state_dtype_switch=True,
    online_draft_banks=True,
    unified_pool=True,
    requests_capped_by_tokens=True,
)
