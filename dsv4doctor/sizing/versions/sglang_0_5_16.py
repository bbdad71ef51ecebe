"""SGLang 0.5.16, 0.5.17: bf16 state beside online c128; a page of rows more in the unified pool.

Source: `model_executor/pool_configurator.py` and `mem_cache/deepseek_v4_memory_pool.py`, 0.5.16-17.
"""

from dataclasses import replace

from dsv4doctor.sizing.versions import sglang_0_5_15 as before

VERSION = replace(
    before.VERSION,
    releases=("0.5.16", "0.5.17"),
    summary="bf16 state allowed with online c128; unified pool gains a page of rows",
    online_needs_fp32_state=False,
    unified_page_of_rows=True,
)
