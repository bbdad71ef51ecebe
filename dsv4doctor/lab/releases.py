"""What each SGLang release orders and what it leaves to luck: one table, `--as-version`.

Every entry was read off the released wheel (the names of modules are upstream's):

| knob | from | where |
|---|---|---|
| `barrier`, `barrier_position` | 0.5.13 | `_apply_war_barrier` in managers/scheduler.py |
| `load_fence` | 0.5.19 | `start_loading` of managers/cache_controller.py; pull 36738 |
| `write_fence` | 0.5.23 | `start_writing` of the same file |
| `early_send` | 0.5.15 | `maybe_send_cached_prefix_chunk` in disaggregation/prefill.py |
| `early_send_waits` | 0.5.16 | the event which that call hands to the sender |
| `early_send_blocked_by_load` | 0.5.23 | its argument `allow_send`; issue 44070 |
| `prefill_graph_waits` | 0.5.23 | `_wait_for_layer_loads` |
| `prefill_read_done` | 0.5.23 | SGLANG_ENABLE_PREFILL_WAR_READ_DONE, off by default before |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from dsv4doctor.errors import UsageError

COARSE_BARRIER_VARIABLE = "SGLANG_FORCE_COARSE_WAR_BARRIER"
EARLY_SEND_VARIABLE = "SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX"


class Barrier(Enum):
    """How far the schedule stream stays behind the forward stream (the WAR barrier).

    READ_DONE is the fast path: behind a decode that was replayed from a CUDA graph it waits only
    for an event that was recorded before the replay, so the replay's stores may still be to come.
    """

    NONE = "none"
    WHOLE = "whole forward"
    READ_DONE = "read done"


class BarrierPosition(Enum):
    """When the barrier is applied: results of the step before are processed in between."""

    TOP_OF_LOOP = "top of the loop"
    AFTER_LAUNCH = "after each launch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orderings:
    """What an engine's streams and threads wait for; the defaults leave nothing open.

    Attributes:
        overlap: the forward has a stream of its own, and step n + 1 is launched before the results
            of step n are looked at. Without it forward and scheduler share one stream.
        prefill_read_done: the fast path also behind a prefill, not only behind a graph decode.
        load_fence: loads (host to device) wait for the forward stream.
        write_fence: backups (device to host) wait for the forward stream.
        early_send: a prefill sends the device-resident prefix before its forward is launched.
        early_send_waits: the transfer worker waits for an event of the forward stream.
        early_send_blocked_by_load: nothing is sent early while the batch has loads of its own.
        prefill_graph_waits: a prefill replayed from a full graph waits for the layers' loads.
    """

    overlap: bool = True
    barrier: Barrier = Barrier.READ_DONE
    barrier_position: BarrierPosition = BarrierPosition.AFTER_LAUNCH
    prefill_read_done: bool = True
    load_fence: bool = True
    write_fence: bool = True
    early_send: bool = True
    early_send_waits: bool = True
    early_send_blocked_by_load: bool = True
    prefill_graph_waits: bool = True


ORDERED = Orderings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release: its orderings, its parser, and the variables that it reads."""

    version: str
    orderings: Orderings
    parser_group: str
    reads_coarse_barrier_variable: bool = False


def _patch(version: str) -> int:
    return int(version.rpartition(".")[2])


def _release(version: str) -> Release:
    patch = _patch(version)
    barrier = Barrier.NONE if patch < 13 else Barrier.WHOLE if patch < 14 else Barrier.READ_DONE
    after_launch = patch >= 16
    return Release(
        version=version,
        parser_group="A" if patch <= 17 else "B" if patch <= 20 else "C",
        reads_coarse_barrier_variable=patch >= 16,
        orderings=Orderings(
            barrier=barrier,
            barrier_position=(
                BarrierPosition.AFTER_LAUNCH if after_launch else BarrierPosition.TOP_OF_LOOP
            ),
            prefill_read_done=patch >= 23,
            load_fence=patch >= 19,
            write_fence=patch >= 23,
            early_send=patch >= 15,
            early_send_waits=patch >= 16,
            early_send_blocked_by_load=patch >= 23,
            prefill_graph_waits=patch >= 23,
        ),
    )


RELEASES = tuple(_release(f"0.5.{patch}") for patch in range(12, 24))
NEWEST = RELEASES[-1]


def release_named(version: str) -> Release:
    """The release of that version.

    Raises:
        UsageError: if the table does not have it.
    """
    for release in RELEASES:
        if release.version == version:
            return release
    raise UsageError(
        f"the lab does not know SGLang {version}",
        f"--as-version takes {RELEASES[0].version} to {NEWEST.version}",
    )


def with_switches(
    orderings: Orderings, *, overlap: bool, coarse_barrier: bool, early_send: bool
) -> Orderings:
    """A release's orderings as one launch has them."""
    return replace(
        orderings,
        overlap=overlap,
        barrier=Barrier.WHOLE if coarse_barrier else orderings.barrier,
        early_send=orderings.early_send and early_send,
    )
