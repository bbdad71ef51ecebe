"""Arrivals: the offsets, and that a driver keeps to them."""

from __future__ import annotations

import itertools
import statistics

from builders_load import script

from dsv4doctor.load.arrivals import Arrival, offsets_s, ramp_s
from dsv4doctor.load.runner import RunOptions, TurnDone, run_sessions
from dsv4doctor.target import parse_endpoint


def test_a_fixed_pace() -> None:
    assert offsets_s(4, rate=2.0, arrival=Arrival.FIXED, seed=(1,)) == (0.0, 0.5, 1.0, 1.5)


def test_poisson_gaps_are_exponential_and_replayable() -> None:
    offsets = offsets_s(20_001, rate=4.0, arrival=Arrival.POISSON, seed=(42, 0))
    assert offsets == offsets_s(20_001, rate=4.0, arrival=Arrival.POISSON, seed=(42, 0))
    assert offsets != offsets_s(20_001, rate=4.0, arrival=Arrival.POISSON, seed=(42, 1))
    assert offsets[0] == 0.0
    gaps = [late - early for early, late in itertools.pairwise(offsets)]
    assert min(gaps) >= 0
    # Mean and standard deviation of an exponential agree: 1 / rate, within 5 standard errors.
    assert abs(statistics.fmean(gaps) - 0.25) < 5 * 0.25 / 20_000**0.5
    assert abs(statistics.stdev(gaps) - 0.25) < 0.02


def test_a_ramp_starts_its_streams_evenly() -> None:
    assert ramp_s(4, 2.0) == (0.0, 0.5, 1.0, 1.5)


def test_the_driver_holds_requests_back_until_they_arrive(canned: str) -> None:
    arrivals = {session: 0.1 * session for session in range(6)}
    options = RunOptions(model="m", processes=1, arrivals_s=arrivals)
    scripts = [script(session) for session in range(7)]  # the last does not wait for anything
    with run_sessions(parse_endpoint(f"{canned}/good"), scripts, options) as run:
        turns = [event for event in run if isinstance(event, TurnDone)]
    sent = {turn.session: turn.reply.timing.sent_unix for turn in turns}
    assert sorted(sent) == list(range(7))
    for session in range(1, 6):
        # A late machine sends late, never early (the two clocks may differ by a little).
        assert sent[session] - sent[0] >= 0.1 * session - 0.05
    assert all(turn.reply.timing.queue_ms >= 0 for turn in turns)


def test_waiting_for_a_free_slot_counts_from_the_arrival(canned: str) -> None:
    """Two requests arrive at once and one may be in flight: the second has queued as long as the
    first took, about 0.8 s by the server's pauses."""
    options = RunOptions(model="m", processes=1, max_concurrency=1, arrivals_s={0: 0.0, 1: 0.0})
    scripts = [script(session) for session in range(2)]
    with run_sessions(parse_endpoint(f"{canned}/slow"), scripts, options) as run:
        turns = {event.session: event for event in run if isinstance(event, TurnDone)}
    assert turns[0].reply.timing.queue_ms < turns[0].reply.timing.e2e_latency_ms
    assert turns[1].reply.timing.queue_ms >= 700
