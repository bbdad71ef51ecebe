"""Prefill and decode apart: a page as it is handed to the transfer, and as it has arrived."""

from __future__ import annotations

from typing import Any

import torch

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.probe.batches import Place, owner_of, row_of
from dsv4doctor.probe.hops import Hops, argument
from dsv4doctor.probe.launches import Wanted
from dsv4doctor.probe.observer import Observer

EARLY_SEND_EVENT = "_early_send_wait_event"


class TransferHops(Hops):
    """Hooks on the sender's and the receiver's side."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self._send_stream: Any = None

    def enter_send(self, scheduler: Any, req: Any, *arguments: Any, **keywords: Any) -> None:
        """Before `send_kv_chunk`: digest what it hands over, ordered as the transfer itself is: a
        worker reads the pages outside every stream, behind an event if the sender was given one
        and looks at it."""
        device = self.o.device
        assert device is not None
        tokens, row = self.o.pool.page_size, row_of(req)
        is_last = bool(argument(arguments, keywords, 0, "last_chunk"))
        end = argument(arguments, keywords, 1, "end_idx")
        if end is None:
            end = len(req.origin_input_ids) if is_last else _filled_to(req)
        first, last = int(req.start_send_idx) // tokens, int(end) // tokens
        if row is None or last <= first:
            return
        table = scheduler.req_to_token_pool.req_to_token
        # SGLang reads these ids on the host too, right after us.
        ids = table[row, first * tokens : last * tokens : tokens].cpu().to(torch.int64) // tokens
        sender: Any = getattr(req, "disagg_kv_sender", None)
        event = getattr(sender, EARLY_SEND_EVENT, None)
        owners = [owner_of(req, index) for index in range(first, last)]
        with device.on(self._side_stream(table.device)):
            if event is not None and heeds_event(type(sender)):  # early sends are few
                event.wait()
            for bank in self.banks():
                launch = self.o.open(
                    Wanted(hop=protocol.SEND, bank=bank, count=len(ids), owners=owners)
                )
                if launch is not None:
                    self.o.put_pages(launch, ids)
                    self.o.digest(launch, launch.layers)
                    self.o.seal(launch)

    def _side_stream(self, place: Any) -> Any:
        if place.type != "cuda":
            return None
        if self._send_stream is None:
            self._send_stream = torch.cuda.Stream(device=place)
        return self._send_stream

    def leave_arrive(self, result: Any, queue: Any, decode_req: Any, *_: Any, **__: Any) -> None:
        """After `_commit_transfer_to_req`: digest what the transfer has written. False: it has not
        ended (0.5.12 to 0.5.14 come back for it); a request that was ended here arrives nowhere."""
        req = decode_req.req
        if result is False or getattr(req, "finished_reason", None):
            return
        row, tokens = row_of(req), self.o.pool.page_size
        pool = getattr(queue, "req_to_token_pool", None) or queue.scheduler.req_to_token_pool
        first = int(getattr(decode_req, "decode_prefix_len", 0) or 0) // tokens
        last = len(req.origin_input_ids) // tokens
        if row is None or last <= first:
            return
        found = [Place(row, owner_of(req, index)) for index in range(first, last)]
        for bank in self.banks():
            self.observe(protocol.ARRIVE, bank, found, pool.req_to_token, forgets=True)


def heeds_event(sender: type) -> bool:
    """Whether a class of senders reads the event that it is given before it sends early. SGLang
    gives it to all from 0.5.16 on; MORI's looks at it, Mooncake's from 0.5.22 and NIXL's from
    0.5.23 on."""
    for owner in sender.__mro__:
        for member in vars(owner).values():
            code = getattr(member, "__code__", None)
            if code is not None and EARLY_SEND_EVENT in (*code.co_names, *code.co_consts):
                return True
    return False


def _filled_to(req: Any) -> int:
    """Tokens of the request's input that are in the cache after its present chunk."""
    whole = len(req.origin_input_ids)
    extended = getattr(req, "extend_end", None)
    if extended is None:
        extended = getattr(getattr(req, "extend_range", None), "end", None)
    if extended is None:
        extended = len(req.fill_ids)
    return min(int(extended), whole)
