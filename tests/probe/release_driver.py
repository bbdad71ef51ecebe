"""Drives one release through store, backup, evict, load-back and read, the probe watching.

    python release_driver.py TREE PLUGIN RUN_FOLDER LAYOUT      (prints one JSON document)

TREE holds the unpacked wheel, PLUGIN what `probe install` puts on a host. Its own process, since it
fills `sys.modules`.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

TREE, PLUGIN, RUN, LAYOUT = (*map(Path, sys.argv[1:4]), sys.argv[4])
os.environ |= {
    "DSV4DOCTOR_PROBE_HERE": "1",
    "DSV4DOCTOR_PROBE_DIR": str(RUN),
    "SGLANG_PLUGINS": "dsv4doctor",
}
sys.path.insert(0, str(PLUGIN))

import release_rig as rig  # noqa: E402
import streams  # noqa: E402
import stubs  # noqa: E402
import torch  # noqa: E402

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
        self.kv = SimpleNamespace(req_pool_idx=row)
        self.bootstrap_room = row + 100
        self.origin_input_ids, self.output_ids = list(range(length)), []
        self.host_hit_length = 0
        self.start_send_idx = self.disagg_decode_prefix_len = 0
        self.fill_ids = list(range(length))
        self.extend_range = SimpleNamespace(end=length, length=length - prefix)
        self.extend_end, self.prefix_len = length, prefix
        self.disagg_kv_sender = Sender()


class Rig:
    """One scheduler with its cache."""

    def __init__(self) -> None:
        rig.prepare(TREE, LAYOUT)
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
                client.connect(str(next(RUN.glob("*.sock"))))
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

        names = [PoolName.DEEPSEEK_V4_C4, PoolName.DEEPSEEK_V4_C4_INDEXER]
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
        "_pending_flush": None,
    }  # fmt: skip
    for name, value in values.items():
        vars(scheduler)[name] = value
    return scheduler


SEEN: dict[str, Any] = {}


def scenario(own: Rig, name: str, at: str = "", *, pools: tuple[str, ...] = ("index_k",)) -> None:
    """One page life: filled, backed up, evicted, its page overwritten, loaded back, read.

    `at` says where a byte is really flipped: on the device before the backup, on the host, or on
    the device after the load has ended.
    """
    own.ask(command="arm", session=name, max_share=1, pools=list(pools))
    own.after = 0
    slots = own.allocator.alloc(3 * TOKENS)
    pages = rows_of(slots)
    own.run(own.request(f"{name}-a", slots, 0, 3 * TOKENS - 100))
    stored = own.bytes_of(pages)
    buffers = own.pool.c4_indexer_kv_pool.index_k_with_scale_buffer
    if at == "device":
        buffers[1][pages[1], 77] ^= 1
    host = own.back_up(slots[: 2 * TOKENS])
    own.controller_streams()
    if at == "host":
        own.host_page(2, rows_of(host)[0])[8300] ^= 0x80
    own.allocator.free(slots)
    other = own.allocator.alloc(3 * TOKENS)
    own.run(own.request(f"{name}-b", other, 0, 3 * TOKENS))
    stale = own.bytes_of(pages)
    own.allocator.free(other)
    loaded, producer = own.load(host)
    more = own.allocator.alloc(TOKENS)
    request = own.request(f"{name}-c", torch.cat([loaded, more]), 2 * TOKENS, 3 * TOKENS)
    request.host_hit_length = 2 * TOKENS
    if at == "loaded":
        own.controller_streams()
        buffers[0][rows_of(loaded)[1], 5] ^= 2
    own.run(request, consumer=producer)
    records = own.drained()
    own.controller.mem_pool_host.free(host)
    own.allocator.free(torch.cat([loaded, more]))
    SEEN[name] = {
        "records": records, "pages": pages, "loaded": rows_of(loaded), "host": rows_of(host),
        "stored": stored, "stale": stale, "status": own.ask(command="status")["status"],
    }  # fmt: skip


def rows_of(slots: torch.Tensor) -> list[int]:
    return [int(row) for row in slots[::TOKENS] // TOKENS]


def decoding(own: Rig) -> None:
    """A page filled by decoding, a flipped byte, a forward that asks nobody as graphs do."""
    own.ask(command="arm", session="decoding", max_share=1)
    own.after = 0
    slots = own.allocator.alloc(3 * TOKENS)
    request = own.request("d", slots, 0, 2 * TOKENS - 2)
    own.run(request)
    for length in range(2 * TOKENS - 1, 2 * TOKENS + 4):
        request.prefix, request.length = length - 1, length
        own.run(request, is_extend=False)
        if length == 2 * TOKENS + 2:
            own.pool.c4_indexer_kv_pool.index_k_with_scale_buffer[1][rows_of(slots)[0], 3] ^= 1
    own.reads = False
    own.run(own.request("e", slots, 2 * TOKENS, 2 * TOKENS + 8))
    own.reads = True
    SEEN["decoding"] = {"records": own.drained(), "pages": rows_of(slots)}
    own.allocator.free(slots)
    SEEN["decoding"]["status"] = own.ask(command="status")["status"]


def perturbed(own: Rig, hop: str) -> None:
    own.ask(command="arm", session="first", max_share=1)
    answer = own.ask(command="perturb", hop=hop, seed=11)
    assert answer["ok"], answer
    # The scenario arms again, which forgets the command: so it is given inside.
    given = own.ask

    def ask(**request: Any) -> dict[str, Any]:
        found = given(**request)
        if request["command"] == "arm":
            given(command="perturb", hop=hop, seed=11)
        return found

    own.ask = ask  # type: ignore[method-assign]
    scenario(own, f"perturb-{hop}")
    own.ask = given  # type: ignore[method-assign]


def two_sides(own: Rig) -> None:
    """What is handed to a transfer, and what has arrived: one rank plays both sides."""
    from sglang.srt.disaggregation.decode import DecodeTransferQueue

    own.ask(command="arm", session="pd", max_share=1)
    own.after = 0
    slots = own.allocator.alloc(4 * TOKENS)
    sent = own.request("p", slots[: 2 * TOKENS], 0, 2 * TOKENS + 20)
    own.run(sent)
    own.scheduler.send_kv_chunk(sent, last_chunk=False, end_idx=2 * TOKENS)
    arrived = own.request("q", slots[2 * TOKENS :], 0, 2 * TOKENS + 20)
    arrived.bootstrap_room = sent.bootstrap_room
    source, target = rows_of(slots)[:2], rows_of(slots)[2:]
    for place, buffer in enumerate(own.pool.c4_indexer_kv_pool.index_k_with_scale_buffer):
        buffer[target] = buffer[source]
        if place == 2:
            buffer[target[1], 9] ^= 4
    queue = object.__new__(type("Queue", (DecodeTransferQueue,), {"__getattr__": anything}))
    queue.req_to_token_pool, queue.scheduler = own.table, own.scheduler
    queue.spec_algorithm = own.scheduler.spec_algorithm
    queue.metadata_buffers = Buffers(sent.bootstrap_room)
    queue._commit_transfer_to_req(Arrival(arrived))
    own.allocator.free(slots)
    SEEN["pd"] = {"records": own.drained(), "source": source, "target": target}
    SEEN["pd"]["status"] = own.ask(command="status")["status"]


def anything(_self: Any, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return stubs.Stub()


class Arrival(stubs.Stub):
    """A `DecodeRequest` whose transfer has ended."""

    def __init__(self, req: Request) -> None:
        self.req, self.decode_prefix_len, self.metadata_buffer_index = req, 0, 0
        self.is_rebootstrap = False
        req.return_logprob = req.return_sampling_mask = False


class Number(stubs.Stub):
    """A metadata tensor: every element is the bootstrap room of the request."""

    def __init__(self, value: int) -> None:
        self._value = value

    def __getitem__(self, _: Any) -> Any:
        return self

    def item(self) -> int:
        return self._value


class Buffers(stubs.Stub):
    """Metadata that came with the transfer; as many parts as this release takes."""

    def __init__(self, room: int) -> None:
        self._room = room

    def get_kv_checksum(self, _: int) -> tuple[int, int]:
        return 0, 0

    def get_buf(self, _: int) -> tuple[Number, ...]:
        import inspect

        from sglang.srt.disaggregation.decode import DecodeTransferQueue

        commit = inspect.unwrap(DecodeTransferQueue._commit_transfer_to_req)
        source = inspect.getsource(commit)
        parts = source.partition(") = self.metadata_buffers.get_buf")[0].rpartition("(")[2]
        return (Number(self._room),) * len([part for part in parts.split(",") if part.strip()])


def server_info(own: Rig) -> Any:
    """What the probe adds to the answer behind /server_info; from 0.5.22 on the scheduler asks a
    part of its own for that answer, before it does more of it than this rig has."""
    part = SimpleNamespace(
        get_internal_state=lambda _: SimpleNamespace(internal_state={"version": "x"})
    )
    vars(own.scheduler)["internal_state"] = part
    try:
        return own.scheduler.get_internal_state(None).internal_state
    except Exception as error:
        return f"not run: {type(error).__name__}: {error}"


def main() -> None:
    own = Rig()
    status = own.ask(command="status")["status"]
    SEEN["observes"], SEEN["pools"] = status["observes"], status["pools"]
    scenario(own, "clean", pools=("index_k", "c4", "c128"))
    # Hides the method from the getter, as though the call were not in it.
    own.pool.wait_layer_transfer = lambda _layer: None
    scenario(own, "ungated")
    del own.pool.wait_layer_transfer
    for at in ("device", "host", "loaded"):
        scenario(own, at, at)
    decoding(own)
    for hop in ("backup", "host", "host_load", "load", "read"):
        perturbed(own, hop)
    try:
        two_sides(own)
    except Exception as error:
        import traceback

        traceback.print_exc()
        SEEN["pd"] = {"error": f"{type(error).__name__}: {error}"}
    SEEN["server_info"] = server_info(own)
    SEEN["retired"] = own.ask(command="retire")["ok"]
    SEEN["left"] = [path.name for path in RUN.iterdir()]
    own.run(own.request("z", own.allocator.alloc(TOKENS), 0, 100))
    print(json.dumps(SEEN))


if __name__ == "__main__":
    main()
