"""One release's real pools, host pools, HiCache controller and scheduler class, on a CPU.

Real: the plugin machinery, `DeepSeekV4TokenToKVPool`, `DeepSeekV4PagedHostPool`,
`build_deepseek_v4_hicache_stack`, `HybridCacheController` with its layer events and gates, and
`Scheduler` with the functions that the probe hooks, `run_batch` among them. Stubbed, since they
need CUDA: streams and events (`streams.py`), the copy kernels of `sgl_kernel.kvcacheio`, the Triton
kernel of the index-K store, the registration of host memory. Ours: the slot allocator, and the
model's forward, which stores and reads through the real pool.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import streams
import stubs
import torch

PAGE = 256
LAYERS = (0, 4, 128, 4, 4)  # of the model: one uncompressed, three with an indexer
INDEX_LAYERS = (1, 3, 4)
PAGES = 12
HOST_RATIO = 2.0


def copy_rows(
    src_layers: Any, dst_layers: Any, src_indices: Any, dst_indices: Any, page_size: int = 1
) -> None:
    """`transfer_kv_direct`: rows of every layer, on the current stream."""
    assert page_size == 1
    src, dst = src_indices.to(torch.int64).cpu(), dst_indices.to(torch.int64).cpu()

    def work() -> None:
        for source, target in zip(src_layers, dst_layers, strict=True):
            target[dst] = source[src]

    streams.submit(work)


def copy_out(
    src_ptrs: Any, dst_ptrs: Any, src_indices: Any, dst_indices: Any, page_size: int = 1
) -> None:
    """`transfer_kv_all_layer_direct_lf_pf`: every layer's rows into [pages, layers, 1, bytes]."""
    src, dst = src_indices.to(torch.int64).cpu(), dst_indices.to(torch.int64).cpu()

    def work() -> None:
        for layer, source in enumerate(src_ptrs):
            dst_ptrs[0][dst, layer, 0] = source[src]

    streams.submit(work)


def copy_in(
    src_ptrs: Any, dst_ptrs: Any, src_indices: Any, dst_indices: Any, layer_id: int,
    page_size: int = 1,
) -> None:  # fmt: skip
    """`transfer_kv_per_layer_direct_pf_lf`: one layer's rows out of [pages, layers, 1, bytes]."""
    src, dst = src_indices.to(torch.int64).cpu(), dst_indices.to(torch.int64).cpu()

    def work() -> None:
        dst_ptrs[0][dst] = src_ptrs[0][src, layer_id, 0]

    streams.submit(work)


COPIES = {
    "transfer_kv_direct": copy_rows,
    "transfer_kv_all_layer_direct_lf_pf": copy_out,
    "transfer_kv_per_layer_direct_pf_lf": copy_in,
}


class Settings(stubs.Stub):
    """Server arguments and SGLang's configuration bags: all off but what HiCache needs."""

    moe: Settings

    hicache_size = 0
    hicache_ratio = HOST_RATIO
    hicache_io_backend = "direct"
    hicache_mem_layout = "layer_first"
    hicache_write_policy = "write_through"
    hicache_storage_backend = None
    hicache_host_memory_mode = None
    elastic_ep_backend = None
    speculative_algorithm = None
    speculative_num_draft_tokens = None
    served_model_name = "rig"
    page_size = PAGE
    device = "cpu"
    pp_size = tp_size = dp_size = 1
    pp_rank = tp_rank = dp_rank = 0


SETTINGS = Settings()
Settings.moe = SETTINGS  # a bag inside a bag
ACCESSORS = (
    "get_memory", "get_exec", "get_spec", "get_platform", "get_parallel", "get_schedule",
    "get_disagg", "get_server_args", "get_global_server_args", "get_device", "get_model",
    "get_serving", "get_observability", "get_mm", "get_lora",
)  # fmt: skip


