"""A page's life as V4 servers give it one: `UnifiedRadixCache` over the hybrid HiCache controller.

Every release from 0.5.12 to 0.5.23 routes a DeepSeek-V4 model with `--enable-hierarchical-cache`
there (0.5.12 with `SGLANG_ENABLE_UNIFIED_RADIX_TREE=1`). Real: tree, its full and sliding-window
components, what it asks of the controller. The allocator is the rig's.
"""

from __future__ import annotations

from typing import Any

import release_rig as rig
import torch
from release_rank import Rig, rows_of

TOKENS = rig.PAGE
WINDOW = 128


def component_types() -> Any:
    """`ComponentType`; its module was renamed in 0.5.17."""
    try:
        from sglang.srt.mem_cache.unified_cache.components import ComponentType
    except ImportError:
        from sglang.srt.mem_cache.unified_cache_components import ComponentType
    return ComponentType


def make_allocator(pool: Any) -> Any:
    """The release's own slot allocator; whole pages by its parts, since its kernels need CUDA."""
    import inspect

    try:
        from sglang.srt.mem_cache.allocator.swa import SWATokenToKVPoolAllocator
    except ImportError:
        from sglang.srt.mem_cache.swa_memory_pool import SWATokenToKVPoolAllocator

    class Pages(SWATokenToKVPoolAllocator):
        def alloc(self, need_size: int) -> torch.Tensor:
            full = self.full_attn_allocator.alloc(need_size)
            self.set_full_to_swa_mapping(full, self.swa_attn_allocator.alloc(need_size))
            return full

    slots = (rig.PAGES - 1) * TOKENS
    wanted = {
        "size": slots, "size_swa": slots, "page_size": TOKENS, "dtype": torch.float8_e4m3fn,
        "device": "cpu", "kvcache": pool, "need_sort": False,
    }  # fmt: skip
    known = inspect.signature(SWATokenToKVPoolAllocator.__init__).parameters
    made = Pages(**{name: wanted[name] for name in wanted if name in known})
    pool.register_mapping(made.full_to_swa_index_mapping)
    return made


def make_tree(own: Rig) -> Any:
    """The release's tree with HiCache, over the rig's pool."""
    import dataclasses

    from sglang.srt.mem_cache.cache_init_params import CacheInitParams
    from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache

    kinds = component_types()
    wanted = {
        "disable": False, "req_to_token_pool": own.table,
        "token_to_kv_pool_allocator": own.allocator, "page_size": TOKENS,
        "sliding_window_size": WINDOW, "tree_components": (kinds.FULL, kinds.SWA),
    }  # fmt: skip
    known = {field.name for field in dataclasses.fields(CacheInitParams)}
    params = CacheInitParams(**{name: wanted[name] for name in wanted if name in known})
    tree = UnifiedRadixCache(params)
    tree.init_hicache(rig.SETTINGS, params)
    return tree


def key_of(tokens: list[int]) -> Any:
    from sglang.srt.mem_cache.radix_cache import RadixKey

    return RadixKey(tokens, None)


def device_slots(tree: Any, match: Any) -> torch.Tensor:
    """Where a matched prefix lies; from 0.5.22 on only the tree knows."""
    if hasattr(match, "device_indices"):
        return match.device_indices
    core, root = tree.tree_core, tree.root_node_handle()
    return core.collect_full_device_indices(match.last_device_node, root)


def settle(own: Rig, tree: Any) -> None:
    """Every copy ends, and the tree hears of it."""
    for step in ("flush_pending_backups", "check_hicache_events"):
        if hasattr(tree, step):
            getattr(tree, step)()
        own.controller_streams()
    tree.check_hicache_events()


def tree_life(own: Rig, name: str = "tree") -> None:
    """Filled, inserted, written through, evicted, written over, matched, loaded back, read."""
    from sglang.srt.mem_cache.base_prefix_cache import (
        EvictParams,
        InitLoadBackParams,
        InsertParams,
        MatchPrefixParams,
    )

    own.allocator = make_allocator(own.pool)
    tree = make_tree(own)
    own.controller = tree.cache_controller
    own.scheduler.tree_cache = tree
    own.ask(command="arm", session=name, max_share=1)
    own.after = 0
    tokens = list(range(1000, 1000 + 2 * TOKENS))
    slots = own.allocator.alloc(2 * TOKENS)
    pages = rows_of(slots)
    own.run(own.request("tree-a", slots, 0, 2 * TOKENS))
    stored = own.bytes_of(pages)
    tree.insert(InsertParams(key=key_of(tokens), value=slots.clone()))
    settle(own, tree)
    tree.evict(EvictParams(num_tokens=2 * TOKENS, swa_num_tokens=2 * TOKENS))
    free = min(own.allocator.full_available_size(), own.allocator.swa_available_size())
    other = own.allocator.alloc(free)
    own.run(own.request("tree-b", other, 0, 2 * TOKENS))
    own.allocator.free(other)
    match = tree.match_prefix(MatchPrefixParams(key=key_of(tokens)))
    more = own.allocator.alloc(TOKENS)
    request = own.request("tree-c", more, 2 * TOKENS, 3 * TOKENS)
    request.last_node = match.last_device_node
    request.swa_host_hit_length = getattr(match, "swa_host_hit_length", 0)
    hit = match.host_hit_length
    tree.init_load_back(
        InitLoadBackParams(best_match_node=match.best_match_node, host_hit_length=hit, req=request)
    )
    producer = tree.ready_to_load_host_cache()
    loaded = device_slots(tree, tree.match_prefix(MatchPrefixParams(key=key_of(tokens))))
    own.table.req_to_token[request.req_pool_idx, : 3 * TOKENS] = torch.cat([loaded, more]).to(
        torch.int32
    )
    request.host_hit_length = hit
    own.run(request, consumer=producer)
    own.seen[name] = {
        "kind": type(tree).__name__, "controller": type(tree.cache_controller).__name__,
        "hit": int(hit), "pages": pages, "loaded": rows_of(loaded), "stored": stored,
        "overwritten": rows_of(other), "records": own.drained(),
        "status": own.status(),
    }  # fmt: skip
    own.seen["linker"] = linked(own, tree)


def linked(own: Rig, tree: Any) -> dict[str, str] | None:
    """What is observed where an external linker brings pages; None on releases without any."""
    if not hasattr(tree, "linker"):
        return None
    tree.linker = object()
    own.ask(command="arm", session="linker")
    tree.linker = None
    found: dict[str, str] = own.status()["observes"]
    return found
