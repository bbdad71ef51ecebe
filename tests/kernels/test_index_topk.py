"""Scores and selections: kernel, torch and numpy agree bit for bit; their meaning on known keys."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from kernel_cases import make_pages  # noqa: E402

from dsv4doctor.kernels import reference_scores as plain  # noqa: E402
from dsv4doctor.kernels.index_topk import (  # noqa: E402
    Queries,
    index_scores,
    index_scores_reference,
    index_topk,
    select_topk,
)
from dsv4doctor.kernels.layouts import INDEX_DTYPES, index_layout  # noqa: E402
from dsv4doctor.kernels.page_rows import Pages  # noqa: E402
from dsv4doctor.kernels.score_tables import e4m3_values  # noqa: E402


def queries(count: int, heads: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, heads, 128)).astype(np.float32)
    return vectors, rng.standard_normal((count, heads)).astype(np.float32)


# Garbage bytes overflow and are NaN on purpose; numpy tells of it under the interpreter.
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rows", [64, 32])
@pytest.mark.parametrize("dtype", INDEX_DTYPES)
@pytest.mark.parametrize("fill", ["random", "ones"])
def test_scores_agree_bit_for_bit(dtype: str, rows: int, fill: str, device: str):
    layout = index_layout(dtype, rows=rows)
    pages, scales = make_pages(layout, 2, fill=fill)
    vectors, weights = queries(2, 3)
    table = np.array([1, 0])
    chosen = None if scales is None else scales[table]
    keys, key_scale = plain.decode_keys(layout, pages[table], chosen)
    expected = plain.index_scores(keys, key_scale, vectors, weights)
    value = Pages(
        layout=layout,
        values=torch.from_numpy(pages).to(device),
        scales=None if scales is None else torch.from_numpy(scales).to(device),
        table=torch.from_numpy(table).to(device),
    )
    asked = Queries(
        vectors=torch.from_numpy(vectors).to(device), weights=torch.from_numpy(weights).to(device)
    )
    for found in (index_scores_reference(value, asked), index_scores(value, asked)):
        assert (found.cpu().numpy().view(np.int32) == expected.view(np.int32)).all()
    best = plain.select_topk(expected, 20)
    assert (index_topk(value, asked, topk=20).cpu().numpy() == best).all()


def test_e4m3_codes_have_torchs_values():
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    assert np.array_equal(np.array(e4m3_values(), dtype=np.float32), codes.numpy(), equal_nan=True)


def test_a_score_is_what_the_formula_says():
    """One key along one axis: relu drops the head that looks away; the key's scale multiplies."""
    layout = index_layout("fp8")
    page = np.zeros((1, layout.page_bytes), dtype=np.uint8)
    page[0, 5 * 128 + 17] = 0x40  # slot 5, dimension 17: the code of 2.0
    page[0, 8192:].view(np.float32)[:] = 0.5
    vectors = np.zeros((1, 2, 128), dtype=np.float32)
    vectors[0, 0, 17], vectors[0, 1, 17] = 3.0, -1.0
    weights = np.array([[4.0, 100.0]], dtype=np.float32)
    scores = plain.index_scores(*plain.decode_keys(layout, page), vectors, weights)
    assert scores[0, 5] == 0.5 * 4.0 * 6.0
    assert np.count_nonzero(scores) == 1


def test_short_contexts_select_every_slot_whatever_the_scores():
    scores = torch.tensor([[3.0, float("nan"), -1.0]])
    assert select_topk(scores, 5).tolist() == [[0, 1, 2, -1, -1]]


def test_equal_scores_go_to_the_lower_slot():
    scores = torch.tensor([[1.0, 2.0, 1.0, 1.0, 2.0]])
    assert select_topk(scores, 3).tolist() == [[0, 1, 4]]
    assert plain.select_topk(scores.numpy(), 3).tolist() == [[0, 1, 4]]


def test_a_stale_page_changes_the_selected_set():
    layout = index_layout("fp8")
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 0x78, (12, layout.page_bytes), dtype=np.uint8)
    codes[:, :8192] |= rng.integers(0, 2, (12, 8192), dtype=np.uint8) << 7
    codes[:, 8192:].view(np.float32)[:] = 1.0
    vectors, weights = queries(4, 8)
    weights = np.abs(weights)
    before = plain.select_topk(
        plain.index_scores(*plain.decode_keys(layout, codes), vectors, weights), 128
    )
    stale = codes.copy()
    stale[3] = codes[9]
    after = plain.select_topk(
        plain.index_scores(*plain.decode_keys(layout, stale), vectors, weights), 128
    )
    shares = plain.overlap(before, after)
    assert (shares < 1).all()
    assert (shares > 0.7).all()
    assert (plain.overlap(before, before) == 1).all()


@pytest.mark.parametrize(
    ("vectors", "weights"),
    [
        (torch.zeros(1, 2, 64), torch.zeros(1, 2)),
        (torch.zeros(1, 2, 128, dtype=torch.float64), torch.zeros(1, 2)),
        (torch.zeros(1, 2, 128), torch.zeros(1, 3)),
    ],
)
def test_queries_that_do_not_fit_are_named(vectors: torch.Tensor, weights: torch.Tensor):
    with pytest.raises(ValueError, match="are float32"):
        Queries(vectors=vectors, weights=weights)
