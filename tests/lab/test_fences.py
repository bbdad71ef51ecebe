"""The missing fences: sick with overlap and a host cache, exactly 0 without, and by bytes alone.

Small labs throughout: the pool holds little more than one batch, as 420 pages do at 60 sessions.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections import defaultdict
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from lab_sessions import SESSIONS, LoggedRun, corrupted, request_of, run, scripts

from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.engine import Engine
from dsv4doctor.lab.groundtruth import read_log
from dsv4doctor.lab.replay import replay

FENCES = ("load-fence", "write-fence")
SMALL: dict[str, Any] = {"device_pages": 220, "prefill_batch_requests": 6}
SMALL_SESSIONS = 24
# The orderings of a release, and nothing wrong beside.
BARE: dict[str, Any] = {"faults": ("none",)}

CLOSED = [
    pytest.param({"faults": ("load-fence",), "fixes": ("load-fence",)}, id="loads wait"),
    pytest.param({"faults": ("write-fence",), "fixes": ("write-fence",)}, id="backups wait"),
    pytest.param({"faults": FENCES, "overlap_schedule": False}, id="one stream"),
    pytest.param({"faults": FENCES, "coarse_barrier": True}, id="the coarse barrier"),
    pytest.param({"faults": FENCES, "hicache": False}, id="nothing is loaded or backed up"),
    pytest.param({**BARE, "as_version": "0.5.23"}, id="the release that has both"),
]


@lru_cache(maxsize=2)
def logged(fault: str) -> LoggedRun:
    """A small lab with one fence missing, run once for all tests."""
    folder = tempfile.mkdtemp(prefix="lab-truth-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    log = Path(folder) / "truth.jsonl"
    engine = Engine(EngineConfig(faults=(fault,), **SMALL), log)
    answers = run(engine, scripts("tool-calls", 0, SMALL_SESSIONS))
    engine.close()
    return LoggedRun(engine=engine, answers=answers, log=log)


def engine_after(**settings: Any) -> tuple[Engine, int]:
    """A small lab after all its turns, and how many replies were not what they should be."""
    engine = Engine(EngineConfig(**(SMALL | settings)))
    return engine, len(corrupted(run(engine, scripts("tool-calls", 0, SMALL_SESSIONS))))


def stale_reads(log: Path) -> list[dict[str, Any]]:
    return [record for record in read_log(log) if record["kind"] == "stale_read"]


def is_from_elsewhere(read: dict[str, Any]) -> bool:
    """Whether another session's store was the last one in the page."""
    return read["owner"] is not None and read["owner"]["rid"][:10] != read["rid"][:10]


@pytest.mark.parametrize("fault", FENCES)
def test_a_missing_fence_corrupts(fault: str) -> None:
    bad = corrupted(logged(fault).answers)
    assert 0.02 <= len(bad) / len(logged(fault).answers) <= 0.25
    assert min(answer.turn for answer in bad) >= 1, "nothing is restored in the first turn"


@pytest.mark.parametrize("settings", CLOSED)
def test_what_closes_it_closes_it_entirely(settings: dict[str, Any]) -> None:
    engine, bad = engine_after(**settings)
    assert (bad, engine.ground_truth.stale_reads) == (0, 0)


@pytest.mark.parametrize("fault", FENCES)
def test_one_session_is_never_evicted(fault: str) -> None:
    engine = Engine(EngineConfig(faults=(fault,), **SMALL))
    assert corrupted(run(engine, scripts("tool-calls", 0, 1))) == []


@pytest.mark.parametrize("fault", FENCES)
def test_every_corrupted_reply_is_explained_by_its_bytes(fault: str) -> None:
    done = logged(fault)
    stale: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in stale_reads(done.log):
        stale[record["rid"]].append(record)
    served = {r["rid"]: r["text"] for r in read_log(done.log) if r["kind"] == "served"}
    bad = corrupted(done.answers)
    for answer in bad:
        rid = answer.request.rid
        assert done.engine.healthy_text(answer.request) == answer.expected
        again = replay(done.engine, answer.request, stale[rid], done.log)
        assert again == answer.generation.text == served[rid]
    sound = [answer for answer in done.answers if not answer.is_corrupted]
    assert any(stale[answer.request.rid] for answer in sound), "a stale read need not corrupt"


def test_a_late_store_is_another_sessions() -> None:
    reads = stale_reads(logged("load-fence").log)
    assert all(map(is_from_elsewhere, reads))
    # The page was a whole restored one: the late store is of another place in its conversation.
    assert any(read["owner"]["logical_page"] != read["logical_page"] for read in reads)


def test_a_half_written_backup_is_the_sessions_own_and_stays() -> None:
    reads = stale_reads(logged("write-fence").log)
    for read in reads:
        assert not is_from_elsewhere(read)
        assert read["owner"]["logical_page"] == read["logical_page"]
    turns: dict[tuple[int, int], set[int]] = defaultdict(set)
    for read in reads:
        turns[read["session"], read["logical_page"]].add(read["turn"])
        written = int(read["owner"]["rid"].rsplit("t", 1)[1])
        assert written < read["turn"], "what is wrong was saved in an earlier turn"
    assert any(len(seen) > 1 for seen in turns.values()), "the host's copy does not heal"


def test_0_5_18_shows_both_and_0_5_20_no_late_store(tmp_path: Path) -> None:
    found = {}
    for version in ("0.5.18", "0.5.20"):
        log = tmp_path / f"{version}.jsonl"
        engine = Engine(EngineConfig(**BARE, as_version=version, **SMALL), log)
        run(engine, scripts("tool-calls", 0, SMALL_SESSIONS))
        engine.close()
        found[version] = {is_from_elsewhere(read) for read in stale_reads(log)}
    assert found == {"0.5.18": {True, False}, "0.5.20": {False}}


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_the_signature_holds_for_every_seed(seed: int) -> None:
    """At sixty sessions and the default pool."""
    chosen = scripts("tool-calls", seed, SESSIONS)

    def bad(**settings: Any) -> int:
        return len(corrupted(run(Engine(EngineConfig(**settings)), chosen)))

    for fault in FENCES:
        assert bad(faults=(fault,)) > 0
        assert bad(faults=(fault,), fixes=(fault,)) == 0
    assert bad(**BARE, as_version="0.5.18", fixes=("write-fence",)) > 0
    assert bad(**BARE, as_version="0.5.18", overlap_schedule=False) == 0
    assert bad(**BARE, as_version="0.5.20", fixes=("write-fence",)) == 0
    assert bad(**BARE, as_version="0.5.23") == 0


def test_a_generous_limit_costs_no_room() -> None:
    """What a request may write at most does not keep others out of its batch."""
    engines = [Engine(EngineConfig(**BARE, as_version="0.5.18", **SMALL)) for _ in range(2)]
    chosen = scripts("tool-calls", 0, 8)
    texts = []
    for engine, limit in zip(engines, (2_000, 1_000_000), strict=True):
        requests = [replace(request_of(script, 0), max_tokens=limit) for script in chosen]
        texts.append([reply.text for reply in engine.serve_round(requests)])
    assert texts[0] == texts[1]
    assert engines[0].gauges() == engines[1].gauges()
