"""A miniature SGLang tree in the shape of the releases, written for these tests."""

from __future__ import annotations

from pathlib import Path

SWITCH = "SGLANG_DSV4_BF16_INDEX_K"

OLD_CONFIGURATOR = '''\
"""Pools."""

from __future__ import annotations

import logging

from sglang.srt.runtime_context import (
    get_disagg,
    get_memory,
)


class DefaultPoolConfigurator:
    def cell_size(self, index_head_dim):
        quant_block_size = 128
        indexer_bytes = (
            index_head_dim + index_head_dim // quant_block_size * 4
        )  # V3.2: right as it stands
        return indexer_bytes


class DSV4PoolConfigurator:
    def __init__(self, kvc):
        # what the model says
        self.indexer_head_dim = kvc.model_config.index_head_dim
        self.context_len = kvc.model_config.context_len

    def _get_bytes_per_full_token(self):
        kv_bytes = 584

        quant_block_size = 128
        indexer_bytes = (
            self.indexer_head_dim + self.indexer_head_dim // quant_block_size * 4
        )
        return kv_bytes + indexer_bytes / 4  # a token
'''

NEW_CONFIGURATOR = '''\
"""Pools."""

import logging

from sglang.srt.mem_cache.deepseek_v4_memory_pool import get_dsv4_indexer_bytes_per_token
from sglang.srt.runtime_context import get_exec


class DSV4PoolConfigurator:
    def __init__(self, kvc):
        self.indexer_head_dim = kvc.model_config.index_head_dim
        self.indexer_bytes_per_token = get_dsv4_indexer_bytes_per_token(
            self.indexer_head_dim,
            _is_hip and get_exec().kernel.enable_deepseek_v4_fp4_indexer,
        )
'''

MEMORY_POOL = '''\
"""Memory."""

import os

BF16 = os.environ.get("SGLANG_DSV4_BF16_INDEX_K", "0") == "1"


def get_dsv4_indexer_bytes_per_token(index_head_dim, use_fp4_indexer):
    return 68 if use_fp4_indexer else 132


class DeepSeekV4IndexerPool:
    def __init__(self):
        self.use_fp4_indexer = False

    def get_bytes_per_token(self):
        if BF16:
            return self.index_head_dim * 2
        return get_dsv4_indexer_bytes_per_token(self.index_head_dim, self.use_fp4_indexer)

    def get_index_k_with_scale_buffer(self, layer_id):
        return self.buffers[layer_id]


class DeepSeekV4TokenToKVPool:
    def wait_layer_transfer(self, layer_id):
        self.counter.wait_until(layer_id)

    def get_index_k_page_size(self, layer_id):
        return 64

    def get_index_k_with_scale_buffer(self, layer_id):
        """Rows of a layer."""
        self.wait_layer_transfer(layer_id)
        return self.pool.get_index_k_with_scale_buffer(layer_id)

    def get_index_k_scale_buffer(self, layer_id, loc):
        return self.get_index_k_with_scale_buffer(layer_id)[loc]

    def get_index_k_fp4_payload_buffer(self, layer_id):
        # self.wait_layer_transfer(layer_id) is called by nobody here
        return self.pool.payload[layer_id]

    def set_index_k(self, layer_id, rows):
        self.pool.store(layer_id, rows)
'''

CLEAN_MEMORY_POOL = MEMORY_POOL.replace(
    '        # self.wait_layer_transfer(layer_id) is called by nobody here\n',
    "        self.wait_layer_transfer(layer_id)\n",
).replace("        if BF16:\n            return self.index_head_dim * 2\n", "").replace(
    'BF16 = os.environ.get("SGLANG_DSV4_BF16_INDEX_K", "0") == "1"\n', ""
)  # fmt: skip


def write_tree(root: Path, configurator: str, memory_pool: str) -> Path:
    """The two files under `root/sglang`, as in a wheel."""
    for path, text in (
        ("srt/model_executor/pool_configurator.py", configurator),
        ("srt/mem_cache/deepseek_v4_memory_pool.py", memory_pool),
    ):
        file = root / "sglang" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root
