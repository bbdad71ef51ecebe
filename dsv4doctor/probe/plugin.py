"""The entry point of the group `sglang.srt.plugins`: which functions of SGLang are hooked.

Each target is looked up first; where a release has none of that name, the hops that need it are
"not observable on this version". SGLang's own registry puts the hooks in (0.5.11 to 0.5.23).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.disaggregation import TransferHops
from dsv4doctor.probe.guard import Guard
from dsv4doctor.probe.hicache import HicacheHops
from dsv4doctor.probe.observer import Observer
from dsv4doctor.probe.rank import RankProbe
from dsv4doctor.probe.steps import StepHops

logger = logging.getLogger("dsv4doctor.probe")

# Set where schedulers are no processes of their own (Ray actors, tests).
HERE_VARIABLE = "DSV4DOCTOR_PROBE_HERE"
SCHEDULER_MODULE = "sglang.srt.managers.scheduler"

_POOL = "sglang.srt.mem_cache.deepseek_v4_memory_pool.DeepSeekV4TokenToKVPool"
_HOST_POOL = "sglang.srt.mem_cache.memory_pool_host.DeepSeekV4PagedHostPool"
_CONTROLLER = "sglang.srt.mem_cache.hybrid_cache.hybrid_cache_controller.HybridCacheController"
_SCHEDULER = f"{SCHEDULER_MODULE}.Scheduler"
_PREFILL = "sglang.srt.disaggregation.prefill.SchedulerDisaggregationPrefillMixin"
_DECODE = "sglang.srt.disaggregation.decode.DecodeTransferQueue"
_COMPRESSOR = "sglang.srt.layers.attention.dsv4.compressor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One function of SGLang. `hops` need it: without it they are not observed."""

    target: str
    kind: str  # "around", "before", "after" as SGLang's HookType has them
    call: Callable[..., Any]
    hops: tuple[str, ...] = ()


_STEP_HOPS = (protocol.STORE, protocol.READ, protocol.HELD)
_HOST_HOPS = (protocol.BACKUP, protocol.HOST)
_LOAD_HOPS = (protocol.HOST_LOAD, protocol.LOAD)


def hooks_of(probe: RankProbe) -> list[Hook]:
    """Every hook there is, bound to `probe`."""
    observer = probe.observer
    steps, hicache, transfers = StepHops(observer), HicacheHops(observer), TransferHops(observer)

    def around(target: str, enter: Any, leave: Any, *needed: str) -> Hook:
        guard = Guard(observer, target.rpartition("sglang.srt.")[2], needed)
        return Hook(target=target, kind="around", call=guard.around(enter, leave), hops=needed)

    def plain(target: str, kind: str, work: Any, *needed: str) -> Hook:
        guard = Guard(observer, target.rpartition("sglang.srt.")[2], needed)
        call = guard.before(work) if kind == "before" else guard.after(work)
        return Hook(target=target, kind=kind, call=call, hops=needed)

    def always(target: str, kind: str, work: Any, *needed: str) -> Hook:
        """A hook that also runs while the probe is not armed."""
        guard = Guard(observer, target.rpartition("sglang.srt.")[2], needed)

        def call(*arguments: Any, **keywords: Any) -> None:
            guard.call(work, *arguments, **keywords)

        return Hook(target=target, kind=kind, call=call, hops=needed)

    def adopt(_result: Any, pool: Any, *_: Any, **__: Any) -> None:
        observer.adopt(pool)

    getter, index_read = steps.enter_getter, steps.leave_index_read
    return [
        always(f"{_POOL}.__init__", "after", adopt, *protocol.HOPS),
        always(f"{_SCHEDULER}.process_input_requests", "before", probe.pump, *protocol.HOPS),
        always(f"{_SCHEDULER}.get_internal_state", "after", probe.add_status),
        around(f"{_SCHEDULER}.run_batch", steps.enter_step, steps.leave_step, *_STEP_HOPS),
        plain(f"{_POOL}.wait_layer_transfer", "after", steps.passed_gate, protocol.READ),
        around(f"{_POOL}.get_index_k_with_scale_buffer", getter, index_read, protocol.READ),
        around(f"{_POOL}.get_index_k_scale_buffer", getter, index_read),
        around(f"{_POOL}.get_index_k_fp4_payload_buffer", getter, index_read),
        around(f"{_POOL}.get_extra_key_buffer", getter, steps.leave_latent_read),
        around(
            f"{_COMPRESSOR}_v2.CompressorBackendMixin.forward_indexer_compressor",
            steps.enter_write, steps.leave_write, protocol.READ,
        ),
        around(
            f"{_COMPRESSOR}.CompressorBackendMixin.forward_indexer_compressor",
            steps.enter_write, steps.leave_write,
        ),
        around(
            f"{_HOST_POOL}.backup_from_device_all_layer",
            hicache.enter_backup, hicache.leave_backup, *_HOST_HOPS,
        ),
        around(
            f"{_HOST_POOL}.load_to_device_per_layer",
            hicache.enter_load, hicache.leave_load, *_LOAD_HOPS,
        ),
        around(
            f"{_CONTROLLER}.start_writing",
            hicache.enter_transfer, hicache.leave_writing, *_HOST_HOPS,
        ),
        around(
            f"{_CONTROLLER}.start_loading",
            hicache.enter_transfer, hicache.leave_loading, *_LOAD_HOPS,
        ),
        plain(f"{_PREFILL}.send_kv_chunk", "before", transfers.enter_send, protocol.SEND),
        plain(
            f"{_DECODE}._commit_transfer_to_req",
            "after", transfers.leave_arrive, protocol.ARRIVE,
        ),
    ]  # fmt: skip


def missing(target: str) -> str | None:
    """Why `target` is not there; None if it is."""
    owner, _, name = target.rpartition(".")
    try:
        found = pkgutil.resolve_name(owner)
    except (ImportError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    if not hasattr(found, name):
        return f"{owner.rpartition('.')[2]} has no {name}"
    return None


def install(probe: RankProbe, registry: Any, kinds: Any) -> None:
    """Register every hook whose target is there, and say what is not observable."""
    for hook in hooks_of(probe):
        why = missing(hook.target)
        if why is None:
            registry.register(hook.target, hook.call, getattr(kinds, hook.kind.upper()))
            continue
        for hop in hook.hops:
            if probe.observer.observes[hop] == protocol.YES:
                probe.observer.observes[hop] = f"{protocol.NOT_OBSERVABLE}: {why}"
        if not hook.hops:
            logger.debug("dsv4doctor: %s is not there: %s", hook.target, why)


def runs_here() -> bool:
    """Whether this process is a scheduler's: the launcher loads plugins too, before SGLang's
    modules may be imported, and so do processes that have no cache."""
    if os.environ.get(HERE_VARIABLE):
        return True
    return SCHEDULER_MODULE in sys.modules and multiprocessing.parent_process() is not None


PROBE: RankProbe | None = None


def register() -> None:
    """What SGLang calls. Raises nothing that matters: SGLang logs it and goes on."""
    global PROBE  # noqa: PLW0603 - one process, one probe
    if PROBE is not None or not runs_here():
        return
    hook_registry = import_module("sglang.srt.plugins.hook_registry")
    PROBE = RankProbe(Observer())
    install(PROBE, hook_registry.HookRegistry, hook_registry.HookType)
    logger.info("dsv4doctor's probe is in place, and off")
