"""Puts the fork's faults into a released tree: bf16 index-K behind a switch, a gate taken out."""

from __future__ import annotations

import re
from pathlib import Path

SWITCH = "SGLANG_DSV4_BF16_INDEX_K"
MEMORY_POOL = Path("srt/mem_cache/deepseek_v4_memory_pool.py")
CONFIGURATOR = Path("srt/model_executor/pool_configurator.py")


def plant_bf16_store(package: Path) -> None:
    """The indexer pool stores 2 bytes a value when the switch is set, as the fork did."""
    path = package / MEMORY_POOL
    text = path.read_text()
    head, tail = text.split("class DeepSeekV4IndexerPool", 1)
    row = "    def get_bytes_per_token(self) -> int:\n"
    if row in tail.split("\nclass ", 1)[0]:
        switch = (
            row
            + f'        if os.environ.get("{SWITCH}", "0") == "1":\n'
            + "            return self.index_head_dim * 2\n"
        )
        tail = tail.replace(row, switch, 1)
    else:  # 0.5.12 computes the page's bytes in place
        tail = re.sub(
            r"(\n(\s+)page_bytes = [^\n]*(?:\n\2    [^\n]*)*(?:\n\2\))?)",
            rf'\1\n\2if os.environ.get("{SWITCH}", "0") == "1":'
            r"\n\2    page_bytes = self.page_size * self.index_head_dim * 2",
            tail,
            count=1,
        )
    assert SWITCH in tail
    path.write_text(head.replace("import logging\n", "import logging\nimport os\n", 1)
                    + "class DeepSeekV4IndexerPool" + tail)  # fmt: skip


def remove_gate(package: Path, method: str = "get_index_k_with_scale_buffer") -> None:
    """The token pool's index-K read no longer waits for its layer."""
    path = package / MEMORY_POOL
    head, tail = path.read_text().split("class DeepSeekV4TokenToKVPool", 1)
    pattern = rf"(    def {method}\((?:[^)]*)\)[^\n]*:\n)((?:        \"\"\"(?:.|\n)*?\"\"\"\n)?)"
    tail, count = re.subn(
        pattern + r"        self\.wait_layer_transfer\(layer_id\)\n", r"\1\2", tail, count=1
    )
    assert count == 1
    path.write_text(head + "class DeepSeekV4TokenToKVPool" + tail)
