"""Where pages come in by a way that is not hooked, nothing read from them is compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from builders_probe import armed, make_batch, make_probe, records, step

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.hicache import HicacheHops
from dsv4doctor.probe.movers import unseen_mover
from dsv4doctor.probe_protocol import Forgotten, Observation


def scheduler_with(tree: str, controller: str | None = None, **more: Any) -> Any:
    """A scheduler whose tree and controller are of classes of those names."""
    made = None if controller is None else type(controller, (), {})()
    fields = {"cache_controller": made, "linker": None} | more
    return SimpleNamespace(tree_cache=type(tree, (), fields)(), tp_rank=0, dp_rank=0, pp_rank=0)


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        (SimpleNamespace(), None),
        (scheduler_with("UnifiedRadixCache", "HybridCacheController"), None),
        (scheduler_with("UnifiedRadixCache"), None),
        (scheduler_with("SWARadixCache"), None),
        (scheduler_with("ChunkCache"), None),
        (scheduler_with("UnifiedRadixCache", linker=object()), "external cache linker"),
        (scheduler_with("UnifiedRadixCache", "HiCacheController"), "HiCacheController brings"),
        (scheduler_with("HiRadixCache", "HiCacheController"), "HiRadixCache may bring"),
        (scheduler_with("LMCacheUnifiedRadixCache"), "LMCacheUnifiedRadixCache may bring"),
        (scheduler_with("RadixCacheCpp"), "RadixCacheCpp may bring"),
    ],
)
def test_who_moves_pages_unseen_is_named(scheduler: Any, said: str | None) -> None:
    found = unseen_mover(scheduler)
    assert (found is None) if said is None else (found is not None and said in found)


def test_with_an_unseen_mover_nothing_is_compared(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSV4DOCTOR_PROBE_DIR", str(tmp_path / "run"))
    probe, _ = make_probe()
    scheduler = scheduler_with("UnifiedRadixCache", linker=object())
    probe.pump(scheduler)
    told = probe.status()["observes"]
    assert told[protocol.READ].startswith(protocol.NOT_OBSERVABLE), "before anybody arms"
    probe.inbox._letters.put(SimpleNamespace(  # type: ignore[arg-type]
        is_withdrawn=False, request=protocol.arm("s"), answered=SimpleNamespace(set=lambda: None)
    ))  # fmt: skip
    probe.pump(scheduler)
    try:
        observes = probe.observer.observes
        assert observes[protocol.LOAD] == (
            "not observable on this version: an external cache linker brings pages into "
            "UnifiedRadixCache"
        )
        compared = (protocol.BACKUP, protocol.READ, protocol.HELD, protocol.SEND)
        assert all(observes[hop].startswith(protocol.NOT_OBSERVABLE) for hop in compared)
        assert observes[protocol.STORE] == protocol.YES
        steps = armed(probe, max_share=1.0)
        step(steps, make_batch(512))
        step(steps, make_batch(768, prefix=512))
        hops = {one.hop for one in records(probe) if isinstance(one, Observation)}
        assert hops == {protocol.STORE}
    finally:
        probe.close()


class Controller:
    """What the hooks read of a HiCache controller: its two queues."""

    def __init__(self, **queues: list[Any]) -> None:
        self.load_queue = queues.get("load", [])
        self.write_queue = queues.get("write", [])


def tokens(count: int) -> Any:
    return SimpleNamespace(device_indices=torch.arange(count))


@pytest.mark.parametrize(
    ("queue", "count", "gaps"),
    [
        ("load", 512, ["HiCache has brought back pages, and none of index_k was seen"]),
        ("write", 512, ["HiCache has backed up pages, and none of index_k was seen"]),
        # Only window layers move: no page of ours.
        ("load", 0, []),
        ("write", 0, []),
    ],
)
def test_a_round_that_moved_no_watched_page_voids_what_was_known(
    queue: str, count: int, gaps: list[str]
) -> None:
    probe, _ = make_probe()
    step(armed(probe), make_batch(512))
    hicache, controller = HicacheHops(probe.observer), Controller(**{queue: [tokens(count)]})
    enter = hicache.enter_loading if queue == "load" else hicache.enter_writing
    leave = hicache.leave_loading if queue == "load" else hicache.leave_writing
    entered = enter(controller)
    controller.load_queue, controller.write_queue = [], []
    leave(entered, 0, controller)
    told = [one.reason for one in records(probe) if isinstance(one, Forgotten)]
    assert told == gaps


def test_a_round_that_waits_is_no_round() -> None:
    probe, _ = make_probe()
    armed(probe)
    hicache, controller = HicacheHops(probe.observer), Controller(write=[tokens(256)])
    hicache.leave_writing(hicache.enter_writing(controller), None, controller)
    assert records(probe) == []


def host_pool_of(pool: Any, pages: int = 8) -> Any:
    """A host mirror of the index pages, layer first."""
    device = pool.c4_indexer_kv_pool.index_k_with_scale_buffer
    return SimpleNamespace(
        device_buffers=device, slot_page_size=256,
        kv_buffer=[torch.zeros(pages, 8448, dtype=torch.uint8) for _ in device],
    )  # fmt: skip


def load(hicache: HicacheHops, host_pool: Any, rows: torch.Tensor) -> None:
    """A load of every layer as the engine does it, outside of `start_loading`."""
    for layer in range(len(host_pool.device_buffers)):
        given = (None, rows, rows, layer, "direct")
        hicache.leave_load(hicache.enter_load(host_pool, *given), None, host_pool, *given)


def test_every_load_outside_of_a_round_is_one_of_its_own() -> None:
    probe, pool = make_probe()
    armed(probe)
    hicache, host_pool = HicacheHops(probe.observer), host_pool_of(pool)
    for page in (1, 2):
        load(hicache, host_pool, torch.arange(256) + page * 256)
    found = [one for one in records(probe) if isinstance(one, Observation)]
    loads = {(one.page, one.layer, one.transfer) for one in found if one.hop == protocol.LOAD}
    assert loads == {(1, 1, 1), (1, 3, 1), (2, 1, 2), (2, 3, 2)}


def test_bytes_of_several_hops_may_be_asked_for_at_once() -> None:
    """As `checksum live` does: each is flipped when its hop comes, the last of a hop's counts."""
    probe, pool = make_probe()
    armed(probe)
    for hop, seed in (("load", 5), ("host_load", 7), ("arrive", 1), ("load", 6)):
        probe.observer.perturb(protocol.perturb(hop, seed=seed))
    hicache, host_pool = HicacheHops(probe.observer), host_pool_of(pool)
    for _ in range(2):
        load(hicache, host_pool, torch.arange(512) + 256)
    records(probe)
    flips = probe.observer.perturbed
    assert [flip["hop"] for flip in flips] == ["host_load", "load"]
    assert flips[1]["page"] == 1 + 6 % 2


