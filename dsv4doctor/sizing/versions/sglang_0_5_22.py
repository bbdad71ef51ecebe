"""SGLang 0.5.22: the index pool reserves the same dummy page as the KV pools; unified fp8 with PD.

Source: `model_executor/pool_configurator.py` and `mem_cache/deepseek_v4_memory_pool.py`, 0.5.22.
"""

from dataclasses import replace

from dsv4doctor.sizing.versions import sglang_0_5_21 as before

VERSION = replace(
    before.VERSION,
    releases=("0.5.22",),
    summary="index pool reserves the logical dummy page; unified fp8 allowed with PD",
    index_logical_dummy_page=True,
    unified_fp8_refuses_pd=False,
)