class Allocator:
    """Pages of slots, lowest first, given back by `free`: what the controller asks of SGLang's."""

    page_size = PAGE
    size_full = size = PAGES * PAGE
    device = "cpu"

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self.pages = list(range(1, PAGES))
        self.full_attn_allocator = self.swa_attn_allocator = self

    def get_kvcache(self) -> Any:
        return self._pool

    def alloc(self, count: int) -> torch.Tensor:
        taken, self.pages = self.pages[: count // PAGE], self.pages[count // PAGE :]
        starts = torch.tensor(taken, dtype=torch.int64)
        return (starts[:, None] * PAGE + torch.arange(PAGE)).flatten()

    def free(self, slots: torch.Tensor) -> None:
        self.pages = sorted({*self.pages, *(slots[::PAGE] // PAGE).tolist()})

    def set_hicache_transfer_done_event(self, *_: Any) -> None: ...

    def translate_kv_indices_for_transfer(self, slots: torch.Tensor, *_: Any) -> torch.Tensor:
        return slots


def prepare(tree: Path, layout: str) -> stubs.StubFinder:
    """Make SGLang importable from `tree`, with CUDA's parts replaced."""
    finder = stubs.install_stubs()
    sys.path.insert(0, str(tree))
    Settings.hicache_mem_layout = layout
    torch.get_device_module = lambda *_: streams.DeviceModule  # type: ignore[assignment]
    from sgl_kernel import kvcacheio

    for name, copy in COPIES.items():
        setattr(kvcacheio, name, copy)
    from sglang.srt.utils import common

    common.get_device_module = lambda *_: streams.DeviceModule
    from sglang.srt import utils

    utils.get_device_module = common.get_device_module
    return finder


def settle() -> None:
    """After imports: every accessor of configuration gives `SETTINGS`, host memory is ordinary."""
    for name, module in list(sys.modules.items()):
        if not name.startswith("sglang.") or isinstance(module, stubs.StubModule):
            continue
        for accessor in ACCESSORS:
            if accessor in vars(module):
                setattr(module, accessor, lambda *_: SETTINGS)
        if "ALLOC_MEMORY_FUNCS" in vars(module):
            module.ALLOC_MEMORY_FUNCS.default_factory = lambda: allocate
            module.ALLOC_MEMORY_FUNCS.clear()
        if name.endswith(".memory_pool_host"):  # imports them only where there is CUDA
            vars(module).update(COPIES)


def allocate(dims: Any, *, dtype: Any, device: str, **_: Any) -> torch.Tensor:
    return torch.zeros(dims, dtype=dtype, device=device)


def make_pool() -> Any:
    """The release's token pool with three indexer layers and a dozen pages."""
    import inspect

    from sglang.srt.mem_cache.deepseek_v4_memory_pool import DeepSeekV4TokenToKVPool

    wanted = {
        "max_num_reqs": 4, "swa_size": PAGES * PAGE, "c4_size": PAGES * 64, "c128_size": PAGES * 2,
        "c4_state_pool_size": 64, "c128_state_pool_size": 512, "page_size": PAGE,
        "swa_page_size": PAGE, "dtype": torch.float8_e4m3fn, "state_dtype": torch.float32,
        "c4_state_dtype": torch.float32, "c128_state_dtype": torch.float32,
        "qk_nope_head_dim": 448, "qk_rope_head_dim": 64, "indexer_head_dim": 128,
        "layer_num": len(LAYERS), "device": "cpu", "enable_memory_saver": False,
        "compression_ratios": list(LAYERS), "start_layer": 0, "end_layer": len(LAYERS),
        "full_size": PAGES * PAGE,
    }  # fmt: skip
    known = inspect.signature(DeepSeekV4TokenToKVPool.__init__).parameters
    return DeepSeekV4TokenToKVPool(**{key: wanted[key] for key in wanted if key in known})


def make_hicache(pool: Any, allocator: Allocator) -> Any:
    """(host pool group, controller), by the release's own assembler."""
    import inspect
    import threading

    from sglang.srt.mem_cache.hybrid_cache.hybrid_pool_assembler import (
        build_deepseek_v4_hicache_stack,
    )

    params = SimpleNamespace(
        token_to_kv_pool_allocator=allocator, page_size=PAGE, req_to_token_pool=None,
        tp_cache_group=None, attn_cp_cache_group=None, attn_tp_cache_group=None,
        pp_cache_group=None, pp_rank=0, pp_size=1, mtp_draft_device_pools=(),
        mtp_draft_mamba_pools=(), sidecar_draft_device_pools=(), enable_kv_cache_events=False,
    )  # fmt: skip
    wanted = {
        "params": params, "server_args": SETTINGS, "kvcache": pool, "page_size": PAGE,
        "tp_group": None, "load_cache_event": threading.Event(), "storage_backend": None,
    }  # fmt: skip
    known = inspect.signature(build_deepseek_v4_hicache_stack).parameters
    return build_deepseek_v4_hicache_stack(**{key: wanted[key] for key in wanted if key in known})
