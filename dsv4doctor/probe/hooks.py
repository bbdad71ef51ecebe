"""Which functions of SGLang are hooked, and by what: a table.

`enter` and `leave` name a part of the probe and its method. A hop is observed only where every hook
that names it is in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.disaggregation import TransferHops
from dsv4doctor.probe.guard import Guard
from dsv4doctor.probe.hicache import HicacheHops
from dsv4doctor.probe.rank import RankProbe
from dsv4doctor.probe.steps import StepHops

SCHEDULER_MODULE = "sglang.srt.managers.scheduler"

_CACHE = "sglang.srt.mem_cache"
_POOL = f"{_CACHE}.deepseek_v4_memory_pool.DeepSeekV4TokenToKVPool"
_HOST_POOL = f"{_CACHE}.memory_pool_host.DeepSeekV4PagedHostPool"
_HOST_SLOTS = f"{_CACHE}.memory_pool_host.LogicalHostPool"
_CONTROLLER = f"{_CACHE}.hybrid_cache.hybrid_cache_controller.HybridCacheController"
_SCHEDULER = f"{SCHEDULER_MODULE}.Scheduler"
_PREFILL = "sglang.srt.disaggregation.prefill.SchedulerDisaggregationPrefillMixin"
_DECODE = "sglang.srt.disaggregation.decode.DecodeTransferQueue"
_COMPRESSOR = "sglang.srt.layers.attention.dsv4.compressor"

_STEP_HOPS = (protocol.STORE, protocol.READ, protocol.HELD)
_READ_HOPS = (protocol.READ,)
_HOST_HOPS = (protocol.BACKUP, protocol.HOST)
_LOAD_HOPS = (protocol.HOST_LOAD, protocol.LOAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One function of SGLang. `kind` is as SGLang's HookType has it: "around" runs `enter` and
    `leave`, "before" `enter`, "after" `leave`. `always`: while the probe is not armed, too."""

    target: str
    kind: str = "around"
    enter: str = ""
    leave: str = ""
    hops: tuple[str, ...] = ()
    always: bool = False


HOOKS = (
    Hook(
        target=f"{_POOL}.__init__", kind="after", leave="rank.adopt", hops=protocol.HOPS,
        always=True,
    ),
    Hook(
        target=f"{_SCHEDULER}.process_input_requests", kind="before", enter="rank.pump",
        hops=protocol.HOPS, always=True,
    ),
    Hook(
        target=f"{_SCHEDULER}.get_internal_state", kind="after", leave="rank.add_status",
        always=True,
    ),
    Hook(
        target=f"{_SCHEDULER}.run_batch", enter="steps.enter_step", leave="steps.leave_step",
        hops=_STEP_HOPS,
    ),
    Hook(
        target=f"{_POOL}.wait_layer_transfer", kind="after", leave="steps.passed_gate",
        hops=_READ_HOPS,
    ),
    Hook(
        target=f"{_POOL}.get_index_k_with_scale_buffer", enter="steps.enter_getter",
        leave="steps.leave_index_read", hops=_READ_HOPS,
    ),
    Hook(
        target=f"{_POOL}.get_index_k_scale_buffer", enter="steps.enter_getter",
        leave="steps.leave_index_read",
    ),
    Hook(
        target=f"{_POOL}.get_index_k_fp4_payload_buffer", enter="steps.enter_getter",
        leave="steps.leave_index_read",
    ),
    Hook(
        target=f"{_POOL}.get_extra_key_buffer", enter="steps.enter_getter",
        leave="steps.leave_latent_read",
    ),
    Hook(
        target=f"{_COMPRESSOR}_v2.CompressorBackendMixin.forward_indexer_compressor",
        enter="steps.enter_write", leave="steps.leave_write", hops=_READ_HOPS,
    ),
    Hook(
        target=f"{_COMPRESSOR}.CompressorBackendMixin.forward_indexer_compressor",
        enter="steps.enter_write", leave="steps.leave_write",
    ),
    Hook(
        target=f"{_HOST_POOL}.backup_from_device_all_layer", enter="hicache.enter_backup",
        leave="hicache.leave_backup", hops=_HOST_HOPS,
    ),
    Hook(
        target=f"{_HOST_POOL}.load_to_device_per_layer", enter="hicache.enter_load",
        leave="hicache.leave_load", hops=_LOAD_HOPS,
    ),
    Hook(
        target=f"{_HOST_SLOTS}.alloc", kind="after", leave="hicache.leave_host_alloc",
        hops=(protocol.HOST_LOAD,),
    ),
    Hook(
        target=f"{_CONTROLLER}.start_writing", enter="hicache.enter_writing",
        leave="hicache.leave_writing", hops=_HOST_HOPS,
    ),
    Hook(
        target=f"{_CONTROLLER}.start_loading", enter="hicache.enter_loading",
        leave="hicache.leave_loading", hops=_LOAD_HOPS,
    ),
    Hook(
        target=f"{_PREFILL}.send_kv_chunk", kind="before", enter="transfers.enter_send",
        hops=(protocol.SEND,),
    ),
    Hook(
        target=f"{_DECODE}._commit_transfer_to_req", kind="after", leave="transfers.leave_arrive",
        hops=(protocol.ARRIVE,),
    ),
)  # fmt: skip


def bound_hooks(probe: RankProbe) -> Iterator[tuple[Hook, Callable[..., Any]]]:
    """Every hook there is and what SGLang's registry takes for it, bound to `probe`."""
    observer = probe.observer
    parts = {
        "rank": probe,
        "steps": StepHops(observer),
        "hicache": HicacheHops(observer),
        "transfers": TransferHops(observer),
    }

    def method(name: str) -> Callable[..., Any]:
        part, _, work = name.partition(".")
        found: Callable[..., Any] = getattr(parts[part], work)
        return found

    for hook in HOOKS:
        guard = Guard(observer, hook.target.rpartition("sglang.srt.")[2], hook.hops)
        if hook.always:
            yield hook, guard.always(method(hook.enter or hook.leave))
        elif hook.kind == "before":
            yield hook, guard.before(method(hook.enter))
        elif hook.kind == "after":
            yield hook, guard.after(method(hook.leave))
        else:
            yield hook, guard.around(method(hook.enter), method(hook.leave))
