"""What is sent is digested as the transfer reads it, and what arrives when it has arrived."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from builders_probe import armed, make_batch, make_probe, records, step

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.disaggregation import EARLY_SEND_EVENT, TransferHops, heeds_event
from dsv4doctor.probe_protocol import Observation


class Heedless:
    """As Mooncake's sender up to 0.5.21: the event lies there, and nobody looks."""

    def send(self) -> None: ...


class ByName:
    """As MORI's."""

    def send(self) -> Any:
        return getattr(self, "_early_send_wait_event", None)


class Base:
    """As 0.5.23's, of which all others are made."""

    def __init__(self) -> None:
        self._early_send_wait_event: Any = None


class Derived(Base): ...


@pytest.mark.parametrize(
    ("kind", "heeds"), [(Heedless, False), (ByName, True), (Base, True), (Derived, True)]
)
def test_an_event_orders_only_those_that_look_at_it(kind: type, heeds: bool) -> None:
    assert heeds_event(kind) is heeds
    waits: list[str] = []
    sender = kind()
    setattr(sender, EARLY_SEND_EVENT, SimpleNamespace(wait=lambda: waits.append("waited")))
    probe, _ = make_probe()
    step(armed(probe), make_batch(512))
    batch = make_batch(512)
    (request,) = batch.reqs
    request.disagg_kv_sender, request.start_send_idx = sender, 0
    scheduler = SimpleNamespace(req_to_token_pool=batch.req_to_token_pool)
    TransferHops(probe.observer).enter_send(scheduler, request, end_idx=512)
    found = [one for one in records(probe) if isinstance(one, Observation)]
    assert {one.page for one in found if one.hop == protocol.SEND} == {1, 2}
    assert waits == (["waited"] if heeds else [])


@pytest.mark.parametrize(
    ("result", "reason", "arrives"),
    [(None, None, True), (True, None, True), (False, None, False), (None, "aborted", False)],
)
def test_only_what_has_arrived_is_told_as_arrived(
    result: Any, reason: str | None, arrives: bool
) -> None:
    probe, _ = make_probe()
    armed(probe)
    batch = make_batch(512)
    (request,) = batch.reqs
    request.finished_reason = reason
    queue = SimpleNamespace(req_to_token_pool=batch.req_to_token_pool)
    TransferHops(probe.observer).leave_arrive(result, queue, SimpleNamespace(req=request))
    found = [one for one in records(probe) if isinstance(one, Observation)]
    assert {one.page for one in found} == ({1, 2} if arrives else set())
