"""Kernels against references, planted edits, copies, memory: can this device be trusted?

A check has `planted` (things that must be found or be equal), `found` and `passed`: found equals
planted. References are plain numpy on the host's CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsv4doctor.checksum.worker.engine import Engine, NumpyEngine, patterned
from dsv4doctor.kernels import reference, reference_scores
from dsv4doctor.kernels.layouts import (
    INDEX_DTYPES,
    LATENT_ROWS,
    PageLayout,
    index_layout,
    latent_layout,
)
from dsv4doctor.kernels.pattern import decode_pattern
from dsv4doctor.kernels.reference import Bytes, Digests
from dsv4doctor.kernels.stamp import Stamp

INTERPRETED_PAGES = 2  # the interpreter takes some 10 ms a page
CHECKED_PAGES = 32
EDITS = 24  # planted in a pool, each in a page of its own where there are so many
POOL_PAGES = 2048  # fixed, so that every host's digest is of equal bytes
COPY_LAYERS = 4
# Pages of the memory check: 138 GB on a GPU (its budget is less), 35 MB in a CPU's memory.
MEMORY_PAGES = {"cuda": 1 << 24, "hip": 1 << 24, "cpu": 1 << 12, "interpreter": 4}
MISMATCHES_SHOWN = 64
QUERY_HEADS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing checked; `passed` is found == planted."""

    name: str
    planted: int
    found: int

    def plain(self) -> dict[str, Any]:
        passed = self.found == self.planted
        return {"name": self.name, "passed": passed, "planted": self.planted, "found": self.found}


def pages_for(engine: Engine) -> int:
    """How many pages a check may use on this engine."""
    return INTERPRETED_PAGES if engine.backend == "interpreter" else CHECKED_PAGES


def sample(layout: PageLayout, count: int, rng: np.random.Generator) -> tuple[Bytes, Bytes | None]:
    """Random pages; the first is zeros and the last all ones, as erased memory is."""

    def fresh(width: int) -> Bytes:
        made = rng.integers(0, 256, (count, width), dtype=np.uint8)
        made[0], made[-1] = 0, 255
        return made

    return fresh(layout.page_bytes), fresh(layout.scale_page_bytes) if layout.two_tensors else None


def check_digests(engine: Engine, layout: PageLayout, rng: np.random.Generator) -> Check:
    """Page and row digests over a shuffled page table equal the reference's."""
    count = pages_for(engine) if layout.rows <= 64 else 2
    values, scales = sample(layout, count, rng)
    table = rng.permutation(count).astype(np.int64)
    pages, rows = engine.digest(engine.upload(layout, values, scales), table)
    chosen = None if scales is None else scales[table]
    expected = reference.digest_pages(layout, values[table], chosen)
    expected_rows = reference.digest_rows(layout, values[table], chosen)
    equal = int((pages == expected).sum()) + int((rows == expected_rows).sum())
    planted = expected.size + expected_rows.size
    return Check(name=f"digest {layout.name}/{layout.rows}", planted=planted, found=equal)


