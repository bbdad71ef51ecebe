"""Who counts as silent: the rules alone, over hand-made streams."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dsv4doctor.load.silence import Traffic, is_of_single_streams, review


@dataclass
class Stream:
    """A stand-in with a watch's times, set freely; see `client.watch.Watch`."""

    name: str
    sent: float = 0.0
    first_token: float | None = None
    last_token: float | None = None
    stream: bool = True
    said_done: float | None = None
    is_ended: bool = False

    def silent_s(self, now: float) -> float:
        return now - (self.last_token or self.sent)


def traffic(**times: float) -> Traffic:
    return Traffic(**{"last_token": 99.9, "begun_at": 0.0, "last_turnover": 99.0, **times})


LIVE = Stream("live", 0.0, 1.0, 99.9)
CASES = {
    "nothing in flight": ([], traffic(last_token=1.0), [], [], False),
    "all flow": ([LIVE], traffic(), [], [], False),
    "one went silent": ([LIVE, Stream("a", 0.0, 1.0, 60.0)], traffic(), ["a"], [], False),
    "one is slow but in time": ([LIVE, Stream("a", 0.0, 1.0, 75.0)], traffic(), [], [], False),
    "queueing while others are let in": ([LIVE, Stream("a", 50.0)], traffic(), [], [], False),
    "passed by a later one":
        ([LIVE, Stream("a", 50.0)], traffic(newest_answered=52.0), ["a"], [], False),
    "not passed by one of the same time":
        ([LIVE, Stream("a", 50.0)], traffic(newest_answered=50.5), [], [], False),
    "nothing let in, nothing ended":
        ([LIVE, Stream("a", 50.0)], traffic(last_turnover=60.0), [], ["a"], False),
    "nothing from anybody": ([Stream("a", 0.0, 1.0, 69.0), Stream("b", 68.0)],
                             traffic(last_token=69.0), [], [], True),
    "nobody ever answered": ([Stream("a", 60.0)],
                             traffic(last_token=0.0, begun_at=60.0, last_turnover=0.0),
                             [], [], True),
    "just begun after a long pause": ([Stream("a", 99.0)],
                                      traffic(last_token=10.0, begun_at=99.0), [], [], False),
    "another process's streams flow": ([Stream("a", 0.0, 1.0, 69.0)], traffic(), ["a"], [], False),
    "whole replies take longer": ([Stream("a", 0.0, stream=False)],
                                  traffic(last_token=0.0, last_turnover=0.0), [], [], False),
    "whole replies not for ever": ([Stream("a", -30.0, stream=False)],
                                   traffic(last_token=-30.0, begun_at=-30.0), [], [], True),
    "said done already": ([LIVE, Stream("a", 0.0, 1.0, 2.0, said_done=2.0)], traffic(),
                          [], [], False),
}  # fmt: skip


@pytest.mark.parametrize(
    ("streams", "moved", "stalled", "unanswered", "all_silent"), CASES.values(), ids=CASES.keys()
)
def test_rules(streams, moved, stalled, unanswered, all_silent) -> None:
    found = review(streams, moved, now=100.0, stall_s=30.0)
    assert [stream.name for stream in found.stalled] == stalled
    assert [stream.name for stream in found.unanswered] == unanswered
    assert found.all_silent == all_silent


@pytest.mark.parametrize(
    ("stuck", "answered", "single"),
    [(2, 14, True), (60, 60, False), (1, 0, False), (16, 30, False)],
)
def test_single_streams_are_a_minority(stuck: int, answered: int, single: bool) -> None:
    assert is_of_single_streams(stuck, answered) == single
