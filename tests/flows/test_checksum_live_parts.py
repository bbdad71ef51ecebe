"""What an observation is called: never clean when blind, untried or interrupted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page_ways import WRONG, observation, way

from dsv4doctor.artifacts.catalog import load_scenario
from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.checksum.probe_sites import Ask, Site
from dsv4doctor.finding import Severity
from dsv4doctor.flows.checksum import Targets
from dsv4doctor.flows.checksum_live_body import body_of
from dsv4doctor.flows.checksum_live_find import begin_watch
from dsv4doctor.flows.checksum_live_findings import findings_of
from dsv4doctor.flows.checksum_live_plan import LivePlan
from dsv4doctor.flows.checksum_live_ranks import RankWatch, Watch
from dsv4doctor.flows.checksum_live_verdict import Seen, exit_code_of, verdict_of
from dsv4doctor.flows.repro_drive import Work
from dsv4doctor.flows.repro_plan import ReproPlan
from dsv4doctor.load.events import Wedge, WedgeAfter
from dsv4doctor.probe_protocol import (
    HOPS,
    READ,
    STORE,
    YES,
    Observation,
    Perturbation,
    Rank,
    Status,
)
from dsv4doctor.progress import Silent
from dsv4doctor.report.checksum_live import build_live_report
from dsv4doctor.tracing.selftest import SelfTest
from dsv4doctor.tracing.trace import Trace


def status(**fields: Any) -> Status:
    base = Status(
        probe="0.1.0",
        engine="sglang",
        version="0.5.22",
        rank=Rank(host="gpu7", pid=11),
        armed=True,
        session="x",
        observes=dict.fromkeys(HOPS, YES),
    )
    return replace(base, **fields)


def watch_of(
    observations: Iterable[Observation] = (), *, is_tested: bool = True, **fields: Any
) -> Watch:
    """One rank that stored a page, read it, and (unless untested) read it with a flipped byte."""
    rank = RankWatch(site=Site("gpu7", []), socket="/x.sock", status=status(**fields))
    flip = Perturbation(hop=READ, seq=3, pool="index_k", layer=2, page=3, host_page=None, offset=1)
    seen = [*way(STORE), observation(READ, 2, ordered=None, transfer=None)]
    seen += [observation(READ, 3, digest=WRONG)] if is_tested else []
    trace = Trace()
    trace.add(rank.key, [*seen, *observations], [flip])
    tests = SelfTest({rank.key: [READ]}, seed=1)
    tests.due(rank.key)
    tests.settle(trace.flips)
    return Watch(ranks=[rank], trace=trace, tests=tests if is_tested else None)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    load = ReproPlan(scenario=load_scenario("tool-calls"), sessions=2, seed=1, output_dir=tmp_path)
    run = RunDirectory.create(tmp_path, NewRun(command="checksum", label="live", argv=()))
    return Work(load, run, Silent())


def seen_of(work: Work, watch: Watch, records: list[dict[str, Any]] | None = None) -> Seen:
    plan = LivePlan(load=work.plan, targets=Targets())
    return Seen.of(plan, work, watch, records or [])


def judged(work: Work, watch: Watch) -> tuple[str, set[str]]:
    seen = seen_of(work, watch)
    verdict = verdict_of(seen)
    return verdict, {finding.rule for finding in findings_of(seen, verdict)}


def test_all_seen_and_tried_is_clean(work: Work) -> None:
    assert judged(work, watch_of()) == ("clean", set())


@pytest.mark.parametrize(
    "watch",
    [
        pytest.param(watch_of(skipped={"limit": 3}), id="pages over the bound"),
        pytest.param(watch_of(skipped={"ring": 1}), id="no room in the ring"),
        pytest.param(watch_of(failures=("the hook of read failed",)), id="a hook that failed"),
        pytest.param(
            watch_of(observes={**dict.fromkeys(HOPS, YES), "load": "disabled: it failed"}),
            id="a hop that was disabled",
        ),
        pytest.param(
            watch_of(
                observes={
                    hop: YES if hop == STORE else "not observable on this version: a linker"
                    for hop in HOPS
                }
            ),
            id="a rank whose pages come in unseen",
        ),
        pytest.param(watch_of(rank=Rank(role="prefill")), id="one side of two"),
    ],
)
def test_what_was_not_seen_forbids_a_clean_verdict(work: Work, watch: Watch) -> None:
    assert judged(work, watch) == ("undecided", {"NOT_SEEN"})


def test_a_rank_that_is_gone_records_that_were_lost_or_never_came_forbid_it_too(
    work: Work,
) -> None:
    for name, value in (("gone", "nobody listens there"), ("lost", 7), ("left", 2)):
        watch = watch_of()
        setattr(watch.ranks[0], name, value)
        assert judged(work, watch) == ("undecided", {"NOT_SEEN"}), name


@pytest.mark.parametrize(
    "watch",
    [
        pytest.param(watch_of(skipped={"capture": 3}), id="a graph's capture serves nobody"),
        pytest.param(
            watch_of(
                observes={
                    **dict.fromkeys(HOPS, YES),
                    "held": "not observable on this version: no such step",
                }
            ),
            id="a hop that the release does not show",
        ),
    ],
)
def test_what_takes_nothing_away_from_it_is_told_and_forbids_nothing(
    work: Work, watch: Watch
) -> None:
    assert judged(work, watch) == ("clean", set())


def test_untried_or_interrupted_it_is_undecided(work: Work) -> None:
    assert judged(work, watch_of(is_tested=False)) == ("undecided", {"NOT_SELF_TESTED"})
    work.interrupted = True
    assert judged(work, watch_of())[0] == "undecided"


def test_a_flip_that_went_by_unnoticed_is_the_detectors_fault_and_is_no_clean_verdict(
    work: Work,
) -> None:
    rank = RankWatch(site=Site("gpu7", []), socket="/x.sock", status=status())
    flip = Perturbation(hop=READ, seq=2, pool="index_k", layer=2, page=3, host_page=None, offset=1)
    trace = Trace()
    trace.add(rank.key, [*way(STORE), observation(READ, 2)], [flip])
    tests = SelfTest({rank.key: [READ]}, seed=1)
    tests.settle(trace.flips)
    watch = Watch(ranks=[rank], trace=trace, tests=tests)
    assert judged(work, watch) == ("undecided", {"SELF_TEST_FAILED"})


def test_a_change_is_told_whatever_else_was_missed(work: Work) -> None:
    stale = observation(READ, 4, digest=WRONG, ordered=False, gate="missed", distance_ms=-0.8)
    seen = seen_of(work, watch_of([stale], skipped={"limit": 1}))
    assert verdict_of(seen) == "changed"
    found = {finding.rule: finding for finding in findings_of(seen, "changed")}
    assert set(found) == {"STALE_READ", "NOT_SEEN"}
    assert "0.8 ms before the load's end" in found["STALE_READ"].evidence[0].what
    assert found["NOT_SEEN"].severity is Severity.INFO
    body = body_of(seen)
    assert body["first_bad_hop"]["hop"] == "read"
    assert body["first_bad_hop"]["distance_ms"] == -0.8
    assert body["stale_reads"] == 1
    assert exit_code_of("changed", tuple(found.values()), Severity.ERROR) == 1


def test_replies_are_joined_only_where_a_name_that_was_sent_came_back(work: Work) -> None:
    record = {"id": "s0-t0", "aborted": False, "failure": None, "corrupted": True}
    stale = observation(READ, 4, digest=WRONG, ordered=False)
    known = seen_of(work, watch_of([stale]), [{**record, "request_id": "r1"}])
    assert known.odds is not None
    assert known.odds.corrupted_with_stale == 1
    unknown = seen_of(work, watch_of([stale]), [{**record, "request_id": "other"}])
    assert unknown.odds is None
    assert any("no request by the id" in each.what for each in unknown.unseen)


def test_a_report_can_be_made_of_every_verdict(work: Work) -> None:
    stale = observation(READ, 4, digest=WRONG, ordered=False, distance_ms=-0.8)
    for watch in (watch_of(), watch_of([stale]), watch_of(is_tested=False)):
        seen = seen_of(work, watch)
        verdict = verdict_of(seen)
        report = build_live_report(verdict, body_of(seen))
        assert report.verdict_sentence.endswith(".")
        assert report.sections


def test_no_rank_at_all_is_unreachable_and_says_who_was_asked(work: Work, tmp_path: Path) -> None:
    plan = LivePlan(load=work.plan, targets=Targets())
    site = Site("localhost", [str(tmp_path)])
    assert site.ask([Ask(request={"v": 1, "command": "status"})]) == []
    seen = seen_of(work, begin_watch(plan, [site], tmp_path))
    verdict = verdict_of(seen)
    (finding,) = findings_of(seen, verdict)
    assert (verdict, finding.rule) == ("unreachable", "UNREACHABLE")
    assert exit_code_of(verdict, (finding,), Severity.ERROR) == 3
    assert finding.evidence[0].what == "localhost: no probe has a socket there"
    assert "probe status" in finding.remedy
    report = build_live_report(verdict, body_of(seen))
    assert "No rank could be observed" in report.verdict_sentence


def test_a_server_that_stood_still_is_not_called_clean(work: Work) -> None:
    work.wedge = Wedge(
        since_unix=0.0,
        silent_s=30.0,
        after=WedgeAfter.ABORT,
        detail="after an abort",
        probes=(),
        stuck=((0, 1),),
        peak_in_flight=4,
    )
    verdict, rules = judged(work, watch_of())
    assert (verdict, rules) == ("undecided", {"NOT_SEEN"})
