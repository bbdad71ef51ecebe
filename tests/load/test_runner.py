"""Whole runs against the canned server: order, failures, silence, wedge, abort, stop, processes."""

from __future__ import annotations

import itertools
import json
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator

import pytest
from builders_load import script

from dsv4doctor.errors import DoctorError
from dsv4doctor.label import Label
from dsv4doctor.load.runner import (
    RunEnd,
    RunEnded,
    RunEvent,
    RunOptions,
    SessionEnded,
    Tick,
    TurnDone,
    Wedge,
    WedgeAfter,
    run_sessions,
)
from dsv4doctor.scenario import History
from dsv4doctor.session import SessionScript
from dsv4doctor.target import parse_endpoint

OPTIONS = {"model": "m", "processes": 1, "stall_timeout_s": 1.0, "probe_timeout_s": 0.5}


def drive(
    url: str, scripts: Iterable[SessionScript], done=frozenset(), **options
) -> list[RunEvent]:
    with run_sessions(
        parse_endpoint(url), scripts, RunOptions(**{**OPTIONS, **options}), done=done
    ) as run:
        events = list(run)
    assert isinstance(events[-1], RunEnded)
    assert sum(isinstance(event, RunEnded) for event in events) == 1
    return events


def turns_of(events: list[RunEvent]) -> list[TurnDone]:
    return [event for event in events if isinstance(event, TurnDone)]


def pairs_of(events: list[RunEvent]) -> list[tuple[int, int]]:
    return sorted((turn.session, turn.turn.turn) for turn in turns_of(events))


def seen(canned: str, case: str) -> list[dict]:
    with urllib.request.urlopen(f"{canned}/{case}/seen") as answer:
        return json.load(answer)


@pytest.mark.parametrize("processes", [1, 2])
def test_every_turn_of_every_session_once_and_in_order(canned: str, processes: int) -> None:
    case = f"good.order{processes}"
    scripts = [script(session, turns=3) for session in range(12)]
    events = drive(f"{canned}/{case}", scripts, processes=processes, run_prefix="r7")
    assert pairs_of(events) == [(s, t) for s in range(12) for t in range(3)]
    assert events[-1].end is RunEnd.COMPLETE
    assert (events[-1].turns_done, events[-1].tokens) == (36, 108)
    assert events[-1].processes == processes
    for session in range(12):
        mine = [turn for turn in turns_of(events) if turn.session == session]
        assert [turn.turn.turn for turn in mine] == [0, 1, 2]
        assert [turn.request_id for turn in mine] == [
            f"r7-s{session:04d}-t{t:02d}" for t in range(3)
        ]
        assert [turn.messages for turn in mine] == [1, 3, 5]
    received = {call["headers"]["x-request-id"]: call["body"] for call in seen(canned, case)}
    assert len(received) == 36
    for session in range(12):
        for turn in range(3):
            body = received[f"r7-s{session:04d}-t{turn:02d}"]
            assert body["messages"] == scripts[session].messages(turn)


def test_turns_done_before_are_not_sent_again(canned: str) -> None:
    done = {(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 2)}
    case = "good.resume"
    events = drive(f"{canned}/{case}", (script(s, turns=3) for s in range(4)), done=done)
    assert set(pairs_of(events)) == {(s, t) for s in range(4) for t in range(3)} - done
    last = next(turn for turn in turns_of(events) if turn.session == 0)
    assert last.messages == 5
    assert {event.session for event in events if isinstance(event, SessionEnded)} == {0, 2, 3}


def test_concurrency_is_bounded_and_scripts_are_taken_as_needed(canned: str) -> None:
    endless = (script(session) for session in itertools.count())
    events = []
    with run_sessions(
        parse_endpoint(f"{canned}/slow"), endless, RunOptions(**OPTIONS, max_concurrency=20)
    ) as run:
        for event in run:
            events.append(event)
            if len(turns_of(events)) == 40:
                run.stop()
    assert events[-1].peak_in_flight == 20
    # Taken: those that ended and those that took their places.
    assert next(endless).session <= len(turns_of(events)) + 20


def test_a_failed_turn_does_not_end_a_scripted_session(canned: str) -> None:
    events = drive(f"{canned}/flaky.goes_on", [script(0, turns=3)])
    failures = [turn.reply.failure for turn in turns_of(events)]
    assert [failure and failure.http_status for failure in failures] == [503, None, None]


def test_a_failed_turn_ends_a_live_session(canned: str) -> None:
    events = drive(f"{canned}/flaky.live", [script(0, turns=3, history=History.LIVE)])
    assert pairs_of(events) == [(0, 0)]
    ended = next(event for event in events if isinstance(event, SessionEnded))
    assert (ended.turns_left, ended.reason) == (2, "a turn failed, and the history is live")


def test_live_history_sends_back_what_was_said(canned: str) -> None:
    case = "good.live"
    drive(f"{canned}/{case}", [script(0, turns=2, history=History.LIVE)])
    messages = seen(canned, case)[-1]["body"]["messages"]
    assert messages[1] == {"role": "assistant", "content": "Hello wörld 😀"}


