"""One release's scheduler with its cache, the probe inside, and what a page can be put through.

`release_driver.py` runs it, and sets the environment before it imports this; `release_rig.py` says
what of SGLang is real.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import release_rig as rig
import streams
import stubs
import torch

TOKENS = rig.PAGE


@dataclass(init=False)
class Batch(stubs.Stub):
    """What `run_batch` and the probe read of a `ScheduleBatch`; the rest is off."""

    def __init__(self, requests: list[Any], table: Any, *, is_extend: bool) -> None:
        self.reqs = requests
        self.req_to_token_pool = table
        self.forward_mode = SimpleNamespace(
            is_extend=lambda *_, **__: is_extend, is_idle=lambda: False,
            is_prebuilt=lambda: False, is_decode=lambda: not is_extend,
            is_split_prefill=lambda: False,
        )  # fmt: skip
        self.prefix_lens = [request.prefix for request in requests]
        self.extend_lens = [request.length - request.prefix for request in requests]
        self.seq_lens_cpu = torch.tensor([request.length for request in requests])
        self.seq_lens = self.seq_lens_cpu
        self.extend_num_tokens = sum(self.extend_lens)
        self.prefill_input_ids_cpu = self.mix_running_indices = None
        self.hicache_consumer_index = -1
        self.return_logprob = self.return_hidden_states = False
        self.spec_algorithm = NoSpeculation()


class NoSpeculation(stubs.Stub):
    def is_none(self) -> bool:
        return True


class Sender(stubs.Stub):
    """The transfer's end on the prefill side: takes pages and does nothing."""

    _early_send_wait_event = None

    def get_max_transfer_tokens(self) -> None:
        return None


class Request(stubs.Stub):
    """One request: its row, its tokens, and where they lie."""

    def __init__(self, name: str, row: int, prefix: int, length: int) -> None:
        self.rid, self.req_pool_idx, self.prefix, self.length = name, row, prefix, length
        self.kv = SimpleNamespace(req_pool_idx=row, mamba_pool_idx=None)
        self.bootstrap_room = row + 100
        self.origin_input_ids, self.output_ids = list(range(length)), []
        self.host_hit_length = self.swa_host_hit_length = self.mamba_host_hit_length = 0
        self.start_send_idx = self.disagg_decode_prefix_len = 0
        self.fill_ids = list(range(length))
        self.extend_range = SimpleNamespace(end=length, length=length - prefix)
        self.extend_end, self.prefix_len = length, prefix
        self.disagg_kv_sender = Sender()


