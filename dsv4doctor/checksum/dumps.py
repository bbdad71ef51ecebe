"""Dumped tensors as cache pages: `.pt`, `.safetensors`, raw bytes; layout given or recognised."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsv4doctor.checksum.torch_file import read_torch_file
from dsv4doctor.errors import UsageError
from dsv4doctor.kernels.layouts import EVERY_LAYOUT, PageLayout, layout_named

Bytes = NDArray[np.uint8]
Tensors = Mapping[str, tuple[tuple[int, ...], Bytes]]

HEADER_LIMIT = 100 << 20  # safetensors' own limit of its header
SAFETENSORS_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I16": 2, "U16": 2,
    "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "F64": 8, "I64": 8, "U64": 8,
}  # fmt: skip

SAVE_AGAIN = "save it again with safetensors.torch.save_file, and copy the whole file"


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedTensor:
    """One tensor seen as pages [n, page_bytes]; `scales` for two-tensor layouts."""

    name: str
    layout: PageLayout
    values: Bytes
    scales: Bytes | None = None


def parse_layout(text: str) -> PageLayout:
    """The layout of `--layout`: fp8, bf16, fp4, fp4-rocm (with `/32` and such), swa, c4 or c128.

    Raises:
        UsageError: if there is none of that name.
    """
    try:
        return layout_named(text)
    except ValueError as error:
        raise UsageError(f"--layout {text!r}: {error}", "for example fp8, bf16/32, c4") from error


def read_dump(path: Path, layout: PageLayout | None) -> tuple[PagedTensor, ...]:
    """The pages in `path`; leading axes of a tensor are flattened, so pages count through layers.

    Raises:
        UsageError: if the file cannot be read, is cut short, or its pages have no such layout.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file", "give a .pt, a .safetensors or raw bytes")
    if path.suffix in (".pt", ".pth"):
        tensors: Tensors = read_torch_file(path)
    elif path.suffix == ".safetensors":
        tensors = read_safetensors(path)
    else:
        tensors = _read_raw(path, layout)
    found = tuple(_paged(path, name, tensors, layout) for name in tensors if not _is_scale(name))
    if not found:
        raise UsageError(f"{path}: holds no tensor", "dump the pool's buffer")
    return found


def _is_scale(name: str) -> bool:
    """A scale tensor belongs to its payload; NVIDIA's `…_with_scale_…` holds both."""
    return "scale" in name and "with_scale" not in name


def _paged(path: Path, name: str, tensors: Tensors, layout: PageLayout | None) -> PagedTensor:
    shape, data = tensors[name]
    found = layout or _recognised(path, name, shape)
    widths = {shape[-1], prod(shape[1:])} if len(shape) > 1 else {found.page_bytes}
    if found.page_bytes not in widths:
        raise UsageError(
            f"{path}: {name} has rows of {shape[-1]} bytes; {found.name}/{found.rows} pages have "
            f"{found.page_bytes}",
            "give the right --layout, or none where the file has shapes",
        )
    if found.two_tensors:
        partner = name.replace("payload", "scale")
        if partner == name or partner not in tensors:
            raise UsageError(
                f"{path}: {name} has no scales beside it",
                "fp4-rocm needs two tensors, named …payload… and …scale…",
            )
        scales = _pages(path, partner, tensors[partner][1], found.scale_page_bytes, found)
        values = _pages(path, name, data, found.page_bytes, found)
        if len(scales) != len(values):
            raise UsageError(
                f"{path}: {len(values)} pages but {len(scales)} pages of scales",
                "dump both tensors of the same pages",
            )
        return PagedTensor(name=name, layout=found, values=values, scales=scales)
    values = _pages(path, name, data, found.page_bytes, found)
    return PagedTensor(name=name, layout=found, values=values)


def _pages(path: Path, name: str, data: Bytes, width: int, layout: PageLayout) -> Bytes:
    if len(data) % width:
        raise UsageError(
            f"{path}: {name} has {len(data)} bytes, no whole number of {layout.name} pages "
            f"of {width}",
            "give the right --layout, or dump whole pages",
        )
    return data.reshape(-1, width)


def _recognised(path: Path, name: str, shape: tuple[int, ...]) -> PageLayout:
    width = shape[-1] if shape else 0
    matches = [each for each in EVERY_LAYOUT if each.page_bytes == width and not each.two_tensors]
    if not matches and "payload" in name:
        width = prod(shape[1:])
        matches = [each for each in EVERY_LAYOUT if each.page_bytes == width and each.two_tensors]
    if len(matches) != 1:
        names = ", ".join(f"{each.name}/{each.rows}" for each in matches) or "no known page"
        raise UsageError(
            f"{path}: {name} has rows of {width} bytes: {names}", "say which with --layout"
        )
    return matches[0]


def _read_raw(path: Path, layout: PageLayout | None) -> Tensors:
    if layout is None:
        raise UsageError(f"{path}: raw bytes have no layout of their own", "give --layout")
    if path.stat().st_size == 0:
        raise UsageError(f"{path}: is empty", "dump whole pages")
    data = np.memmap(path, dtype=np.uint8, mode="r")
    return {path.name: ((len(data),), data)}


def read_safetensors(path: Path) -> Tensors:
    """Name → (shape in bytes along the last axis, flat bytes) of each tensor in `path`.

    Raises:
        UsageError: if the file is cut short or its header is not what the format demands.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(HEADER_LIMIT, size - 8):
            raise UsageError(f"{path}: no safetensors file, or cut short in its header", SAVE_AGAIN)
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise UsageError(f"{path}: its header is no JSON: {error}", SAVE_AGAIN) from error
    if not isinstance(header, dict):
        raise UsageError(f"{path}: its header is no JSON object", SAVE_AGAIN)
    data: Bytes = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + length) if (
        size > 8 + length
    ) else np.zeros(0, dtype=np.uint8)  # fmt: skip
    header.pop("__metadata__", None)
    return {name: _entry(path, name, entry, data) for name, entry in header.items()}


def _entry(path: Path, name: str, entry: Any, data: Bytes) -> tuple[tuple[int, ...], Bytes]:
    try:
        item = SAFETENSORS_BYTES[entry["dtype"]]
        shape = tuple(int(n) for n in entry["shape"])
        begin, end = (int(n) for n in entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: {name} is described wrongly: {error!r}", SAVE_AGAIN) from error
    if not 0 <= begin <= end or end - begin != prod(shape) * item:
        raise UsageError(f"{path}: {name} has a size that is not its shape's", SAVE_AGAIN)
    if end > len(data):
        raise UsageError(
            f"{path}: {name} ends at byte {end} of {len(data)}: it was cut short", SAVE_AGAIN
        )
    width = (*shape[:-1], shape[-1] * item) if shape else (item,)
    return width, data[begin:end]
