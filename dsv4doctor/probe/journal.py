"""Records until somebody fetches them: the newest ones, and how many had to go."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from pathlib import Path
from typing import Any

MOST_KEPT = 50_000  # records; some 150 MB of Python objects at 21 layers
MOST_FILE_BYTES = 256 << 20


class Journal:
    """Written by the drainer's thread, read by the socket's."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._records: deque[dict[str, Any]] = deque()
        self._most = most
        self._lock = threading.Lock()
        self._path: Path | None = None
        self._file_bytes = 0
        self.lost = 0

    def begin(self, path: Path | None) -> None:
        """Forget everything; from now on also append to `path`."""
        with self._lock:
            self._records.clear()
            self.lost, self._file_bytes, self._path = 0, 0, path
            if path is not None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
                os.close(os.open(path, flags, 0o600))

    @property
    def path(self) -> Path | None:
        return self._path

    def __len__(self) -> int:
        return len(self._records)

    def add(self, records: list[dict[str, Any]]) -> None:
        with self._lock:
            self._records.extend(records)
            while len(self._records) > self._most:
                self._records.popleft()
                self.lost += 1
            self._append(records)

    def _append(self, records: list[dict[str, Any]]) -> None:
        if self._path is None or self._file_bytes > MOST_FILE_BYTES:
            return
        text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
        try:
            with self._path.open("a", encoding="ascii") as file:
                self._file_bytes += file.write(text)
        except OSError:  # a full disk: the records in memory stand
            self._path = None

    def take(self, after: int, limit: int) -> dict[str, Any]:
        """The answer to `drain`."""
        with self._lock:
            while self._records and self._records[0]["n"] <= after:
                self._records.popleft()
            count = min(max(0, limit), len(self._records))
            records = [self._records[place] for place in range(count)]
            return {
                "records": records,
                "next": records[-1]["n"] if records else after,
                "left": len(self._records) - count,
                "lost": self.lost,
            }