class Rig:
    """One scheduler with its cache. `seen`: what it was put through, by name."""

    def __init__(self, tree: Path, run: Path, layout: str) -> None:
        self.seen: dict[str, Any] = {}
        self.run_folder = run
        rig.prepare(tree, layout)
        import sglang.srt.managers.scheduler  # noqa: F401
        from sglang.srt.plugins import load_plugins

        load_plugins()
        from dsv4doctor_probe import plugin

        assert plugin.PROBE is not None
        self.probe = plugin.PROBE
        rig.settle()
        use_torch_store()
        self.pool = rig.make_pool()
        self.probe.observer.device = type(self.probe.observer.device)(streams.submit)
        self.allocator = rig.Allocator(self.pool)
        self.hosts, self.controller = rig.make_hicache(self.pool, self.allocator)
        self.table = SimpleNamespace(req_to_token=torch.zeros(64, 4096, dtype=torch.int32))
        self.dice = np.random.default_rng(7)
        self.scheduler = make_scheduler(self)
        self.batch: Batch | None = None
        self.reads = True
        self.rows = 0
        self.after = 0

    def ask(self, **request: Any) -> dict[str, Any]:
        """One request over the real socket, while the scheduler keeps stepping."""
        answers: list[dict[str, Any]] = []

        def talk() -> None:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(30)
                client.connect(str(next(self.run_folder.glob("*.sock"))))
                client.sendall(json.dumps({"v": 1, **request}).encode() + b"\n")
                with client.makefile() as lines:
                    answers.append(json.loads(lines.readline()))

        self.scheduler.process_input_requests([])
        thread = threading.Thread(target=talk)
        thread.start()
        while thread.is_alive():
            self.scheduler.process_input_requests([])
            thread.join(0.005)
        return answers[0]

    def drained(self) -> list[dict[str, Any]]:
        """All records since the last call, once every stream has caught up."""
        self.controller_streams()
        records: list[dict[str, Any]] = []
        while self.probe.observer.queue:
            threading.Event().wait(0.01)
        while True:
            answer = self.ask(command="drain", after=self.after)
            records += answer["records"]
            self.after = answer["next"]
            if not answer["left"]:
                return records

    def controller_streams(self) -> None:
        engine = getattr(self.controller, "l2_transfer_engine", None)
        places = [self.controller, *([engine] if engine is not None else [])]
        for place in places:
            for value in vars(place).values():
                if isinstance(value, streams.Stream):
                    value.synchronize()

    def request(self, name: str, slots: torch.Tensor, prefix: int, length: int) -> Request:
        """A request whose first tokens lie in `slots`."""
        self.rows += 1
        request = Request(name, self.rows, prefix, length)
        self.table.req_to_token[self.rows, : len(slots)] = slots.to(torch.int32)
        return request

    def run(self, request: Request, *, is_extend: bool = True, consumer: int = -1) -> None:
        """One real `run_batch`; the model's forward stores the new pages and reads the prefix."""
        self.batch = Batch([request], self.table, is_extend=is_extend)
        self.batch.hicache_consumer_index = consumer
        self.scheduler.process_input_requests([])
        self.scheduler.run_batch(self.batch)

    def model(self, batch: Batch) -> None:
        """Stands for the model: per layer the store of the new slots, then the indexer's read."""
        counter = self.pool.layer_transfer_counter
        if counter is not None:
            counter.set_consumer(batch.hicache_consumer_index)
        for request in batch.reqs:
            row = self.table.req_to_token[request.req_pool_idx]
            slots = row[request.prefix : request.length : 4].to(torch.int64) // 4
            for layer in rig.INDEX_LAYERS if self.reads else ():
                self.pool.get_index_k_with_scale_buffer(layer)  # what the reader and writer ask for
                self.pool.get_extra_key_buffer(layer)
                if len(slots):
                    self.store(layer, slots)
            if self.reads:
                self.pool.get_extra_key_buffer(rig.LAYERS.index(128))

    def store(self, layer: int, slots: torch.Tensor) -> None:
        """Random keys by SGLang's own store."""
        keys = torch.from_numpy(self.dice.integers(0, 100, (len(slots), 128), dtype=np.uint8))
        scales = torch.from_numpy(self.dice.random((len(slots), 1), dtype=np.float32))
        self.pool.set_index_k_scale_buffer(layer, slots, keys.view(torch.float8_e4m3fn), scales)

    def bytes_of(self, pages: list[int]) -> dict[str, list[str]]:
        """Hex of the pages' bytes by layer, read directly: what digests are checked against."""
        buffers = self.pool.c4_indexer_kv_pool.index_k_with_scale_buffer
        return {
            str(layer): [bytes(buffers[place][page].numpy()).hex() for page in pages]
            for place, layer in enumerate(rig.INDEX_LAYERS)
        }

    def transfers(self) -> list[Any]:
        from sglang.srt.mem_cache.hicache_storage import PoolName, PoolTransfer

        names = [
            PoolName.DEEPSEEK_V4_C4, PoolName.DEEPSEEK_V4_C4_INDEXER, PoolName.DEEPSEEK_V4_C128,
        ]  # fmt: skip
        return [PoolTransfer(name=name, indices_from_pool=PoolName.KV) for name in names]

    def back_up(self, slots: torch.Tensor) -> torch.Tensor:
        host = self.controller.write(slots, node_id=1, extra_pools=self.transfers())
        assert host is not None
        return host

    def load(self, host: torch.Tensor) -> tuple[torch.Tensor, int]:
        slots = self.controller.load(host, node_id=2, extra_pools=self.transfers())
        assert slots is not None
        return slots, self.controller.start_loading()

    def host_page(self, layer_place: int, row: int) -> torch.Tensor:
        entry = next(e for e in self.hosts.entries if e.name.value.endswith("c4_indexer"))
        buffer = entry.host_pool.kv_buffer
        if isinstance(buffer, list):
            return buffer[layer_place][row]
        return buffer[row, layer_place].reshape(-1)

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.ask(command="status")["status"]
        return status


def rows_of(slots: torch.Tensor) -> list[int]:
    return [int(row) for row in slots[::TOKENS] // TOKENS]


def use_torch_store() -> None:
    """SGLang's index-K store, but for its Triton kernel: that one's stores, in torch."""

    def stored(_cls: Any, pool: Any, buf: Any, loc: Any, index_k: Any, index_k_scale: Any) -> None:
        pages, slots = loc // pool.page_size, loc % pool.page_size
        columns = torch.arange(128)
        buf[pages[:, None], slots[:, None] * 128 + columns] = index_k.view(torch.uint8)
        scales = index_k_scale.contiguous().view(torch.uint8).reshape(len(loc), 4)
        first = pool.page_size * 128 + slots[:, None] * 4
        buf[pages[:, None], first + torch.arange(4)] = scales

    for name, module in list(sys.modules.items()):
        found = vars(module).get("SetKAndS") if name.startswith("sglang.") else None
        if isinstance(found, type) and not isinstance(found, stubs.StubType):
            found.triton = classmethod(stored)  # type: ignore[attr-defined]


def make_scheduler(own: Rig) -> Any:
    """The release's `Scheduler` class without its start: what it lacks is off."""
    from sglang.srt.managers.scheduler import Scheduler

    class Bare(Scheduler):
        def __init__(self) -> None: ...

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return stubs.Stub()

        @property
        def is_generation(self) -> bool:
            return True

    class Worker(stubs.Stub):
        def forward_batch_generation(self, batch: Any, *_: Any, **__: Any) -> Any:
            assert own.batch is not None
            own.model(own.batch)
            return stubs.Stub()

    scheduler = Bare()
    values = {
        "enable_overlap": False, "forward_ct": 0, "tp_worker": Worker(), "model_worker": Worker(),
        "spec_algorithm": NoSpeculation(), "token_to_kv_pool_allocator": own.allocator,
        "req_to_token_pool": own.table, "processed_tokens_counter": 0, "forward_sleep_time": None,
        "scripted_scheduler_hook": None, "external_corpus_manager": None,
        "disaggregation_mode": SimpleNamespace(value="null"), "tp_rank": 0, "dp_rank": 0,
        "pp_rank": 0, "_sched_idled": False, "kv_checksum_computer": None, "enable_staging": False,
        "_pending_flush": None, "tree_cache": None,
    }  # fmt: skip
    for name, value in values.items():
        vars(scheduler)[name] = value
    return scheduler
