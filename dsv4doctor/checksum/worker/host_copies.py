"""Pages through host memory and through other GPUs, the ways HiCache and PD move them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dsv4doctor.checksum.worker.engine import Engine, Pool


def through_host(engine: Engine, pools: Sequence[Pool], *, page_first: bool) -> list[Pool]:
    """One pool a layer, copied to a host pool and back into fresh pools, layer by layer.

    On a GPU the host pool is pinned and copies run on a stream of their own, as HiCache's do.
    """
    moved = [_round_trip(engine, [pool.values for pool in pools], page_first=page_first)]
    if pools[0].scales is not None:
        moved.append(_round_trip(engine, [pool.scales for pool in pools], page_first=page_first))
    tails = moved[1] if len(moved) > 1 else [None] * len(pools)
    return [
        Pool(layout=pool.layout, values=values, scales=scales)
        for pool, values, scales in zip(pools, moved[0], tails, strict=True)
    ]


def _round_trip(engine: Engine, tensors: Sequence[Any], *, page_first: bool) -> list[Any]:
    if isinstance(tensors[0], np.ndarray):
        return _in_memory(tensors, page_first=page_first)
    return _by_torch(engine, tensors, page_first=page_first)


def _in_memory(arrays: Sequence[Any], *, page_first: bool) -> list[Any]:
    layers, (pages, width) = len(arrays), arrays[0].shape
    host = np.zeros((pages, layers, width) if page_first else (layers, pages, width), np.uint8)
    back = []
    for layer, array in enumerate(arrays):
        place = host[:, layer] if page_first else host[layer]
        place[:] = array
    for layer in range(layers):
        fresh = np.full((pages, width), 0xA5, dtype=np.uint8)
        fresh[:] = host[:, layer] if page_first else host[layer]
        back.append(fresh)
    return back


def _by_torch(engine: Any, tensors: Sequence[Any], *, page_first: bool) -> list[Any]:
    import torch

    layers, on_gpu = len(tensors), engine.place.type == "cuda"
    # As SGLang: page_first layers are gathered on the device, so that one copy is contiguous.
    sources = [torch.stack(list(tensors), dim=1)] if page_first else list(tensors)
    hosts = [torch.zeros(each.shape, dtype=torch.uint8, pin_memory=on_gpu) for each in sources]
    fresh = [torch.full_like(each, 0xA5) for each in sources]
    if on_gpu:
        _on_own_stream(engine, sources, hosts)
        _on_own_stream(engine, hosts, fresh)
    else:
        for source, host, back in zip(sources, hosts, fresh, strict=True):
            host.copy_(source)
            back.copy_(host)
    return [fresh[0][:, layer] for layer in range(layers)] if page_first else fresh


def _on_own_stream(engine: Any, sources: Sequence[Any], targets: Sequence[Any]) -> None:
    """Asynchronous copies on a stream beside the current one, which waits for them."""
    import torch

    with torch.cuda.device(engine.place):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for source, target in zip(sources, targets, strict=True):
                target.copy_(source, non_blocking=True)
        stream.synchronize()


def through_peer(engine: Any, pool: Pool) -> Iterator[tuple[str, Pool]]:
    """(peer's name, pool) after a copy to each other GPU of this host and back."""
    import torch

    for index in range(torch.cuda.device_count()):
        if index == engine.place.index:
            continue
        there = pool.values.to(f"cuda:{index}")
        back = torch.empty_like(pool.values)
        back.copy_(there)
        yield f"cuda:{index}", Pool(layout=pool.layout, values=back)
