"""SGLang 0.5.20: the unified pool is priced; fp4 index-K is priced on HIP; a uniform-FP8 pool.

The unified pool's SWA ring and c4 state become deductions. The uniform-FP8 pool of the trtllm
backend (512 B a row) is still priced at 584. An SWA pool that cannot admit one request is refused.

Source: `model_executor/pool_configurator.py` and `mem_cache/deepseek_v4_memory_pool.py`, 0.5.20.
"""

from dataclasses import replace

from dsv4doctor.sizing.versions import sglang_0_5_18 as before

VERSION = replace(
    before.VERSION,
    releases=("0.5.20",),
    summary="unified pool and HIP fp4 index-K priced; trtllm pool; SWA admission floor",
    unified_priced=True,
    hip_fp4_index_priced=True,
    uniform_fp8_pool=True,
    swa_floor=True,
    unified_fp8_refuses_pd=True,
)
