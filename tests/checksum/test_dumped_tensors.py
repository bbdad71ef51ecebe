"""Dump files: what they hold is found, and hostile ones are refused in one line."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dsv4doctor.checksum.dumps import parse_layout, read_dump
from dsv4doctor.checksum.manifest import digest_tensor, manifest_text, read_side
from dsv4doctor.errors import UsageError
from dsv4doctor.kernels.layouts import EVERY_LAYOUT, index_layout

PAGES = np.arange(3 * 8448, dtype=np.uint32).astype(np.uint8).reshape(3, 8448)


def safetensors(tensors: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    header, body = {}, b""
    for name, (dtype, shape, data) in tensors.items():
        offsets = [len(body), len(body) + len(data)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        body += data
    text = json.dumps(header | {"__metadata__": {"format": "pt"}}).encode()
    return struct.pack("<Q", len(text)) + text + body


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def text(value: str) -> bytes:
    return b"X" + struct.pack("<i", len(value)) + value.encode()


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def torch_file(pages: np.ndarray) -> bytes:
    """A `.pt` as torch 2 writes it, its pickle spelt out, so that no torch is needed here."""
    count, width = pages.shape
    storage = b"(" + text("storage") + b"ctorch\nByteStorage\n" + text("0") + text("cpu")
    size, stride = number(count) + number(width), number(width) + number(1)
    code = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(pages.size) + b"tQ"
    code += number(0) + b"(" + size + b"t(" + stride + b"t\x89ccollections\nOrderedDict\n)RtR."
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", code)
        archive.writestr("archive/data/0", pages.tobytes())
    return out.getvalue()


def test_a_torch_file_is_read_without_torch(tmp_path: Path):
    (tensor,) = read_dump(write(tmp_path / "a.pt", torch_file(PAGES)), None)
    assert tensor.layout == index_layout("fp8")
    assert (tensor.values == PAGES).all()


def test_torchs_own_files_are_read(tmp_path: Path):
    torch = pytest.importorskip("torch")
    pages = torch.from_numpy(PAGES.copy())
    saved = {
        "layers": [pages, pages[1:] + 1],
        "fp8": pages.clone().view(torch.float8_e4m3fn),
        "words": pages.clone().view(torch.int32),
        "bf16": torch.zeros(2, 64, 128, dtype=torch.bfloat16).reshape(2, -1),
    }
    torch.save(saved, tmp_path / "a.pt")
    found = {tensor.name: tensor for tensor in read_dump(tmp_path / "a.pt", None)}
    assert set(found) == {"layers.0", "layers.1", "fp8", "words", "bf16"}
    assert (found["layers.1"].values == PAGES[1:] + 1).all()
    for name in ("fp8", "words"):
        assert (found[name].values == PAGES).all()
    assert found["bf16"].layout == index_layout("bf16")


def test_tensors_that_are_not_contiguous_are_named(tmp_path: Path):
    torch = pytest.importorskip("torch")
    torch.save({"pool": torch.zeros(8448, 3, dtype=torch.uint8).T}, tmp_path / "a.pt")
    with pytest.raises(UsageError, match="pool is not contiguous"):
        read_dump(tmp_path / "a.pt", None)


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def test_a_pickle_that_would_run_code_is_refused_and_does_not_run(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb(tmp_path / "ran")))
    with pytest.raises(UsageError, match=r"asks for (posix|nt)\.system"):
        read_dump(tmp_path / "bomb.pt", None)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["builtins.eval", "torch.load", "numpy.core.multiarray.scalar"])
def test_names_that_no_tensor_needs_are_refused(tmp_path: Path, name: str):
    module, _, attribute = name.rpartition(".")
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as archive:
        archive.writestr("archive/data.pkl", f"c{module}\n{attribute}\n.".encode())
    with pytest.raises(UsageError, match=name):
        read_dump(tmp_path / "a.pt", None)


def cut(data: bytes, keep: float) -> bytes:
    return data[: int(len(data) * keep)]


HOSTILE = [
    pytest.param("a.pt", cut(torch_file(PAGES), 0.5), "cut short", id="pt-cut"),
    pytest.param("a.pt", b"", "no .pt file", id="pt-empty"),
    pytest.param("a.pt", b"\x80\x02}q\x00.", "no .pt file", id="pt-of-the-old-format"),
    pytest.param("a.safetensors", b"", "cut short in its header", id="st-empty"),
    pytest.param("a.safetensors", b"\xff" * 64, "cut short in its header", id="st-noise"),
    pytest.param(
        "a.safetensors",
        cut(safetensors({"k": ("U8", [3, 8448], PAGES.tobytes())}), 0.6),
        "k ends at byte 25344",
        id="st-cut",
    ),
    pytest.param("a.safetensors", struct.pack("<Q", 4) + b"[1] ", "no JSON object", id="st-list"),
    pytest.param("a.safetensors", struct.pack("<Q", 4) + b"{,}}", "no JSON", id="st-no-json"),
    pytest.param(
        "a.safetensors",
        safetensors({"k": ("U8", [3, 8447], PAGES.tobytes())}),
        "size",
        id="st-size",
    ),
    pytest.param(
        "a.safetensors", safetensors({"k": ("Q9", [1], b"x")}), "described wrongly", id="st-dtype"
    ),
    pytest.param(
        "a.safetensors",
        safetensors({"k": ("U8", [2, 100], b"x" * 200)}),
        "no known page",
        id="width",
    ),
    pytest.param("a.bin", b"x" * 8448, "raw bytes have no layout", id="raw-without-layout"),
    pytest.param("a.safetensors", safetensors({}), "holds no tensor", id="st-nothing"),
]


@pytest.mark.parametrize(("name", "data", "words"), HOSTILE)
def test_hostile_files_are_one_clear_line(tmp_path: Path, name: str, data: bytes, words: str):
    with pytest.raises(UsageError, match=words) as caught:
        read_dump(write(tmp_path / name, data), None)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"x" * 8447])
def test_raw_bytes_that_are_no_whole_pages_are_named(tmp_path: Path, data: bytes):
    with pytest.raises(UsageError, match=r"is empty|no whole number"):
        read_dump(write(tmp_path / "a.bin", data), index_layout("fp8"))


def test_a_layout_that_is_not_the_files_is_named(tmp_path: Path):
    """64 fp8 pages are as many bytes as 33 bf16 pages: the shape tells them apart."""
    path = write(tmp_path / "a.pt", torch_file(np.zeros((64, 8448), dtype=np.uint8)))
    with pytest.raises(UsageError, match="rows of 8448 bytes; bf16/64 pages have 16384"):
        read_dump(path, parse_layout("bf16"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(UsageError, match="no such file"):
        read_dump(tmp_path / "nothing.pt", None)


def test_raw_bytes_are_pages_of_the_given_layout(tmp_path: Path):
    path = write(tmp_path / "a.bin", PAGES.tobytes())
    (tensor,) = read_dump(path, parse_layout("fp8"))
    assert (tensor.values == PAGES).all()


def test_leading_axes_count_through(tmp_path: Path):
    data = safetensors({"k_with_scale_buffer": ("U8", [3, 1, 8448], PAGES.tobytes())})
    (tensor,) = read_dump(write(tmp_path / "a.safetensors", data), None)
    assert (tensor.values == PAGES).all()


def test_rocms_two_tensors_belong_together(tmp_path: Path):
    data = {
        "index_k_payload_buffer": ("U8", [2, 1, 4, 64, 16], bytes(2 * 4096)),
        "index_k_scale_buffer": ("U8", [2, 1, 4, 64], bytes(2 * 256)),
    }
    (tensor,) = read_dump(write(tmp_path / "a.safetensors", safetensors(data)), None)
    assert tensor.layout == index_layout("fp4-rocm")
    assert tensor.scales is not None
    del data["index_k_scale_buffer"]
    with pytest.raises(UsageError, match="no scales beside it"):
        read_dump(write(tmp_path / "b.safetensors", safetensors(data)), None)


@pytest.mark.parametrize("layout", EVERY_LAYOUT, ids=lambda each: f"{each.name}-{each.rows}")
def test_manifests_keep_every_digest(tmp_path: Path, layout: Any):
    from dsv4doctor.checksum.dumps import PagedTensor

    rng = np.random.default_rng(1)
    values = rng.integers(0, 256, (2, layout.page_bytes), dtype=np.uint8)
    scales = rng.integers(0, 256, (2, layout.scale_page_bytes), dtype=np.uint8)
    tensor = PagedTensor(
        name="k", layout=layout, values=values, scales=scales if layout.two_tensors else None
    )
    made = digest_tensor(tensor)
    (tmp_path / "m.json").write_text(manifest_text((made,)))
    (read,) = read_side(tmp_path / "m.json", None)
    assert read.layout == layout
    assert (read.sums == made.sums).all()
    assert (read.rows == made.rows).all()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[]", "no checksum manifest"),
        ('{"kind": "dsv4doctor checksum manifest"}', "damaged manifest"),
        (
            '{"kind": "dsv4doctor checksum manifest", "tensors": [{"name": "k", "layout": "fp8", '
            '"pages": 2, "accumulators": "AAAA", "rows": "AAAA"}]}',
            "damaged manifest",
        ),
    ],
)
def test_damaged_manifests_are_named(tmp_path: Path, text: str, words: str):
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(UsageError, match=words):
        read_side(tmp_path / "m.json", None)
