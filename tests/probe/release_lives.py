"""What pages are put through: filled, copied, sent, read, changed; one function a life.

Each leaves under its name in `Rig.seen` what the probe told and what the bytes really were.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import release_rig as rig
import stubs
import torch
from release_rank import Request, Rig, rows_of

TOKENS = rig.PAGE


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
    own.seen[name] = {
        "records": records, "pages": pages, "loaded": rows_of(loaded), "host": rows_of(host),
        "stored": stored, "stale": stale, "status": own.status(),
    }  # fmt: skip


def decoding(own: Rig, name: str = "decoding", *, flips: bool = True) -> None:
    """A page filled by decoding, a flipped byte, a forward that asks nobody as graphs do."""
    own.ask(command="arm", session=name, max_share=1)
    own.after = 0
    slots = own.allocator.alloc(3 * TOKENS)
    request = own.request("d", slots, 0, 2 * TOKENS - 2)
    own.run(request)
    for length in range(2 * TOKENS - 1, 2 * TOKENS + 4):
        request.prefix, request.length = length - 1, length
        own.run(request, is_extend=False)
        if flips and length == 2 * TOKENS + 2:
            own.pool.c4_indexer_kv_pool.index_k_with_scale_buffer[1][rows_of(slots)[0], 3] ^= 1
    own.reads = False
    own.run(own.request("e", slots, 2 * TOKENS, 2 * TOKENS + 8))
    own.reads = True
    own.seen[name] = {"records": own.drained(), "pages": rows_of(slots)}
    own.allocator.free(slots)
    own.seen[name]["status"] = own.status()


def perturbed(own: Rig, hop: str, life: Callable[[Rig, str], None]) -> None:
    """A life with one byte flipped at a hop by the probe's own self-test."""
    own.ask(command="arm", session="first", max_share=1)
    answer = own.ask(command="perturb", hop=hop, seed=11)
    assert answer["ok"], answer
    # The life arms again, which forgets the command: so it is given inside.
    given = own.ask

    def ask(**request: Any) -> dict[str, Any]:
        found = given(**request)
        if request["command"] == "arm":
            given(command="perturb", hop=hop, seed=11)
        return found

    own.ask = ask  # type: ignore[method-assign]
    life(own, f"perturb-{hop}")
    own.ask = given  # type: ignore[method-assign]


def two_sides(own: Rig, name: str = "pd", *, flips: bool = True) -> None:
    """What is handed to a transfer, and what has arrived: one rank plays both sides."""
    own.ask(command="arm", session=name, max_share=1)
    own.after = 0
    slots = own.allocator.alloc(4 * TOKENS)
    sent = own.request("p", slots[: 2 * TOKENS], 0, 2 * TOKENS + 20)
    own.run(sent)
    own.scheduler.send_kv_chunk(sent, last_chunk=False, end_idx=2 * TOKENS)
    arrived = own.request("q", slots[2 * TOKENS :], 0, 2 * TOKENS + 20)
    arrived.bootstrap_room = sent.bootstrap_room
    source, target = rows_of(slots)[:2], rows_of(slots)[2:]
    _commit(own, arrived, room=0)  # not there yet
    for place, buffer in enumerate(own.pool.c4_indexer_kv_pool.index_k_with_scale_buffer):
        buffer[target] = buffer[source]
        if flips and place == 2:
            buffer[target[1], 9] ^= 4
    arrived.finished_reason = None
    _commit(own, arrived, room=sent.bootstrap_room)
    own.allocator.free(slots)
    own.seen[name] = {"records": own.drained(), "source": source, "target": target}
    own.seen[name]["status"] = own.status()


def _commit(own: Rig, arrived: Request, room: int) -> None:
    """The release's `_commit_transfer_to_req`, with metadata of that room (0: none has come)."""
    from sglang.srt.disaggregation.decode import DecodeTransferQueue

    queue = object.__new__(type("Queue", (DecodeTransferQueue,), {"__getattr__": anything}))
    queue.req_to_token_pool, queue.scheduler = own.table, own.scheduler
    queue.spec_algorithm = own.scheduler.spec_algorithm
    queue.metadata_buffers = Buffers(room)
    queue._commit_transfer_to_req(Arrival(arrived))


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
    """What the probe adds to the answer behind /server_info, made by the release's own code."""
    import sys

    def context() -> Any:
        return SimpleNamespace(resolved_server_args_dict=lambda: {"version": "x"})

    for name, module in list(sys.modules.items()):
        if name.startswith("sglang.srt.managers.scheduler") and "get_context" in vars(module):
            module.get_context = context  # type: ignore[attr-defined]
    scheduler, kept = own.scheduler, dict(vars(own.scheduler))
    figures = {"weight_load_mem_usage": 1.0, "graph_mem_usage": 1.0}
    scheduler.tp_worker.model_runner = SimpleNamespace(**figures)
    scheduler.tp_worker.graph_memory_usage = {}
    scheduler.tp_worker.get_decode_cuda_graph_bs = list
    own.pool.mem_usage = 1.0
    vars(scheduler).update(
        max_total_num_tokens=1, swa_tokens_per_layer=1, max_running_requests=1, startup_time=1.0,
        startup_available_gpu_memory_gb=1.0, last_gen_throughput=0.0, draft_worker=None,
        rust_server=None, server_args=rig.SETTINGS, disaggregation_mode=None,
        metrics_reporter=SimpleNamespace(last_gen_throughput=0.0, step_time_dict={}),
    )  # fmt: skip
    try:
        from sglang.srt.managers.scheduler_components.internal_state import (
            SchedulerInternalStateController,
        )

        vars(scheduler)["internal_state"] = SchedulerInternalStateController(scheduler, False)
    except ImportError:  # 0.5.21 and older: the scheduler does it itself
        pass
    try:
        return scheduler.get_internal_state(None).internal_state
    except Exception as error:
        return f"not run: {type(error).__name__}: {error}"
    finally:
        vars(scheduler).clear()
        vars(scheduler).update(kept)
