"""Which pages differ, and whose bytes lie there: every way a copy goes wrong has its name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dsv4doctor.checksum.compare import Difference, compare
from dsv4doctor.checksum.dumps import PagedTensor
from dsv4doctor.checksum.manifest import TensorDigests, digest_tensor
from dsv4doctor.errors import UsageError
from dsv4doctor.kernels.layouts import index_layout

LAYOUT = index_layout("fp8")
Edit = Callable[[np.ndarray], None]


def pool(*, edit: Edit | None = None, name: str = "k", count: int = 6) -> TensorDigests:
    values = np.random.default_rng(3).integers(0, 256, (count, 8448), dtype=np.uint8)
    if edit is not None:
        edit(values)
    return digest_tensor(PagedTensor(name=name, layout=LAYOUT, values=values))


def one_difference(edit: Edit) -> Difference:
    result = compare([pool()], [pool(edit=edit)])
    (found,) = result.differences
    assert found.page == 2
    return found


def flip(values: np.ndarray) -> None:
    values[2, 5 * 128 + 9] ^= 1


def scale(values: np.ndarray) -> None:
    values[2, 8192 + 4 * 63] ^= 1


def zero(values: np.ndarray) -> None:
    values[2] = 0


def other(values: np.ndarray) -> None:
    values[2] = values[4]


def late(values: np.ndarray) -> None:
    values[2] = np.roll(values[2], 16)


def early(values: np.ndarray) -> None:
    values[2] = np.roll(values[2], -4)


def torn(values: np.ndarray) -> None:
    """A copy that stopped half-way, rows and their scales: the rest is page 5's."""
    values[2, 32 * 128 : 8192] = values[5, 32 * 128 : 8192]
    values[2, 8192 + 32 * 4 :] = values[5, 8192 + 32 * 4 :]


def torn_zero(values: np.ndarray) -> None:
    values[2, : 16 * 128] = 0
    values[2, 8192 : 8192 + 16 * 4] = 0


def noise(values: np.ndarray) -> None:
    values[2] ^= 0x55


@pytest.mark.parametrize(
    ("edit", "kind", "instead", "tokens"),
    [
        (flip, "unknown bytes", "tokens 5 to 5 hold bytes of no page", 1),
        (scale, "unknown bytes", "tokens 63 to 63", 1),
        (zero, "zeros", "zeros", 64),
        (other, "another page", "page 4", 64),
        (late, "shift", "16 too late", 64),
        (early, "shift", "4 too early", 64),
        (torn, "half", "tokens 32 to 63 are page 5's", 32),
        (torn_zero, "half", "tokens 0 to 15 are zeros", 16),
        (noise, "unknown bytes", "no page on the left", 64),
    ],
)
def test_every_fault_has_its_name(edit: Edit, kind: str, instead: str, tokens: int):
    found = one_difference(edit)
    assert found.kind == kind
    assert instead in found.instead
    assert len(found.tokens) == tokens


def test_equal_sides_have_no_difference():
    result = compare([pool()], [pool()])
    assert (result.differences, result.missing, result.pages) == ((), (), 6)


def test_bytes_of_another_layer_are_found_there():
    left = [pool(name="layer0"), pool(name="layer1", edit=noise)]

    def from_layer_0(values: np.ndarray) -> None:
        noise(values)
        values[1] = pool().pages.values[3]

    right = [left[0], pool(name="layer1", edit=from_layer_0)]
    (found,) = compare(left, right).differences
    assert (found.tensor, found.page, found.instead) == ("layer1", 1, "page 3 of layer0")


def test_tensors_of_one_side_only_are_named():
    result = compare([pool(name="a"), pool(name="b")], [pool(name="b"), pool(name="c")])
    assert result.missing == ("a", "c")


def test_two_single_tensors_match_whatever_their_names():
    assert compare([pool(name="left")], [pool(name="right")]).differences == ()


def test_sides_that_cannot_be_compared_are_refused():
    with pytest.raises(UsageError, match="no tensor in common"):
        compare([pool(name="a"), pool(name="b")], [pool(name="c")])
    with pytest.raises(UsageError, match="6 fp8/64 pages on one side, 5"):
        compare([pool()], [pool(count=5)])
