"""The lab's probe against the ground-truth log: every stale read is found, page by page, and none
is made up; watching changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lab_sessions import run, scripts
from probed import (
    LONE_RANK,
    SESSIONS,
    SMALL,
    armed,
    begun,
    drained,
    observed,
    observed_pair,
    options,
    stale_in,
)

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.lab.config import EngineConfig
from dsv4doctor.lab.engine import Engine
from dsv4doctor.lab.probe_state import LabProbe
from dsv4doctor.lab.probing import probed_engine
from dsv4doctor.tracing.ledger import Outcome
from dsv4doctor.tracing.trace import Trace

CLEAN_ARMS = [
    pytest.param({"index_k": "fp8"}, id="fp8 loads in time"),
    pytest.param({"hicache": False}, id="bf16 without HiCache"),
    pytest.param({"index_k": "fp8", "hicache": False}, id="fp8 without HiCache"),
    pytest.param({"fixes": ("index-gate",)}, id="the gate waits"),
]
# A batch whose index-K the decode engine's store cannot keep up with.
FULL_BATCH: dict[str, Any] = {"prefill_batch_requests": 13, "device_pages": 420, "slack_ms": 1.0}


def test_the_race_is_found_at_the_read_of_exactly_the_pages_that_were_stale(
    tmp_path: Path,
) -> None:
    seen = observed(tmp_path)
    assert seen.trace.by_hop == {protocol.READ: len(seen.truth)}
    assert len(seen.truth) > 50
    assert stale_in(seen.trace, "rank") == seen.truth
    for change in seen.trace.changes:
        assert change.seen.gate == protocol.MISSED
        assert change.seen.distance_ms is not None
        assert change.seen.distance_ms < 0
    corrupted = {answer.request.rid for answer in seen.answers if answer.is_corrupted}
    stale = {request for request, count in seen.trace.stale_requests.items() if count}
    assert corrupted
    assert corrupted <= stale


@pytest.mark.parametrize("settings", CLEAN_ARMS)
def test_a_clean_arm_shows_no_change(tmp_path: Path, settings: dict[str, Any]) -> None:
    seen = observed(tmp_path, **settings)
    assert not seen.truth
    assert not seen.trace.changes
    assert seen.trace.compared[protocol.READ] > 300
    assert not seen.trace.unknown
    if settings.get("hicache", True):
        assert seen.trace.compared[protocol.LOAD] > 500
    # Without its gate fp8 is in time, not ordered; with the gate every read is.
    is_gated = "fixes" in settings or not settings.get("hicache", True)
    assert (seen.trace.unordered_right == 0) == is_gated


@pytest.mark.parametrize(
    ("settings", "hop"),
    [
        pytest.param({}, protocol.READ, id="the race: read stale, and sent so"),
        pytest.param(
            {
                "faults": ("early-send",),
                "scenario": "best-of-n",
                "sessions": 16,
                "device_pages": 80,
            },
            protocol.SEND,
            id="sent before it was loaded",
        ),
        pytest.param(
            {"faults": ("decode-store",), **FULL_BATCH},
            protocol.ARRIVE,
            id="read before it was stored",
        ),
    ],
)
def test_between_two_engines_the_first_wrong_hop_is_named_and_every_stale_read_is_found(
    tmp_path: Path, settings: dict[str, Any], hop: str
) -> None:
    seen = observed_pair(tmp_path, **settings)
    assert list(seen.trace.by_hop) == [hop]
    assert seen.truth["decode"]
    for role, truth in seen.truth.items():
        assert stale_in(seen.trace, role) == truth
    assert all(change.hop == hop for change in seen.trace.changes)


def test_two_healthy_engines_show_no_change(tmp_path: Path) -> None:
    seen = observed_pair(tmp_path, index_k="fp8", faults=("none",), sessions=8)
    assert not seen.trace.changes
    assert seen.trace.compared[protocol.ARRIVE] > 300
    assert not seen.trace.unknown


def test_watching_changes_no_reply(tmp_path: Path) -> None:
    chosen = begun("tool-calls", 8)
    texts = []
    for folder in (None, tmp_path):
        engine = Engine(EngineConfig(**SMALL))  # type: ignore[arg-type]
        probe = probed_engine(engine, options(folder))
        if probe is not None:
            armed(probe)
        texts.append([answer.generation.text for answer in run(engine, chosen)])
    assert texts[0] == texts[1]


def small_probe(capacity: int = 1000, **settings: object) -> tuple[Engine, LabProbe]:
    config = EngineConfig(**{**SMALL, "faults": ("none",), **settings})  # type: ignore[arg-type]
    engine = Engine(config)
    environment = {"DSV4DOCTOR_PROBE_RECORDS": str(capacity)}
    probe = probed_engine(engine, options(Path("/unused"), **environment))
    assert probe is not None
    return engine, probe


def serve(engine: Engine, turns: int = 2, sessions: int = 3) -> None:
    chosen = scripts("tool-calls", 0, SESSIONS)[:sessions]
    from lab_sessions import request_of

    for turn in range(turns):
        engine.serve_round([request_of(script, turn) for script in chosen])


def test_an_unarmed_probe_sees_nothing() -> None:
    engine, probe = small_probe()
    serve(engine, turns=1)
    assert drained(probe).observations == ()
    assert probe.status()["cost"]["bytes"] == 0
    assert probed_engine(engine, options(None)) is None, "and without a folder there is none"


def test_a_ring_that_overflows_says_how_much_was_lost() -> None:
    engine, probe = small_probe(capacity=50)
    armed(probe)
    serve(engine)
    told = drained(probe)
    assert len({each.seq for each in told.observations}) <= 50
    assert told.lost > 0
    assert probe.status()["lost"] == told.lost


def test_what_is_over_the_bound_is_skipped_and_told() -> None:
    engine, probe = small_probe(capacity=100_000)
    assert probe.answer(protocol.arm("test", max_bytes_per_step=20 * 16384))["ok"]
    serve(engine)
    told = drained(probe)
    assert probe.status()["skipped"]["limit"] > 0
    assert {each.reason for each in told.forgotten} == {"limit"}
    trace = Trace()
    trace.add("rank", [*told.observations, *told.forgotten])
    assert not trace.changes, "a page that was rewritten unseen is not held against its old bytes"


@pytest.mark.parametrize("hop", [protocol.BACKUP, protocol.HOST, protocol.READ])
def test_a_flipped_byte_is_seen_at_its_hop_alone(hop: str) -> None:
    engine, probe = small_probe(capacity=100_000)
    armed(probe)
    serve(engine, turns=1)
    assert probe.answer(protocol.perturb(hop, seed=7))["ok"]
    serve(engine)
    status = protocol.parse_status(probe.status())
    assert [each.hop for each in status.perturbed] == [hop]
    trace = Trace()
    trace.add("rank", drained(probe).observations, status.perturbed)
    assert [(flip.hop, flip.outcome) for flip in trace.flips] == [(hop, Outcome.WRONG)]
    assert not trace.changes, "the byte was flipped back"


def test_a_flip_is_refused_where_nothing_is_observed() -> None:
    _, probe = small_probe()
    assert "arm the probe" in probe.answer(protocol.perturb(protocol.READ))["error"]
    armed(probe)
    for hop in (protocol.STORE, protocol.SEND, protocol.HELD, "nowhere"):
        assert not probe.answer(protocol.perturb(hop))["ok"]
    assert not probe.answer(protocol.perturb(protocol.READ, pool="c4"))["ok"]


def test_records_wait_for_those_before_them_and_stay_until_they_are_released() -> None:
    import numpy as np

    probe = armed(LabProbe(LONE_RANK))
    first = probe.launch(protocol.STORE, "index_k", (0,), page=1)
    second = probe.launch(protocol.READ, "index_k", (0,), page=1)
    page = np.zeros(8448, dtype=np.uint8)
    probe.digest(second, 0, page)
    assert probe.answer(protocol.drain())["records"] == []
    probe.digest(first, 0, page)
    told = probe.answer(protocol.drain())
    assert [record["hop"] for record in told["records"]] == [protocol.STORE, protocol.READ]
    assert told["records"][0]["digests"] == told["records"][1]["digests"]
    assert len(probe.answer(protocol.drain())["records"]) == 2, "an answer may have got lost"
    assert probe.answer(protocol.drain(told["next"]))["records"] == []
    assert probe.status()["kept"] == 0


@pytest.mark.parametrize(
    "request_",
    [
        None,
        [],
        {"v": 2, "command": "status"},
        {"v": 1, "command": "shutdown"},
        {"v": 1, "command": "drain", "after": "x"},
        {"v": 1, "command": "arm", "pools": ["weights"]},
        {"v": 1, "command": "arm", "max_bytes_per_step": -1},
    ],
)
def test_a_request_that_is_none_is_refused_in_words(request_: object) -> None:
    _, probe = small_probe()
    answer = probe.answer(request_)
    assert not answer["ok"]
    with pytest.raises(protocol.ProtocolError, match=r"refused: \w+"):
        protocol.parse_answer(answer)


@pytest.mark.parametrize(
    ("fault", "hop"),
    [
        pytest.param("write-fence", protocol.BACKUP, id="backed up while it was written"),
        pytest.param("load-fence", protocol.READ, id="written over after its load"),
    ],
)
def test_the_other_orderings_are_found_at_their_hops(tmp_path: Path, fault: str, hop: str) -> None:
    seen = observed(tmp_path, faults=(fault,))
    assert seen.truth
    assert stale_in(seen.trace, "rank") == seen.truth
    assert list(seen.trace.by_hop) == [hop]
    reads = [change.seen for change in seen.trace.changes if change.seen.hop == protocol.READ]
    assert all(read.ordered is not False for read in reads), "it is no read ahead of its load"
