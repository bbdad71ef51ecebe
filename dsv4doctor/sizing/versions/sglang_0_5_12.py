"""SGLang 0.5.12: the first DSV4 configurator.

Every layer of the whole `compress_ratios` list is priced, the MTP entry too; compress state of both
ratios scales with SWA tokens; index-K is priced as fp8 whatever is stored, and only fp8 is stored.

Source: `model_executor/pool_configurator.py` and `mem_cache/deepseek_v4_memory_pool.py`, 0.5.12.
"""

from dsv4doctor.sizing.accounting import Accounting

VERSION = Accounting(
    releases=("0.5.12",),
    summary="first configurator; counts the MTP entry of compress_ratios as a layer",
    whole_ratio_list=True,
    c128_state_per_token=True,
    online_needs_fp32_state=True,
    online_on_hip=True,
    fp4_index_stored=False,
)
