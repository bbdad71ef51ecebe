"""The ground-truth log: what the engine really read and served, for tests alone.

One JSON object a line. `stale_read`: a request's prefill read a page that held other bytes than
its own (`pool` index_k or main; `owner` says whose, null for never written). `misread`: its index
pages were read in another layout than written. `served`: the reply as generated. The bytes of every
stale page lie beside the file, in `<file>.blobs/<digest>.bin`, so that a reply can be generated
again from exactly what was read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any

import numpy as np

from dsv4doctor.lab.layouts import Bytes
from dsv4doctor.lab.pools import PageOwner
from dsv4doctor.lab.requests import EngineRequest, Generation

INDEX_POOL = "index_k"
MAIN_POOL = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleRead:
    """One page read with bytes that are not the request's own."""

    rid: str
    pool: str
    layer: int
    logical_page: int
    physical_page: int
    expected: bytes
    owner: PageOwner | None
    data: Bytes

    @property
    def digest(self) -> str:
        """Content address of the bytes that were read."""
        return blake2b(self.data.tobytes(), digest_size=16).hexdigest()


def _blob_folder(path: Path) -> Path:
    return path.with_name(path.name + ".blobs")


def _request_fields(request: EngineRequest) -> dict[str, Any]:
    session, turn = request.session_and_turn
    return {"rid": request.rid, "session": session, "turn": turn}


class GroundTruth:
    """Appends to the log; with no path it only counts."""

    def __init__(self, path: Path | None) -> None:
        self.stale_reads = 0
        self._path = path
        self._file: IO[str] | None = None
        self._blobs: set[str] = set()
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            _blob_folder(path).mkdir(exist_ok=True)
            self._file = path.open("a", encoding="utf-8")

    def _write(self, record: dict[str, Any]) -> None:
        if self._file is not None:
            # ASCII only: a reply may hold lone surrogates, which UTF-8 cannot.
            self._file.write(json.dumps(record) + "\n")

    def stale_read(self, read: StaleRead, request: EngineRequest) -> None:
        self.stale_reads += 1
        if self._path is None:
            return
        digest = read.digest
        if digest not in self._blobs:
            self._blobs.add(digest)
            (_blob_folder(self._path) / f"{digest}.bin").write_bytes(read.data.tobytes())
        owner = read.owner and {
            "rid": read.owner.rid,
            "logical_page": read.owner.logical_page,
            "digest": read.owner.digest.hex(),
        }
        self._write(
            {
                "kind": "stale_read",
                **_request_fields(request),
                "pool": read.pool,
                "layer": read.layer,
                "logical_page": read.logical_page,
                "physical_page": read.physical_page,
                "expected": read.expected.hex(),
                "owner": owner,
                "digest": digest,
            }
        )

    def misread(self, request: EngineRequest, written: str, read: str) -> None:
        """The request's index pages were right, and were read in another format than written."""
        record = {"kind": "misread", **_request_fields(request), "written": written, "read": read}
        self._write(record)

    def served(self, request: EngineRequest, generation: Generation) -> None:
        self._write(
            {
                "kind": "served",
                **_request_fields(request),
                "text": generation.text,
                "tokens": len(generation.pieces),
                "finish_reason": generation.finish_reason,
                "prompt_tokens": generation.prompt_tokens,
                "cached_device_tokens": generation.cached_device_tokens,
                "cached_host_tokens": generation.cached_host_tokens,
                "hung": generation.hung,
            }
        )

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a log, in order."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def read_blob(path: Path, digest: str) -> Bytes:
    """The bytes of one stale page of the log at `path`."""
    data = (_blob_folder(path) / f"{digest}.bin").read_bytes()
    return np.frombuffer(data, dtype=np.uint8)
