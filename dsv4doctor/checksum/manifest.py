"""Digests of dumped pages as a small file: made on one host, compared on another."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dsv4doctor.checksum.dumps import PagedTensor, parse_layout, read_dump
from dsv4doctor.checksum.worker.engine import NumpyEngine, Pool
from dsv4doctor.errors import UsageError
from dsv4doctor.kernels import reference
from dsv4doctor.kernels.layouts import PageLayout
from dsv4doctor.kernels.reference import Digests

KIND = "dsv4doctor checksum manifest"
VERSION = 1
# Plain numpy reads this in the seconds that numba takes to compile.
COMPILING_PAYS_BYTES = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorDigests:
    """One tensor's digests; `sums` are page accumulators, equal wherever equal bytes lie.

    `pages` holds the bytes where they are at hand, None when a manifest was read.
    """

    name: str
    layout: PageLayout
    sums: Digests
    rows: Digests
    pages: PagedTensor | None = None


def digest_tensor(tensor: PagedTensor) -> TensorDigests:
    """The digests of one dumped tensor, by the CPU path."""
    if tensor.values.nbytes < COMPILING_PAYS_BYTES:
        rows = reference.digest_rows(tensor.layout, tensor.values, tensor.scales)
    else:
        pool = Pool(layout=tensor.layout, values=tensor.values, scales=tensor.scales)
        _, rows = NumpyEngine("").digest(pool)
    return TensorDigests(
        name=tensor.name,
        layout=tensor.layout,
        sums=reference.accumulate(rows),
        rows=rows,
        pages=tensor,
    )


def read_side(path: Path, layout: PageLayout | None) -> tuple[TensorDigests, ...]:
    """One side of a comparison: a manifest (`.json`) or a dump.

    Raises:
        UsageError: if the file is neither, or damaged.
    """
    if path.suffix == ".json":
        return read_manifest(path)
    return tuple(digest_tensor(tensor) for tensor in read_dump(path, layout))


def manifest_text(tensors: tuple[TensorDigests, ...]) -> str:
    """The manifest as JSON text."""
    entries = [
        {
            "name": tensor.name,
            "layout": f"{tensor.layout.name}/{tensor.layout.rows}",
            "pages": len(tensor.sums),
            "accumulators": _encode(tensor.sums),
            "rows": _encode(tensor.rows),
        }
        for tensor in tensors
    ]
    return json.dumps({"kind": KIND, "schema_version": VERSION, "tensors": entries}) + "\n"


def read_manifest(path: Path) -> tuple[TensorDigests, ...]:
    """The digests in a manifest.

    Raises:
        UsageError: if `path` is no manifest, or a damaged one.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", "give a manifest or a dump") from error
    except ValueError as error:
        raise UsageError(f"{path}: no JSON: {error}", "make it with --write-manifest") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise UsageError(f"{path}: no checksum manifest", "make it with --write-manifest")
    try:
        return tuple(_entry(entry) for entry in document["tensors"])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: a damaged manifest: {error!r}", "make it again") from error


def _entry(entry: Any) -> TensorDigests:
    layout = parse_layout(str(entry["layout"]))
    count = int(entry["pages"])
    return TensorDigests(
        name=str(entry["name"]),
        layout=layout,
        sums=_decode(entry["accumulators"]).reshape(count),
        rows=_decode(entry["rows"]).reshape(count, layout.rows),
    )


def _encode(digests: Digests) -> str:
    return base64.b64encode(digests.astype("<u8").tobytes()).decode("ascii")


def _decode(text: str) -> Digests:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<u8").astype(np.uint64)
