"""The table of releases: what each orders, and how switches, faults and fixes change that."""

from __future__ import annotations

from typing import Any

import pytest

from dsv4doctor.errors import UsageError
from dsv4doctor.lab.assembly import orderings_of
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.releases import (
    ORDERED,
    RELEASES,
    Barrier,
    BarrierPosition,
    release_named,
)

TOP, AFTER = BarrierPosition.TOP_OF_LOOP, BarrierPosition.AFTER_LAUNCH
# version -> barrier, its position (None: there is no barrier), load fence, write fence
FENCES = {
    "0.5.12": (Barrier.NONE, None, False, False),
    "0.5.13": (Barrier.WHOLE, TOP, False, False),
    "0.5.14": (Barrier.READ_DONE, TOP, False, False),
    "0.5.15": (Barrier.READ_DONE, TOP, False, False),
    "0.5.16": (Barrier.READ_DONE, AFTER, False, False),
    "0.5.17": (Barrier.READ_DONE, AFTER, False, False),
    "0.5.18": (Barrier.READ_DONE, AFTER, False, False),
    "0.5.19": (Barrier.READ_DONE, AFTER, True, False),
    "0.5.20": (Barrier.READ_DONE, AFTER, True, False),
    "0.5.21": (Barrier.READ_DONE, AFTER, True, False),
    "0.5.22": (Barrier.READ_DONE, AFTER, True, False),
    "0.5.23": (Barrier.READ_DONE, AFTER, True, True),
}
# version -> sent early, behind an event, held back by loads of its own
EARLY_SEND = {
    "0.5.14": (False, False, False),
    "0.5.15": (True, False, False),
    "0.5.16": (True, True, False),
    "0.5.22": (True, True, False),
    "0.5.23": (True, True, True),
}


def test_every_release_is_in_the_table() -> None:
    assert [release.version for release in RELEASES] == list(FENCES)


@pytest.mark.parametrize("version", FENCES)
def test_barrier_and_fences(version: str) -> None:
    given = release_named(version).orderings
    barrier, position, load_fence, write_fence = FENCES[version]
    assert (given.barrier, given.load_fence, given.write_fence) == (
        barrier,
        load_fence,
        write_fence,
    )
    assert position in (None, given.barrier_position)


@pytest.mark.parametrize("version", EARLY_SEND)
def test_early_send(version: str) -> None:
    given = release_named(version).orderings
    assert EARLY_SEND[version] == (
        given.early_send,
        given.early_send_waits,
        given.early_send_blocked_by_load,
    )


def test_the_newest_leaves_nothing_open() -> None:
    assert RELEASES[-1].orderings == ORDERED


@pytest.mark.parametrize("version", ["0.5.11", "0.5.24", "0.6.0", "0.5", ""])
def test_other_versions_are_refused(version: str) -> None:
    with pytest.raises(UsageError) as error:
        orderings_of(EngineConfig(as_version=version or "0"))
    assert "0.5.12 to 0.5.23" in error.value.hint


def fences(**settings: Any) -> tuple[bool, bool]:
    orderings = orderings_of(EngineConfig(**{"faults": ("none",)} | settings))
    return orderings.load_fence, orderings.write_fence


def test_faults_take_fences_away_and_fixes_put_them_back() -> None:
    assert fences() == (True, True)
    assert fences(faults=("load-fence",)) == (False, True)
    assert fences(faults=("write-fence",)) == (True, False)
    assert fences(faults=("load-fence",), fixes=("load-fence",)) == (True, True)
    assert fences(as_version="0.5.18") == (False, False)
    assert fences(as_version="0.5.18", fixes=("write-fence",)) == (False, True)
    assert fences(as_version="0.5.20") == (True, False)
    assert fences(as_version="0.5.23", faults=("load-fence",)) == (False, True)


def test_the_coarse_barrier_is_read_from_0_5_16_on() -> None:
    def barrier(version: str) -> Barrier:
        return orderings_of(EngineConfig(as_version=version, coarse_barrier=True)).barrier

    assert barrier("0.5.15") is Barrier.READ_DONE
    assert barrier("0.5.16") is Barrier.WHOLE
    assert barrier("0.5.23") is Barrier.WHOLE


def test_the_early_send_fault_and_its_fix_act_on_every_release() -> None:
    def is_blocked(**settings: Any) -> bool:
        return orderings_of(EngineConfig(**settings)).early_send_blocked_by_load

    assert not is_blocked(faults=("early-send",))
    assert is_blocked(faults=("early-send",), fixes=("early-send-block",))
    assert not is_blocked(faults=("none",), as_version="0.5.17")
    assert is_blocked(faults=("none",), as_version="0.5.17", fixes=("early-send-block",))


def test_early_send_can_be_switched_off() -> None:
    config = EngineConfig(as_version="0.5.17", early_send=False)
    assert not orderings_of(config).early_send
