"""Kernel, torch, numba, numpy and plain integers give the same digests, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("numba")

from kernel_cases import FILLS, LATENT, LAYOUTS, make_pages, slow_digest  # noqa: E402

from dsv4doctor.kernels import fast, reference  # noqa: E402
from dsv4doctor.kernels.latent_digest import latent_digest, latent_digest_reference  # noqa: E402
from dsv4doctor.kernels.layouts import PageLayout, index_layout, layout_named  # noqa: E402
from dsv4doctor.kernels.page_digest import (  # noqa: E402
    PageDigests,
    page_digest,
    page_digest_reference,
)
from dsv4doctor.kernels.page_rows import Pages  # noqa: E402


def by_kernel(pages: Pages, *, with_rows: bool = True) -> PageDigests:
    digest = latent_digest if pages.layout.code == 16 else page_digest
    return digest(pages, with_rows=with_rows)


def bits(tensor: torch.Tensor) -> np.ndarray:
    return tensor.cpu().numpy().view(np.uint64)


def tensor(array: np.ndarray | None, device: str) -> torch.Tensor | None:
    return None if array is None else torch.from_numpy(array).to(device)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fill", FILLS)
def test_every_path_agrees(layout: PageLayout, fill: str, device: str):
    count = 1 if layout.rows > 128 else 3
    pages, scales = make_pages(layout, count, fill=fill)
    expected = reference.digest_pages(layout, pages, scales, first_position=7)
    expected_rows = reference.digest_rows(layout, pages, scales)
    quick, quick_rows = fast.digest(layout, pages, scales, first_position=7)
    assert (quick == expected).all()
    assert (quick_rows == expected_rows).all()
    value = Pages(
        layout=layout,
        values=tensor(pages, device),
        scales=tensor(scales, device),
        first_position=7,
    )
    plain = latent_digest_reference if layout.code == 16 else page_digest_reference
    for found in (plain(value), by_kernel(value)):
        assert (bits(found.pages) == expected).all()
        assert (bits(found.rows) == expected_rows).all()
    assert (bits(by_kernel(value, with_rows=False).pages) == expected).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_plain_integers_agree(layout: PageLayout):
    pages, scales = make_pages(layout, 2, seed=1)
    found = reference.digest_pages(layout, pages, scales, first_position=11)
    rows = reference.digest_rows(layout, pages, scales)
    for i in range(2):
        tail = b"" if scales is None else scales[i].tobytes()
        digest, row_digests = slow_digest(layout, pages[i].tobytes(), tail, 11 + i)
        assert int(found[i]) == digest
        assert rows[i].tolist() == row_digests


@pytest.mark.parametrize("layout", LAYOUTS)
def test_page_tables_choose_repeat_and_reorder(layout: PageLayout, device: str):
    pages, scales = make_pages(layout, 4)
    table = np.array([3, 0, 3, 1] if layout.rows <= 128 else [2, 0], dtype=np.int64)
    chosen = None if scales is None else scales[table]
    expected = reference.digest_pages(layout, pages[table], chosen)
    assert (fast.digest(layout, pages, scales, page_table=table)[0] == expected).all()
    for dtype in (torch.int64, torch.int32):
        value = Pages(
            layout=layout,
            values=tensor(pages, device),
            scales=tensor(scales, device),
            table=torch.from_numpy(table).to(device=device, dtype=dtype),
        )
        assert (bits(by_kernel(value).pages) == expected).all()
        assert (bits(page_digest_reference(value).pages) == expected).all()


@pytest.mark.parametrize("padding", [4, 16, 100])
@pytest.mark.parametrize("name", ["fp8", "bf16/32", "fp4", "fp4-rocm", "c4", "c128"])
def test_strided_pages_are_read_in_place(name: str, padding: int, device: str):
    layout = layout_named(name)
    pages, scales = make_pages(layout, 3)
    wide = np.zeros((3, layout.page_bytes + padding), dtype=np.uint8)
    wide[:, : layout.page_bytes] = pages
    expected = reference.digest_pages(layout, pages, scales)
    assert (fast.digest(layout, wide[:, : layout.page_bytes], scales)[0] == expected).all()
    spaced = np.repeat(pages, 2, axis=0)[::2]  # every second page of a pool
    twice = None if scales is None else np.repeat(scales, 2, axis=0)[::2]
    assert (fast.digest(layout, spaced, twice)[0] == expected).all()
    backwards = fast.digest(layout, pages[::-1], None if scales is None else scales[::-1])[0]
    again = reference.digest_pages(layout, pages[::-1], None if scales is None else scales[::-1])
    assert (backwards == again).all()
    values = tensor(wide, device)[:, : layout.page_bytes]
    value = Pages(layout=layout, values=values, scales=tensor(scales, device))
    assert (bits(by_kernel(value).pages) == expected).all()
    assert (bits(page_digest_reference(value).pages) == expected).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_pages_have_no_digests(layout: PageLayout, device: str):
    pages, scales = make_pages(layout, 0)
    assert reference.digest_pages(layout, pages, scales).shape == (0,)
    assert fast.digest(layout, pages, scales)[1].shape == (0, layout.rows)
    value = Pages(layout=layout, values=tensor(pages, device), scales=tensor(scales, device))
    assert by_kernel(value).pages.shape == (0,)
    assert page_digest_reference(value).rows.shape == (0, layout.rows)


def test_rows_have_one_digest_in_both_fp4_forms():
    """A key stored by NVIDIA's writer and by ROCm's is the same key."""
    plain, rocm = index_layout("fp4"), index_layout("fp4-rocm")
    pages, _ = make_pages(plain, 2)
    chunks = pages[:, :4096].reshape(2, 64, 4, 16).transpose(0, 2, 1, 3)
    exponents = pages[:, 4096:].reshape(2, 4, 16, 4).transpose(0, 3, 2, 1)
    there = np.ascontiguousarray(chunks).reshape(2, 4096)
    scales = np.ascontiguousarray(exponents).reshape(2, 256)
    rows = reference.digest_rows(plain, pages)
    assert (rows == reference.digest_rows(rocm, there, scales)).all()


@pytest.mark.parametrize("layout", LATENT)
def test_padding_is_left_out(layout: PageLayout):
    pages, _ = make_pages(layout, 1)
    edited = pages.copy()
    used = layout.scale_base + layout.rows * 8
    edited[:, used:] ^= 255
    edited[:, layout.scale_base + 7 : used : 8] ^= 255
    assert (edited != pages).any()
    assert reference.digest_pages(layout, edited) == reference.digest_pages(layout, pages)


BAD_PAGES = [
    pytest.param(torch.zeros(2, 8447, dtype=torch.uint8), "not torch.uint8", id="short-page"),
    pytest.param(torch.zeros(2, 8448, dtype=torch.int8), "not torch.int8", id="signed"),
    pytest.param(torch.zeros(8448, dtype=torch.uint8), "are uint8", id="one-dimension"),
    pytest.param(torch.zeros(2, 8449, dtype=torch.uint8)[:, :8448], "stride", id="odd-stride"),
    pytest.param(torch.zeros(8448, 2, dtype=torch.uint8).T, "stride", id="transposed"),
    pytest.param(torch.zeros(8450, dtype=torch.uint8)[2:].view(1, -1), "start", id="unaligned"),
]


@pytest.mark.parametrize(("values", "words"), BAD_PAGES)
def test_tensors_that_do_not_fit_are_named(values: torch.Tensor, words: str):
    with pytest.raises(ValueError, match=words):
        Pages(layout=index_layout("fp8"), values=values)


@pytest.mark.parametrize("table", [[-1], [2], [0, 99]])
def test_tables_that_leave_the_pool_are_refused(table: list[int]):
    values = torch.zeros(2, 8448, dtype=torch.uint8)
    with pytest.raises(ValueError, match="outside 0 to 1"):
        Pages(layout=index_layout("fp8"), values=values, table=torch.tensor(table))
    with pytest.raises(ValueError, match="outside 0 to 1"):
        fast.digest(index_layout("fp8"), values.numpy(), page_table=np.array(table))


def test_scales_belong_to_two_tensor_layouts_only():
    values = torch.zeros(2, 8448, dtype=torch.uint8)
    with pytest.raises(ValueError, match="hold their scales"):
        Pages(layout=index_layout("fp8"), values=values, scales=values)
    with pytest.raises(ValueError, match="tensor of scales"):
        Pages(layout=index_layout("fp4-rocm"), values=values[:, :4096])
    with pytest.raises(ValueError, match="no second tensor"):
        reference.digest_pages(index_layout("fp8"), values.numpy(), values.numpy())


@pytest.mark.parametrize("name", ["fp7", "fp8/48", "fp8/x", "swa/64", ""])
def test_unknown_layouts_are_named(name: str):
    with pytest.raises(ValueError, match=r"layout|slots"):
        layout_named(name)