def check_pattern(engine: Engine, layout: PageLayout) -> Check:
    """What the device writes reads back as what was asked for, every unit."""
    stamp = Stamp(generation=5, layer=7, page=3, seed=11)
    values, _ = engine.download(engine.fill(layout, pages_for(engine), stamp))
    found = decode_pattern(values, seed=11)
    right = (found.generation == 5) & (found.layer == 7)
    right &= (found.page == 3 + np.arange(len(values))[:, None]) & (
        found.place == np.arange(values.shape[1] // 8)
    )
    return Check(name=f"pattern {layout.name}", planted=right.size, found=int(right.sum()))


def _flip(page: Bytes, other: Bytes, at: int) -> None:
    page[at] ^= 1 << (at % 8)


def _swap(page: Bytes, other: Bytes, at: int) -> None:
    words = page.view("<u4")
    i, j = at // 4, (at // 4 + 1) % len(words)
    words[i], words[j] = words[j], words[i]


def _zero(page: Bytes, other: Bytes, at: int) -> None:
    page[:] = 0


def _other(page: Bytes, other: Bytes, at: int) -> None:
    page[:] = other


def _half(page: Bytes, other: Bytes, at: int) -> None:
    page[len(page) // 2 :] = other[len(page) // 2 :]


def _shift(page: Bytes, other: Bytes, at: int) -> None:
    page[:] = np.roll(page, (1, 4, 16)[at % 3])


EDIT_KINDS: tuple[Callable[[Bytes, Bytes, int], None], ...] = (
    _flip, _swap, _zero, _other, _half, _shift,
)  # fmt: skip


def check_edits(engine: Engine, layout: PageLayout, rng: np.random.Generator) -> Check:
    """Edited pages, and no others, have another digest."""
    count = max(pages_for(engine), 8)
    values, scales = patterned(layout, count, Stamp(seed=int(rng.integers(1 << 30))))
    before, _ = engine.digest(engine.upload(layout, values, scales))
    edited = values.copy()
    victims = rng.choice(count, size=min(EDITS, count * 3 // 4), replace=False)
    for number, victim in enumerate(victims):
        kind = EDIT_KINDS[number % len(EDIT_KINDS)]
        kind(edited[victim], values[(victim + 1) % count], int(rng.integers(layout.rows * 64)))
    after, _ = engine.digest(engine.upload(layout, edited, scales))
    found = set(np.flatnonzero(before != after).tolist())
    right = len(found & set(victims.tolist())) - len(found - set(victims.tolist()))
    return Check(name=f"planted edits {layout.name}", planted=len(victims), found=right)


def check_scores(engine: Engine, layout: PageLayout, rng: np.random.Generator) -> Check:
    """The indexer's scores equal the reference's, bit for bit."""
    count = 1 if engine.backend == "interpreter" else 8
    values, scales = sample(layout, count + 1, rng)
    values, scales = values[:count], None if scales is None else scales[:count]
    vectors = rng.standard_normal((2, QUERY_HEADS, 128)).astype(np.float32)
    weights = rng.standard_normal((2, QUERY_HEADS)).astype(np.float32)
    with np.errstate(all="ignore"):
        found = engine.scores(engine.upload(layout, values, scales), vectors, weights)
        keys, scale = reference_scores.decode_keys(layout, values, scales)
        expected = reference_scores.index_scores(keys, scale, vectors, weights)
    equal = int((found.view(np.int32) == expected.view(np.int32)).sum())
    return Check(name=f"index scores {layout.name}", planted=expected.size, found=equal)


def check_host_copies(engine: Engine, layout: PageLayout, host_layout: str) -> Check:
    """Pattern, to host memory in HiCache's `host_layout`, back to other pages, digest as expected.

    layer_first keeps [layers, pages, bytes] on the host, page_first [pages, layers, bytes].
    """
    from dsv4doctor.checksum.worker.host_copies import through_host

    count = pages_for(engine)
    stamps = [Stamp(layer=layer, seed=3) for layer in range(COPY_LAYERS)]
    pools = [engine.fill(layout, count, stamp) for stamp in stamps]
    back = through_host(engine, pools, page_first=host_layout == "page_first")
    equal = 0
    for stamp, pool in zip(stamps, back, strict=True):
        expected = reference.digest_pages(layout, *patterned(layout, count, stamp))
        equal += int((engine.digest(pool)[0] == expected).sum())
    name = f"host copies {layout.name} {host_layout}"
    return Check(name=name, planted=count * COPY_LAYERS, found=equal)


def check_memory(engine: Engine, layout: PageLayout, budget_bytes: int) -> Check:
    """Two pools in different places, written alike and as large as allowed, digest alike."""
    count = min(budget_bytes // 3 // layout.page_bytes, MEMORY_PAGES[engine.backend])
    pools = [engine.fill(layout, count, Stamp(seed=8)) for _ in range(2)]
    one, other = (engine.digest(pool)[0] for pool in pools)
    equal = int((one == other).sum())
    return Check(name=f"memory {layout.name}", planted=count, found=equal)


def check_peers(engine: Engine, layout: PageLayout) -> Iterator[Check]:
    """Pages copied to every other GPU and back arrive as they were."""
    from dsv4doctor.checksum.worker.host_copies import through_peer

    pool = engine.fill(layout, CHECKED_PAGES, Stamp(seed=4))
    expected = reference.digest_pages(layout, *patterned(layout, CHECKED_PAGES, Stamp(seed=4)))
    for peer, back in through_peer(engine, pool):
        equal = int((engine.digest(back)[0] == expected).sum())
        yield Check(name=f"peer copy {peer}", planted=CHECKED_PAGES, found=equal)


def checks(engine: Engine, budget_bytes: int, seed: int) -> Iterator[Check]:
    """Every check of one device, cheapest first."""
    rng = np.random.default_rng(seed)
    layouts = [index_layout(dtype) for dtype in INDEX_DTYPES]
    layouts += [index_layout("fp8", rows=32), index_layout("fp8", rows=128)]
    layouts += [latent_layout(pool) for pool in LATENT_ROWS]
    for layout in layouts:
        yield check_digests(engine, layout, rng)
    for dtype in INDEX_DTYPES:
        layout = index_layout(dtype)
        yield check_pattern(engine, layout)
        yield check_edits(engine, layout, rng)
        yield check_scores(engine, layout, rng)
        for host_layout in ("layer_first", "page_first"):
            yield check_host_copies(engine, layout, host_layout)
    yield check_memory(engine, index_layout("fp8"), budget_bytes)
    if engine.backend in ("cuda", "hip"):
        yield from check_peers(engine, index_layout("fp8"))


def pool_report(engine: Engine, layout: PageLayout, budget_bytes: int, seed: int) -> dict[str, Any]:
    """Digests of a whole pool, its speed, and where it is not what was written."""
    per_page = layout.page_bytes + layout.scale_page_bytes
    count = int(max(1, min(POOL_PAGES, budget_bytes // (3 * per_page))))
    # The interpreter proves the kernels' bits; a pool of thousands of pages is the CPU path's.
    runner = NumpyEngine(engine.device) if engine.backend == "interpreter" else engine
    stamp = Stamp(seed=seed)
    pool = runner.fill(layout, count, stamp)
    seconds = runner.seconds(pool, repeats=3)
    pages, rows = runner.digest(pool)
    expected_pages, expected_rows = expected_digests(layout, count, stamp)
    return {
        "pages": count,
        "bytes": pool.nbytes,
        "seconds": seconds,
        "gb_per_s": pool.nbytes / seconds / 1e9,
        "digest": f"{reference.fold(pages):016x}",
        "mismatches": mismatches(pages, rows, expected_pages, expected_rows),
    }


def expected_digests(layout: PageLayout, count: int, stamp: Stamp) -> tuple[Digests, Digests]:
    """The references' digests of a patterned pool."""
    values, scales = patterned(layout, count, stamp)
    rows = reference.digest_rows(layout, values, scales)
    sums = reference.accumulate(rows) + reference.origins(layout, count, 0)
    return reference.mix64(sums), rows


def mismatches(
    pages: Digests, rows: Digests, expected_pages: Digests, expected_rows: Digests
) -> list[dict[str, Any]]:
    """Rows, and pages whose rows all agree, that are not as expected; at most a screenful."""
    found = []
    for page in np.flatnonzero(pages != expected_pages):
        tokens: list[int | None] = list(np.flatnonzero(rows[page] != expected_rows[page])) or [None]
        for token in tokens:
            got, want = pages[page], expected_pages[page]
            if token is not None:
                got, want = rows[page, token], expected_rows[page, token]
            found.append(
                {
                    "page": int(page),
                    "token": None if token is None else int(token),
                    "expected": f"{int(want):016x}",
                    "got": f"{int(got):016x}",
                }
            )
            if len(found) == MISMATCHES_SHOWN:
                return found
    return found