def test_retries_only_when_asked_and_always_told(canned: str) -> None:
    events = drive(f"{canned}/flaky.retry", [script(0)], retries=1)
    (turn,) = turns_of(events)
    assert turn.reply.failure is None
    assert [failure.http_status for failure in turn.earlier_failures] == [503]


def test_a_closed_kept_connection_is_no_failure_but_told(canned: str) -> None:
    events = drive(f"{canned}/stale", [script(0, turns=3)])
    assert [turn.reply.failure for turn in turns_of(events)] == [None, None, None]
    assert [turn.resends for turn in turns_of(events)] == [0, 1, 0]
    assert events[-1].resends == 1


def test_a_server_that_never_answers_is_a_failure_each_time(canned: str) -> None:
    events = drive(f"{canned}/close_unanswered", [script(0, turns=3)])
    kinds = [turn.reply.failure.kind for turn in turns_of(events)]
    assert kinds == [Label.CONNECTION_ERROR] * 3


PEERS = {
    "bad_arguments": '{"a": -1,,}',
    "leaked_dsml": None,
    "call_only": '{"a": -1}',
}


@pytest.mark.parametrize(("case", "arguments"), PEERS.items(), ids=PEERS.keys())
def test_peers_bad_and_odd_replies_are_replies(canned, case, arguments) -> None:
    """Sixteen requests each; whether a reply is corrupt is for the detectors, never a failure."""
    events = drive(f"{canned}/{case}", (script(session) for session in range(16)))
    replies = [turn.reply for turn in turns_of(events)]
    assert [reply.failure for reply in replies] == [None] * 16
    for reply in replies:
        if arguments is None:
            assert "｜DSML｜" in reply.response.content
        else:
            assert reply.response.tool_calls[0].arguments == arguments
            assert reply.timing.ttft_ms > 0


def test_peers_cut_streams_are_all_found(canned: str) -> None:
    events = drive(f"{canned}/cut", (script(session) for session in range(16)))
    kinds = [turn.reply.failure.kind for turn in turns_of(events)]
    assert kinds == [Label.PROTOCOL_ERROR] * 16


def test_peers_two_silent_streams_are_reported_and_hold_nothing_up(canned: str) -> None:
    start = time.monotonic()
    events = drive(f"{canned}/silent_two", (script(session) for session in range(16)))
    assert time.monotonic() - start < 10  # nothing waits for a time-out of minutes
    failures = [turn.reply.failure for turn in turns_of(events) if turn.reply.failure]
    assert [failure.kind for failure in failures] == [Label.STALLED] * 2
    assert len(turns_of(events)) == 16
    assert not [event for event in events if isinstance(event, Wedge)]
    assert events[-1].end is RunEnd.COMPLETE


def test_two_silent_streams_among_live_ones_end_within_the_stall_time(canned: str) -> None:
    """The others go on sending turns all the while."""
    reported: list[float] = []
    start = time.monotonic()
    with run_sessions(
        parse_endpoint(f"{canned}/silent_two.live"),
        (script(session, turns=4) for session in range(16)),
        RunOptions(**OPTIONS),
    ) as run:
        for event in run:
            if isinstance(event, TurnDone) and event.reply.failure is not None:
                assert event.reply.failure.kind is Label.STALLED
                reported.append(time.monotonic() - start)
    assert len(reported) == 2
    assert max(reported) < 1.0 + 2.0  # the limit, and a turn's time until it is passed by


@pytest.mark.parametrize("case", ["unlucky", "unlucky_queued"])
def test_a_request_that_never_begins_is_stalled_unless_the_server_has_a_queue(canned, case) -> None:
    events = drive(f"{canned}/{case}", (script(s) for s in range(4)), stall_timeout_s=0.5)
    ended = [(turn.session, turn.reply.failure) for turn in turns_of(events)]
    failures = [failure.kind for _, failure in ended if failure]
    assert failures == [Label.STALLED]
    # Given up while the others flow, or only when they are done and the queue explains nothing.
    assert (ended[-1][1] is not None) == (case == "unlucky_queued")
    assert events[-1].end is RunEnd.COMPLETE


@pytest.mark.parametrize("processes", [1, 2])
def test_a_wedge_is_proved_and_named_after_the_abort(canned: str, processes: int) -> None:
    case = f"wedging.abort{processes}"
    scripts = [script(s, turns=6, abort_at={1: 4} if s == 3 else None) for s in range(8)]
    before = time.time()
    events = drive(f"{canned}/{case}", scripts, processes=processes)
    (wedge,) = [event for event in events if isinstance(event, Wedge)]
    assert wedge.after is WedgeAfter.ABORT
    assert (wedge.abort_session, wedge.abort_turn) == (3, 1)
    assert before < wedge.since_unix < time.time() - 1.0
    answers = {probe.name: probe.answered for probe in wedge.probes}
    assert answers == {"/health": True, "/health_generate": True, "generation": False}
    assert wedge.gauges["sglang:num_queue_reqs"] == 3.0
    assert wedge.stuck
    stalled = [turn for turn in turns_of(events) if turn.reply.failure is not None]
    assert {turn.reply.failure.kind for turn in stalled} == {Label.STALLED}
    assert {(turn.session, turn.turn.turn) for turn in stalled} >= set(wedge.stuck)
    assert events[-1].end is RunEnd.WEDGED
    aborted = [turn for turn in turns_of(events) if turn.reply.aborted]
    assert [(turn.session, turn.turn.turn, turn.reply.failure) for turn in aborted] == [
        (3, 1, None)
    ]