def test_a_load_over_the_bound_is_named_once_and_not_a_layer_each() -> None:
    probe, pool = make_probe()
    armed(probe, max_bytes_per_step=1)
    hicache, host_pool = HicacheHops(probe.observer), host_pool_of(pool)
    load(hicache, host_pool, torch.arange(512) + 256)
    told = [one for one in records(probe) if isinstance(one, Forgotten)]
    assert [(one.page, one.reason) for one in told] == [(1, "limit"), (2, "limit")]
    # Before the copy and after it.
    assert probe.observer.skipped == {"limit": 4}


def test_host_pages_that_are_given_to_another_are_forgotten() -> None:
    probe, _ = make_probe()
    armed(probe)
    slots = torch.tensor([range(512, 768), range(1024, 1280)]).flatten()
    HicacheHops(probe.observer).leave_host_alloc(slots, SimpleNamespace(page_size=256), 512)
    told = [one for one in records(probe) if isinstance(one, Forgotten)]
    assert [(one.pool, one.page, one.host_page) for one in told] == [
        ("index_k", None, 2), ("index_k", None, 4),
    ]  # fmt: skip
    assert {one.reason for one in told} == {protocol.REUSED}


def test_ids_that_are_no_pages_reach_no_kernel() -> None:
    """Ids may mean something else on a release to come: nothing is read outside of the pool."""
    probe, pool = make_probe()
    armed(probe)
    host_pool = host_pool_of(pool)
    rows = torch.cat(
        [torch.arange(256) + 256, torch.arange(256) + (1 << 30), -torch.arange(256) - 256]
    )
    load(HicacheHops(probe.observer), host_pool, rows)
    found = [one for one in records(probe) if isinstance(one, Observation)]
    assert {one.page for one in found if one.hop == protocol.LOAD} == {1}
