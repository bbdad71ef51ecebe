"""A small cache and scheduler with the attributes that the probe reads of SGLang's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from dsv4doctor.probe.observer import Observer
from dsv4doctor.probe.rank import RankProbe
from dsv4doctor.probe.steps import StepHops
from dsv4doctor.probe_protocol import Forgotten, Observation, arm, parse_record

LAYERS = (0, 4, 128, 4)
TOKENS = 256


def make_pool(pages: int = 16, ratios: tuple[int, ...] = LAYERS, device: str = "cpu") -> Any:
    """A token pool with an fp8 indexer in every layer of ratio 4."""
    index = [
        torch.randint(0, 256, (pages, 8448), dtype=torch.uint8, device=device)
        for ratio in ratios
        if ratio == 4
    ]
    mapping, counts = [], {0: 0, 4: 0, 128: 0}
    for ratio in ratios:
        mapping.append(SimpleNamespace(compress_ratio=ratio, compress_layer_id=counts[ratio]))
        counts[ratio] += 1
    return SimpleNamespace(
        page_size=TOKENS,
        layer_mapping=mapping,
        layer_transfer_counter=None,
        c4_indexer_kv_pool=SimpleNamespace(index_k_with_scale_buffer=index),
        c4_kv_pool=SimpleNamespace(
            kv_buffer=[torch.zeros(pages, 37440, dtype=torch.uint8, device=device) for _ in index]
        ),
        c128_kv_pool=SimpleNamespace(
            kv_buffer=[
                torch.zeros(pages, 1728, dtype=torch.uint8, device=device)
                for ratio in ratios
                if ratio == 128
            ]
        ),
    )


def make_batch(tokens: int, *, prefix: int = 0, name: str = "r", first_page: int = 1) -> Any:
    """A prefill of one request whose page i is `first_page` + i."""
    table = torch.zeros(4, max(8192, tokens), dtype=torch.int32)
    table[1, :tokens] = torch.arange(tokens, dtype=torch.int32) + first_page * TOKENS
    request = SimpleNamespace(
        rid=name, req_pool_idx=1, bootstrap_room=None, host_hit_length=0,
        origin_input_ids=[0] * tokens, output_ids=[],
    )  # fmt: skip
    return SimpleNamespace(
        reqs=[request], prefix_lens=[prefix], extend_lens=[tokens - prefix],
        seq_lens_cpu=torch.tensor([tokens]), hicache_consumer_index=-1,
        forward_mode=SimpleNamespace(is_idle=lambda: False, is_extend=lambda: True),
        req_to_token_pool=SimpleNamespace(req_to_token=table),
    )  # fmt: skip


def make_probe(
    *, ring_words: int = 1 << 14, submit: Callable[..., Any] | None = None
) -> tuple[RankProbe, Any]:
    """(probe, its pool), not armed."""
    from dsv4doctor.probe.devices import CpuDevice

    observer = Observer()
    observer.ring_words = ring_words
    pool = make_pool()
    assert observer.adopt(pool, CpuDevice() if submit is None else CpuDevice(submit))
    return RankProbe(observer), pool


def armed(probe: RankProbe, **settings: Any) -> StepHops:
    """The step's hooks of a probe that observes."""
    probe.observer.arm({**arm("test", **{"max_share": 1.0, **settings})}, None)
    return StepHops(probe.observer)


def step(steps: StepHops, batch: Any, scheduler: Any = None) -> None:
    """One `run_batch` as the hooks see it; no read runs."""
    scheduler = scheduler or SimpleNamespace(forward_ct=0, enable_overlap=False)
    token = steps.enter_step(scheduler, batch)
    steps.leave_step(token, None, scheduler, batch)


def records(probe: RankProbe) -> list[Observation | Forgotten]:
    """Everything seen so far, drained on this thread."""
    while probe.drainer.drain_some():
        pass
    taken = probe.observer.journal.take(0, 1 << 30)["records"]
    return [each for record in taken for each in parse_record(record)]


class Stepping:
    """A scheduler that takes steps on a thread of its own, as long as it is entered."""

    tp_rank = dp_rank = pp_rank = 0

    def __init__(self, probe: RankProbe) -> None:
        self._probe, self._end = probe, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.steps = 0
        probe.pump(self)

    def _run(self) -> None:
        while not self._end.is_set():
            self._probe.pump(self)
            self.steps += 1
            time.sleep(0.001)

    def __enter__(self) -> Stepping:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._end.set()
        self._thread.join()
        self._probe.close()
