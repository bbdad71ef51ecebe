"""The probe's records on their way out: numbered when launched, handed over with their digests.

A record waits for those before it, so that a reader gets them in the order of their numbers. Only
so many are kept: the oldest are overwritten, counted, and missed by whoever had not drained them.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

from dsv4doctor.probe_protocol import MOST_RECORDS_A_DRAIN

# A run of sixty sessions leaves some thirty thousand.
KEPT_RECORDS = 200_000
_FILE_BYTES = 256 << 20


@dataclass(slots=True, eq=False)
class Entry:
    """One record; `waits` digests are still to come."""

    fields: dict[str, Any]
    waits: int

    @property
    def number(self) -> int:
        return int(self.fields["n"])


class Ring:
    """Records of one rank; every method may be called from any thread."""

    def __init__(self, capacity: int = KEPT_RECORDS) -> None:
        self._capacity = capacity
        self._entries: deque[Entry] = deque()
        self._number = 0
        self._lost = 0
        self._written = 0  # number of the last record in the file
        self._file: IO[str] | None = None
        self._lock = threading.RLock()

    def begin(self, path: Path | None) -> None:
        """Drop what is kept and count anew; numbers go on. `path` is written too, if given."""
        with self._lock:
            self.close()
            self._entries.clear()
            self._lost = 0
            self._written = self._number
            self._file = path.open("a", encoding="utf-8") if path is not None else None

    def add(self, fields: dict[str, Any], waits: int) -> Entry:
        """Number a record whose digests are still to come (`waits` of them)."""
        with self._lock:
            self._number += 1
            entry = Entry({"n": self._number, **fields}, waits)
            self._entries.append(entry)
            if len(self._entries) > self._capacity:
                self._entries.popleft()
                self._lost += 1
            return entry

    def came(self, entry: Entry) -> None:
        """One digest of the record has come."""
        with self._lock:
            entry.waits -= 1
            if self._file is not None and not entry.waits:
                self._write()

    def drain(self, after: int, limit: int) -> dict[str, Any]:
        """The answer to `drain`; what it asks to go on after is released."""
        with self._lock:
            while self._entries and self._entries[0].number <= after:
                self._entries.popleft()
            ready = []
            for entry in islice(self._entries, min(limit, MOST_RECORDS_A_DRAIN)):
                if entry.waits:
                    break
                ready.append(entry)
            return {
                "records": [entry.fields for entry in ready],
                "next": ready[-1].number if ready else after,
                "left": len(self._entries) - len(ready),
                "lost": self._lost,
            }

    @property
    def kept(self) -> int:
        with self._lock:
            return len(self._entries)

    @property
    def lost(self) -> int:
        with self._lock:
            return self._lost

    def _write(self) -> None:
        """Append to the file what has become ready, in order."""
        assert self._file is not None
        for entry in self._entries:
            if entry.waits:
                return
            if entry.number > self._written and self._file.tell() < _FILE_BYTES:
                self._file.write(json.dumps(entry.fields) + "\n")
                self._written = entry.number

    def close(self) -> None:
        """Close the file, if there is one."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
