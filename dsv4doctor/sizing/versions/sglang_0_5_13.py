"""SGLang 0.5.13: the ratio list is cut to the stage's layers; index-K can be stored as fp4 (SM100).

fp4 is still priced as fp8. The pool ignores online c128 on HIP while the price still reads it.

Source: `model_executor/pool_configurator.py` and `mem_cache/deepseek_v4_memory_pool.py`, 0.5.13.
"""

from dataclasses import replace

from dsv4doctor.sizing.versions import sglang_0_5_12 as before

VERSION = replace(
    before.VERSION,
    releases=("0.5.13",),
    summary="compress_ratios cut to the layers; fp4 index-K stored, priced as fp8",
    whole_ratio_list=False,
    online_on_hip=False,
    fp4_index_stored=True,
)
