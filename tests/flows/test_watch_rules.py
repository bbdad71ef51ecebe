"""What pulses mean, in order: states, since when, and what one silence does not yet say."""

from __future__ import annotations

import pytest

from dsv4doctor.flows.watch_metrics import Counts, render
from dsv4doctor.flows.watch_rules import Canary, Pulse, State, Vigil
from dsv4doctor.flows.watch_stacks import parse_dumps


def pulse(at: float, **changes: object) -> Pulse:
    """An ordinary pulse at `at`."""
    usual: dict[str, object] = {
        "at_unix": at, "connected": True, "health_status": 200, "answered": True,
        "ttft_ms": 100.0, "seconds": 0.4, "canaries": (Canary(answered=True, label="clean"),),
    }  # fmt: skip
    return Pulse(**{**usual, **changes})  # type: ignore[arg-type]


def silent(at: float, **changes: object) -> Pulse:
    return pulse(at, **{"answered": False, "ttft_ms": None, "problem": "no end in 5 s", **changes})


WRONG = Canary(answered=True, corrupted=True, label="dsml_leak", evidence="<|DSML|", afresh=True)


def test_a_second_silence_in_a_row_is_a_wedge_since_the_first() -> None:
    vigil = Vigil()
    assert vigil.take(pulse(10)).state is State.FINE
    first = vigil.take(silent(20))
    assert first.state is State.SLOW
    assert vigil.is_waiting
    second = vigil.take(silent(30))
    assert (second.state, second.since_unix, second.last_good_unix) == (State.WEDGED, 20, 10)
    assert "/health says 200" in second.why
    assert not vigil.is_waiting
    assert vigil.take(silent(40)).since_unix == 20
    assert vigil.take(pulse(50)).state is State.FINE


def test_a_silence_while_the_server_generates_is_only_slow() -> None:
    vigil = Vigil()
    for at in range(5):
        verdict = vigil.take(silent(at, progressed=True))
        assert verdict.state is State.SLOW
        assert vigil.is_waiting == (at == 0), "one silence alone ends no watch"
    assert "for others" in verdict.why


def test_a_canary_that_never_ends_is_silence_too() -> None:
    vigil = Vigil()
    hung = (Canary(answered=False, evidence="no end"),)
    assert vigil.take(pulse(1, canaries=hung, problem="canary: no end")).state is State.SLOW
    assert vigil.take(pulse(2, canaries=hung, problem="canary: no end")).state is State.WEDGED


def test_a_wrong_canary_is_corruption_whatever_else_is_so() -> None:
    vigil = Vigil()
    verdict = vigil.take(silent(1, canaries=(WRONG, Canary(answered=True))))
    assert verdict.state is State.CORRUPT
    assert "dsml_leak" in verdict.why
    assert "computed afresh it is right" in verdict.why
    assert (vigil.canaries, vigil.corrupted) == (2, 1)


def test_slow_is_what_is_not_usual() -> None:
    vigil = Vigil()
    assert vigil.take(pulse(0, ttft_ms=9000.0)).state is State.FINE, "nothing is usual yet"
    for at in range(1, 7):
        vigil.take(pulse(at, ttft_ms=200.0))
    assert vigil.slow_above_ms == pytest.approx(1000.0)
    assert vigil.take(pulse(8, ttft_ms=900.0)).state is State.FINE
    assert vigil.take(pulse(9, ttft_ms=1500.0)).state is State.SLOW
    assert Vigil(slow_ttft_ms=50).take(pulse(0)).state is State.SLOW


def test_no_connection_is_unreachable_and_never_a_wedge() -> None:
    vigil = Vigil()
    for at in range(3):
        assert vigil.take(silent(at, connected=False)).state is State.UNREACHABLE


def test_metrics_say_one_state_and_what_the_server_says() -> None:
    vigil, counts = Vigil(), Counts()
    counts.pulses["fine"] += 1
    taken = pulse(10, gauges={"sglang:num_queue_reqs": 3.0})
    text = render(counts, taken, vigil.take(taken))
    assert 'dsv4doctor_watch_state{state="fine"} 1' in text
    assert text.count(" 1\n") >= 1
    assert sum("watch_state{" in line and line.endswith(" 1") for line in text.splitlines()) == 1
    assert "dsv4doctor_watch_server_num_queue_reqs 3" in text
    assert "dsv4doctor_watch_time_to_first_token_seconds 0.1" in text


DUMP = """PROCESS {round} 41 sglang::scheduler_TP0
METHOD gdb
Thread 1 (LWP 41)
#0  0x00007f{address} in poll () from libc
END {round} 41
"""


def test_two_dumps_alike_stand_still_and_others_move() -> None:
    first = DUMP.format(round=1, address="aa11")
    (still,) = parse_dumps("h", first + DUMP.format(round=2, address="bb22"))
    assert (still.pid, still.method, still.stands_still) == (41, "gdb", True)
    assert still.process == "sglang::scheduler_TP0"
    moved = DUMP.format(round=2, address="aa11").replace("poll", "read")
    assert parse_dumps("h", first + moved)[0].stands_still is False
    assert parse_dumps("h", first)[0].stands_still is None
    assert parse_dumps("h", "NONE\n") == ()
