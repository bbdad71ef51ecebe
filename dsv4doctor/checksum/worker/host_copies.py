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

    layers, (pages, width) = len(tensors), tensors[0].shape
    shape = (pages, layers, width) if page_first else (layers, pages, width)
    on_gpu = engine.place.type == "cuda"
    host = torch.zeros(shape, dtype=torch.uint8, pin_memory=on_gpu)
    places = [host[:, layer] if page_first else host[layer] for layer in range(layers)]
    back = [torch.full_like(tensor, 0xA5) for tensor in tensors]
    if not on_gpu:
        for place, tensor, fresh in zip(places, tensors, back, strict=True):
            place.copy_(tensor)
            fresh.copy_(place)
        return back
    with torch.cuda.device(engine.place):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for place, tensor in zip(places, tensors, strict=True):
                place.copy_(tensor, non_blocking=True)
        stream.synchronize()
        with torch.cuda.stream(stream):
            for place, fresh in zip(places, back, strict=True):
                fresh.copy_(place, non_blocking=True)
        torch.cuda.current_stream().wait_stream(stream)
    return back


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
