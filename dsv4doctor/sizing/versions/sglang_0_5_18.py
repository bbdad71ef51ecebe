"""SGLang 0.5.18 and 0.5.19: a draft longer than the compress-state rings is refused at boot.

Source: `model_executor/pool_configurator.py`, 0.5.18, 0.5.19.
"""

from dataclasses import replace

from dsv4doctor.sizing.versions import sglang_0_5_16 as before

VERSION = replace(
    before.VERSION,
    releases=("0.5.18", "0.5.19"),
    summary="draft tokens bounded by the state rings",
    draft_tokens_bounded=True,
)
