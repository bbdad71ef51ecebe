"""Two sides of the same pages: which pages and tokens differ, and whose bytes lie there instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsv4doctor.checksum.manifest import TensorDigests
from dsv4doctor.errors import UsageError

SHIFTS = (1, 2, 3, 4, 8, 16, 32, 64, 128)  # bytes that a wrong offset or stride is off by
Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One page that differs. `kind`: zeros, another page, shift, half, or unknown bytes."""

    tensor: str
    page: int
    tokens: tuple[int, ...]
    kind: str
    instead: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All differences, right side against left; `missing` names tensors that one side lacks."""

    tensors: int
    pages: int
    differences: tuple[Difference, ...]
    missing: tuple[str, ...]


def compare(left: Sequence[TensorDigests], right: Sequence[TensorDigests]) -> Comparison:
    """Right against left, tensors matched by name (two single tensors match whatever their names).

    Raises:
        UsageError: if a pair of tensors has different layouts or no tensor matches.
    """
    there = {tensor.name: tensor for tensor in right}
    if len(left) == len(right) == 1:
        there = {left[0].name: right[0]}
    whose: dict[int, Place] = {}
    for tensor in left:
        for page, value in enumerate(tensor.sums.tolist()):
            whose.setdefault(value, (tensor.name, page))
    pairs = [(tensor, there[tensor.name]) for tensor in left if tensor.name in there]
    names = {tensor.name for tensor in left}
    if not pairs:
        raise UsageError("the two sides have no tensor in common", "dump the same buffers")
    found: list[Difference] = []
    for one, other in pairs:
        found += _compare_tensor(one, other, whose)
    return Comparison(
        tensors=len(pairs),
        pages=sum(len(one.sums) for one, _ in pairs),
        differences=tuple(found),
        missing=tuple(sorted(names ^ there.keys())),
    )


def _compare_tensor(
    left: TensorDigests, right: TensorDigests, whose: dict[int, Place]
) -> list[Difference]:
    if (left.layout, len(left.sums)) != (right.layout, len(right.sums)):
        raise UsageError(
            f"{left.name}: {len(left.sums)} {left.layout.name}/{left.layout.rows} pages on one "
            f"side, {len(right.sums)} {right.layout.name}/{right.layout.rows} on the other",
            "dump the same pool on both sides",
        )
    changed = np.flatnonzero((left.rows != right.rows).any(axis=1))
    return [_explain(left, right, int(page), whose) for page in changed]


def _explain(
    left: TensorDigests, right: TensorDigests, page: int, whose: dict[int, Place]
) -> Difference:
    want, got = left.rows[page], right.rows[page]
    wrong = np.flatnonzero(want != got)
    kind, instead = _whole_page(left, right, page, whose)
    if kind == "unknown bytes" and len(wrong) < len(want):
        kind, instead = _part_of_page(left, got, wrong, kind)
    return Difference(
        tensor=left.name,
        page=page,
        tokens=tuple(int(token) for token in wrong),
        kind=kind,
        instead=instead,
    )


def _whole_page(
    left: TensorDigests, right: TensorDigests, page: int, whose: dict[int, Place]
) -> tuple[str, str]:
    if not right.rows[page].any():
        return "zeros", "zeros"
    owner = whose.get(int(right.sums[page]))
    if owner is not None and owner != (left.name, page):
        tensor = "" if owner[0] == left.name else f" of {owner[0]}"
        return "another page", f"page {owner[1]}{tensor}"
    shift = _shift(left, right, page)
    if shift is not None:
        return "shift", f"the right bytes, {abs(shift)} too {'late' if shift > 0 else 'early'}"
    return "unknown bytes", "bytes of no page on the left side"


def _part_of_page(
    left: TensorDigests, got: np.ndarray, wrong: np.ndarray, unknown: str
) -> tuple[str, str]:
    """A page partly right: what its wrong rows hold."""
    span = f"tokens {wrong[0]} to {wrong[-1]}"
    is_run = len(wrong) > 1 and wrong[-1] - wrong[0] + 1 == len(wrong)
    at_an_end = wrong[0] == 0 or wrong[-1] == len(got) - 1
    kind = "half" if is_run and at_an_end else unknown
    if not got[wrong].any():
        return kind if kind == "half" else "zeros", f"{span} are zeros"
    owners = np.flatnonzero((left.rows[:, wrong] == got[wrong]).all(axis=1))
    if len(owners):
        return kind if kind == "half" else "another page", f"{span} are page {owners[0]}'s"
    return kind, f"{span} hold bytes of no page on the left side"


def _shift(left: TensorDigests, right: TensorDigests, page: int) -> int | None:
    """By how many bytes the page moved, where both sides' bytes are at hand."""
    if left.pages is None or right.pages is None:
        return None
    want, got = left.pages.values[page], right.pages.values[page]
    for by in SHIFTS:
        if np.array_equal(got[by:], want[:-by]):
            return by
        if np.array_equal(got[:-by], want[by:]):
            return -by
    return None
