"""A ring of 64-bit words on the device and its twin on the host, reserved and released in order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from dsv4doctor.probe.devices import Device

DEFAULT_WORDS = 1 << 18  # 2 MiB on the device: a layer of a page is one word


@dataclass(frozen=True, slots=True)
class Slot:
    """Words `start` to `start + count` of the ring."""

    start: int
    count: int


class Ring:
    """Memory that exists before it is needed: nothing is allocated while serving."""

    def __init__(self, device: Device, words: int = DEFAULT_WORDS) -> None:
        self.capacity = words
        self.words, self.fetched = device.new_words(words)
        self._held: deque[Slot] = deque()
        self._next = 0

    def reserve(self, count: int) -> Slot | None:
        """`count` words in one piece; None where the oldest ones are still in use."""
        if count > self.capacity:
            return None
        oldest = self._held[0].start if self._held else None
        start = self._next
        if oldest is None:
            start = 0 if start + count > self.capacity else start
        elif start > oldest or (start == oldest and not self._held):
            if start + count > self.capacity:
                start = 0
                if count >= oldest:
                    return None
        elif start + count >= oldest:
            return None
        slot = Slot(start, count)
        self._held.append(slot)
        self._next = start + count
        return slot

    def release(self) -> None:
        """Give back the oldest reservation."""
        self._held.popleft()

    @property
    def used(self) -> int:
        return sum(slot.count for slot in self._held)

    def device_words(self, slot: Slot, first: int, count: int) -> Any:
        return self.words[slot.start + first : slot.start + first + count]

    def whole(self, slot: Slot) -> tuple[Any, Any]:
        """(on the device, on the host) of the whole slot."""
        part = slice(slot.start, slot.start + slot.count)
        return self.words[part], self.fetched[part]
