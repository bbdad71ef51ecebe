"""What every kind of hook does with pages of requests: place them in a launch and digest them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dsv4doctor.probe.banks import Bank
from dsv4doctor.probe.batches import Place
from dsv4doctor.probe.launches import Launch, Wanted
from dsv4doctor.probe.observer import Observer


def argument(arguments: Sequence[Any], keywords: dict[str, Any], place: int, name: str) -> Any:
    """The argument of that name, however it was passed."""
    if name in keywords:
        return keywords[name]
    return arguments[place] if place < len(arguments) else None


class Hops:
    """One kind of hook of a rank.

    `enter_…` runs before SGLang's function and may return a token, `leave_…` after it with that
    token and the result. They may raise: `guard.py` catches it and switches the hook off.
    """

    def __init__(self, observer: Observer) -> None:
        self.o = observer

    def place_pages(self, launch: Launch, found: list[Place], req_to_token: Any) -> None:
        """Page ids of `found` into the launch's table, gathered on the device."""
        bank = launch.bank
        rows = [place.row for place in found]
        columns = [(place.owner.index or 0) * bank.page_tokens for place in found]
        self._put_ids(launch, req_to_token, rows, columns)

    def _put_ids(
        self, launch: Launch, req_to_token: Any, rows: list[int], columns: list[int]
    ) -> None:
        device = req_to_token.device
        index = torch.tensor([rows, columns], dtype=torch.int64)
        if device.type == "cuda":
            index = index.pin_memory().to(device, non_blocking=True)
        tokens = req_to_token[index[0], index[1]].to(torch.int64)
        self.o.put_pages(launch, tokens // launch.bank.page_tokens)

    def observe(
        self, hop: str, bank: Bank, found: list[Place], req_to_token: Any, *, forgets: bool = False
    ) -> None:
        """One launch over all layers of `found`, on the current stream."""
        owners = [place.owner for place in found]
        launch = self.o.open(
            Wanted(hop=hop, bank=bank, count=len(found), owners=owners, forgets=forgets)
        )
        if launch is None:
            return
        self.place_pages(launch, found, req_to_token)
        self.o.digest(launch, launch.layers)
        self.o.seal(launch)

    def banks(self) -> list[Bank]:
        return [self.o.banks[name] for name in self.o.watched]
