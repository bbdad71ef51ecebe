"""SGLang 0.5.15: c128 state belongs to request slots and is deducted before the tokens are counted.

Source: `model_executor/pool_configurator.py` and `mem_cache/deepseek_v4_memory_pool.py`, 0.5.15.
"""

from dataclasses import replace

from dsv4doctor.sizing.versions import sglang_0_5_14 as before

VERSION = replace(
    before.VERSION,
    releases=("0.5.15",),
    summary="c128 state is a deduction by request slots instead of a price per token",
    c128_state_per_token=False,
)