def test_a_server_that_never_gives_a_token_is_wedged_under_load(canned: str) -> None:
    events = drive(f"{canned}/mute", [script(session) for session in range(4)])
    (wedge,) = [event for event in events if isinstance(event, Wedge)]
    assert wedge.after is WedgeAfter.LOAD_PEAK
    assert wedge.peak_in_flight == 4
    assert wedge.stuck == ((0, 0), (1, 0), (2, 0), (3, 0))


def test_a_long_prefill_on_a_live_server_is_no_wedge(canned: str) -> None:
    scripts = [script(session) for session in range(3)]
    events = drive(f"{canned}/slow_prefill", scripts, stall_timeout_s=0.6)
    assert [turn.reply.failure for turn in turns_of(events)] == [None] * 3
    assert events[-1].end is RunEnd.COMPLETE


def test_a_server_that_answers_only_short_prompts_is_wedged_in_the_end(canned: str) -> None:
    scripts = [script(session) for session in range(3)]
    events = drive(f"{canned}/short_only", scripts, stall_timeout_s=0.4)
    (wedge,) = [event for event in events if isinstance(event, Wedge)]
    assert all(probe.answered for probe in wedge.probes)
    assert wedge.silent_s > 3 * 0.4


@pytest.mark.parametrize("processes", [1, 2])
def test_stopping_drops_what_is_in_flight(canned: str, processes: int) -> None:
    events = []
    with run_sessions(
        parse_endpoint(f"{canned}/slow"),
        (script(session, turns=50) for session in range(8)),
        RunOptions(**{**OPTIONS, "processes": processes}),
    ) as run:
        for event in run:
            events.append(event)
            if len(turns_of(events)) == 8:
                run.stop()
    assert isinstance(events[-1], RunEnded)
    assert events[-1].end is RunEnd.STOPPED
    assert len(turns_of(events)) < 8 * 4
    assert all(turn.reply.failure is None for turn in turns_of(events))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_drained_run_cuts_nobody_off(canned: str, processes: int) -> None:
    """What is in flight is answered, and nothing is sent after that."""
    scripts = [script(session, turns=50) for session in range(4)]
    options = RunOptions(**{**OPTIONS, "processes": processes})
    with run_sessions(parse_endpoint(f"{canned}/slow"), scripts, options) as run:
        events = []
        for event in run:
            events.append(event)
            if isinstance(event, TurnDone) and len(turns_of(events)) == 6:
                run.drain("it is enough")
    assert events[-1].end is RunEnd.DRAINED
    done = turns_of(events)
    assert 6 <= len(done) <= 6 + 2 * 4
    assert all(turn.reply.failure is None and not turn.reply.aborted for turn in done)
    ends = [event for event in events if isinstance(event, SessionEnded)]
    assert sorted(end.session for end in ends) == [0, 1, 2, 3]
    assert all(end.turns_left and end.reason == "it is enough" for end in ends)


def test_leaving_the_block_early_ends_the_run(canned: str) -> None:
    with run_sessions(
        parse_endpoint(f"{canned}/slow"), [script(0, turns=50)], RunOptions(**OPTIONS)
    ) as run:
        next(run)
    assert "load driver" not in {thread.name for thread in threading.enumerate()}


def test_a_script_that_cannot_be_built_is_the_callers_error(canned: str) -> None:
    def scripts() -> Iterator[SessionScript]:
        yield script(0)
        raise DoctorError("no such scenario")

    for processes in (1, 2):
        with pytest.raises(DoctorError, match="no such scenario"):
            drive(f"{canned}/good", scripts(), processes=processes)


def test_lag_is_measured_and_ticks_are_rare(canned: str) -> None:
    events = drive(f"{canned}/slow", [script(session) for session in range(4)])
    ticks = [event for event in events if isinstance(event, Tick)]
    assert 1 <= len(ticks) <= 5 * events[-1].elapsed_s + 1
    assert max(tick.tokens_per_s for tick in ticks) > 0
    lag = events[-1].client_lag
    assert lag.n > 10
    assert 0 <= lag.p50_ms <= lag.p99_ms <= lag.max_ms


def test_whole_replies_are_driven_too(canned: str) -> None:
    events = drive(f"{canned}/whole", [script(0, stream=False)])
    (turn,) = turns_of(events)
    assert turn.reply.response.tool_calls[0].name == "look"
    assert turn.reply.timing.ttft_ms is None
