"""Tensors of a `.pt` file as bytes, read without torch and without running anything in it.

A `.pt` file is a zip archive of one pickle and raw storages. The pickle may name only what a plain
tensor needs; anything else it names is refused before it could be called.
"""

from __future__ import annotations

import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dsv4doctor.errors import UsageError

ITEM_BYTES = {
    "UntypedStorage": 1, "ByteStorage": 1, "CharStorage": 1, "BoolStorage": 1, "HalfStorage": 2,
    "BFloat16Storage": 2, "ShortStorage": 2, "FloatStorage": 4, "IntStorage": 4,
    "DoubleStorage": 8, "LongStorage": 8,
}  # fmt: skip
DTYPE_BYTES = {
    "uint8": 1, "int8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1,
    "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1, "float16": 2, "bfloat16": 2, "int16": 2,
    "uint16": 2, "float32": 4, "int32": 4, "uint32": 4, "float64": 8, "int64": 8, "uint64": 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Storage:
    key: str
    item_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    item_bytes: int


class _Refused(Exception):
    """The pickle names something that a tensor does not need."""


def _rebuild(*given: Any) -> _Tensor:
    """torch's `_rebuild_tensor_v2` and `_v3`: storage, offset, size, stride, …, and v3's dtype."""
    storage, offset, size, stride = given[:4]
    dtype = given[6] if len(given) > 6 and isinstance(given[6], int) else None
    item_bytes = dtype or storage.item_bytes
    return _Tensor(storage, offset, tuple(size), tuple(stride), item_bytes)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "torch._utils" and name in ("_rebuild_tensor_v2", "_rebuild_tensor_v3"):
            return _rebuild
        if module == "torch._utils" and name == "_rebuild_parameter":
            return lambda tensor, *_rest: tensor
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch", "Size"):
            return tuple
        if module in ("torch", "torch.storage") and name in ITEM_BYTES:
            return ITEM_BYTES[name]
        if module == "torch" and name in DTYPE_BYTES:
            return DTYPE_BYTES[name]
        raise _Refused(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        kind, item_bytes, key, _location, count = pid
        if kind != "storage" or not isinstance(item_bytes, int):
            raise _Refused(f"a persistent {kind!r}")
        return _Storage(str(key), item_bytes, int(count))


def read_torch_file(path: Path) -> Mapping[str, tuple[tuple[int, ...], NDArray[np.uint8]]]:
    """Name → (shape in bytes along the last axis, flat bytes) of each tensor in `path`.

    Raises:
        UsageError: if the file is cut short, of the old format, holds tensors that are not
            contiguous, or would run code.
    """
    hint = "save it again with torch.save(tensor.contiguous().cpu(), path)"
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            (index,) = [name for name in names if name.endswith("/data.pkl")]
            with archive.open(index) as file:
                tree = _Reader(file).load()
            root = index.removesuffix("data.pkl")
            load = _storage_loader(path, archive, root)
            return {name: _tensor_bytes(path, name, t, load) for name, t in _leaves("", tree)}
    except _Refused as refused:
        raise UsageError(
            f"{path}: its pickle asks for {refused}, which no tensor needs: not loaded",
            "do not open this file with torch.load either; save plain tensors",
        ) from refused
    except (zipfile.BadZipFile, ValueError) as error:
        raise UsageError(f"{path}: no .pt file, or cut short: {error}", hint) from error
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, IndexError) as error:
        raise UsageError(f"{path}: its pickle is damaged: {error}", hint) from error


def _storage_loader(
    path: Path, archive: zipfile.ZipFile, root: str
) -> Callable[[_Storage], NDArray[np.uint8]]:
    cache: dict[str, NDArray[np.uint8]] = {}

    def load(storage: _Storage) -> NDArray[np.uint8]:
        if storage.key not in cache:
            data = archive.read(f"{root}data/{storage.key}")
            wanted = storage.count * storage.item_bytes
            if len(data) < wanted:
                raise UsageError(
                    f"{path}: storage {storage.key} has {len(data)} of {wanted} bytes",
                    "the file was cut short: copy it again",
                )
            cache[storage.key] = np.frombuffer(data, dtype=np.uint8)
        return cache[storage.key]

    return load


def _tensor_bytes(
    path: Path, name: str, tensor: _Tensor, load: Callable[[_Storage], NDArray[np.uint8]]
) -> tuple[tuple[int, ...], NDArray[np.uint8]]:
    expected, step = [], 1
    for size in reversed(tensor.shape):
        expected.append(step)
        step *= size
    is_contiguous = all(
        size == 1 or have == want
        for size, have, want in zip(tensor.shape, tensor.stride, reversed(expected), strict=True)
    )
    if not is_contiguous:
        raise UsageError(f"{path}: {name} is not contiguous", "save tensor.contiguous()")
    size = tensor.item_bytes
    count = prod(tensor.shape)
    data = load(tensor.storage)[tensor.offset * size : (tensor.offset + count) * size]
    if len(data) < count * size:
        raise UsageError(f"{path}: {name} reaches beyond its storage", "the file is damaged")
    shape = (*tensor.shape[:-1], tensor.shape[-1] * size) if tensor.shape else (size,)
    return shape, data


def _leaves(name: str, tree: Any) -> Iterator[tuple[str, _Tensor]]:
    if isinstance(tree, _Tensor):
        yield name or "tensor", tree
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), value)
    elif isinstance(tree, list | tuple):
        for index, value in enumerate(tree):
            yield from _leaves(f"{name}.{index}" if name else str(index), value)
