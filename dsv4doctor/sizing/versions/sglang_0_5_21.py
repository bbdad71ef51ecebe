"""SGLang 0.5.21: rows are priced as padded pages; SWA can be capped by requests; V4.1.

c4 state is sized per SWA page (256 tokens), no longer per window (128). KV pools reserve one page
of logical tokens, so a c4 pool gains 3 pages and a c128 pool 127. Ratios 1 and 2 of V4.1 are
priced at 584 B a row whatever their layout stores.

Source: `model_executor/pool_configurator.py` and `mem_cache/deepseek_v4_memory_pool.py`, 0.5.21.
"""

from dataclasses import replace

from dsv4doctor.sizing.versions import sglang_0_5_20 as before

VERSION = replace(
    before.VERSION,
    releases=("0.5.21",),
    summary="page padding priced; SWA cap mode; V4.1 ratios 1 and 2; KV layouts",
    page_padding_priced=True,
    logical_dummy_page=True,
    sm120_swa_pages=True,
)
