"""Who brings pages into this rank's cache, and whether the hooks see it.

Every release from 0.5.12 to 0.5.23 gives a DeepSeek-V4 model with HiCache a `UnifiedRadixCache`
over a `HybridCacheController`, whose copies all pass through `DeepSeekV4PagedHostPool`: that is
hooked. Others copy by ways of their own (an external cache linker from 0.5.20 on, LMCache, FlexKV,
the C++ tree, a registered backend). There a page's bytes change unseen, so that nothing read from
it can be compared.
"""

from __future__ import annotations

from typing import Any

from dsv4doctor import probe_protocol as protocol

# Trees that copy nothing themselves: with HiCache, what they have is a controller.
_KNOWN_TREES = frozenset(
    {
        "ChunkCache",
        "PureSWAChunkCache",
        "PureSWARadixCache",
        "RadixCache",
        "SWAChunkCache",
        "SWARadixCache",
        "UnifiedRadixCache",
    }
)
_KNOWN_CONTROLLERS = frozenset({"HybridCacheController"})


def unseen_mover(scheduler: Any) -> str | None:
    """What moves pages and is not watched; None if there is nothing of that kind."""
    tree = getattr(scheduler, "tree_cache", None)
    if tree is None:
        return None
    name = type(tree).__name__
    if getattr(tree, "linker", None) is not None:
        return f"an external cache linker brings pages into {name}"
    if name not in _KNOWN_TREES:
        return f"{name} may bring pages by a way of its own"
    controller = getattr(tree, "cache_controller", None)
    if controller is not None and type(controller).__name__ not in _KNOWN_CONTROLLERS:
        return f"{type(controller).__name__} brings pages into {name}"
    return None


def give_up_unseen(observer: Any, scheduler: Any) -> None:
    """Where pages come in unseen, say so instead of comparing them."""
    mover = unseen_mover(scheduler)
    if mover is not None:
        hops = (protocol.BACKUP, protocol.HOST, protocol.HOST_LOAD, protocol.LOAD)
        observer.give_up(hops, f"{protocol.NOT_OBSERVABLE}: {mover}")
