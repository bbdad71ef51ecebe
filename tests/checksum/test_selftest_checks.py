"""The selftest passes on a sound engine and names what an unsound one does wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dsv4doctor.checksum.worker.engine import Engine, NumpyEngine, Pool
from dsv4doctor.checksum.worker.selftest import checks, pool_report
from dsv4doctor.kernels.layouts import PageLayout, index_layout
from dsv4doctor.kernels.stamp import Stamp

BUDGET = 1 << 20


class FlipsOnUpload(NumpyEngine):
    """Memory that flips one bit of what is copied to it."""

    def upload(self, layout: PageLayout, values: Any, scales: Any) -> Pool:
        pool = super().upload(layout, values, scales)
        pool.values[1, 77] ^= 4
        return pool


class WritesOnePageLate(NumpyEngine):
    """A fill whose second page still holds the first's bytes."""

    def fill(self, layout: PageLayout, count: int, stamp: Stamp) -> Pool:
        pool = super().fill(layout, count, stamp)
        pool.values[1] = pool.values[0]
        return pool


class IgnoresPageTables(NumpyEngine):
    def digest(self, pool: Pool, table: Any = None) -> Any:
        return super().digest(pool)


class RoundsScores(NumpyEngine):
    def scores(self, pool: Pool, vectors: Any, weights: Any) -> Any:
        return super().scores(pool, vectors, weights).astype(np.float16).astype(np.float32)


class SeesOnlyTheFirstHalf(NumpyEngine):
    """A digest that never looks at a page's second half."""

    def digest(self, pool: Pool, table: Any = None) -> Any:
        values = pool.values.copy()
        values[:, values.shape[1] // 2 :] = 0
        return super().digest(Pool(layout=pool.layout, values=values, scales=pool.scales), table)


def failed(engine: Engine) -> set[str]:
    return {c.name for c in checks(engine, BUDGET, 1) if not c.plain()["passed"]}


def test_a_sound_engine_passes_every_check():
    found = list(checks(NumpyEngine("x"), BUDGET, 1))
    assert len(found) == 30
    assert all(check.planted == check.found > 0 for check in found)


@pytest.mark.parametrize(
    ("unsound", "named"),
    [
        (FlipsOnUpload, "digest fp8/64"),
        (WritesOnePageLate, "pattern bf16"),
        (WritesOnePageLate, "host copies fp4 page_first"),
        (IgnoresPageTables, "digest c4/64"),
        (RoundsScores, "index scores fp4"),
        (SeesOnlyTheFirstHalf, "planted edits fp8"),
    ],
)
def test_an_unsound_engine_is_named(unsound: type[NumpyEngine], named: str):
    assert named in failed(unsound("x"))


def test_a_pools_digest_depends_on_its_bytes_alone():
    layout = index_layout("fp8")
    one = pool_report(NumpyEngine("x"), layout, BUDGET, 7)
    again = pool_report(NumpyEngine("x"), layout, BUDGET, 7)
    other = pool_report(NumpyEngine("x"), layout, BUDGET, 8)
    assert one["digest"] == again["digest"] != other["digest"]
    assert one["mismatches"] == []
    assert one["pages"] == BUDGET // 3 // layout.page_bytes
    assert one["bytes"] == one["pages"] * layout.page_bytes


def test_pages_that_are_not_what_was_written_are_listed_with_their_tokens():
    report = pool_report(WritesOnePageLate("x"), index_layout("fp4"), BUDGET, 7)
    assert {m["page"] for m in report["mismatches"]} == {1}
    assert [m["token"] for m in report["mismatches"]] == list(range(64))
    assert all(m["expected"] != m["got"] for m in report["mismatches"])
