"""Who is silent, and since when: single streams beside live ones, or all of them (pure).

A stream that has begun is stalled after `stall_s` without a token. One that has not begun may
simply queue, so it is stalled only when it was passed by: a request sent clearly later has its
first token, or nothing was let in and nothing ended for `stall_s` although others flow.
When no stream at all got a token for `stall_s`, the server as a whole is suspected.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dsv4doctor.client.watch import WHOLE_REPLY_FACTOR, Watch

# Requests sent within this of one another may be served in any order.
SAME_TIME_S = 1.0

# With at least this share of the requests answered that were in flight since the first silent one
# was sent, the silence is of single streams.
ANSWERED_SHARE = 0.7


@dataclass(slots=True, kw_only=True)
class Traffic:
    """When things last moved, over all sessions; `time.perf_counter()` seconds.

    `newest_answered` is the latest sending time among requests that got a token, `last_turnover`
    the last first token or end of any request, `begun_at` when requests were last in flight again
    after none was.
    """

    last_token: float
    begun_at: float
    last_turnover: float
    newest_answered: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """`stalled` are to be ended; `unanswered` may still be queueing, which gauges can tell;
    `all_silent` asks for probes."""

    stalled: tuple[Watch, ...] = ()
    unanswered: tuple[Watch, ...] = ()
    all_silent: bool = False


def review(watches: Collection[Watch], traffic: Traffic, *, now: float, stall_s: float) -> Silence:
    """What the silence of `watches` means at `now`."""
    live = [watch for watch in watches if watch.said_done is None and not watch.is_ended]
    if not live:
        return Silence()
    patience_s = stall_s if any(watch.stream for watch in live) else stall_s * WHOLE_REPLY_FACTOR
    if now - max(traffic.last_token, traffic.begun_at) > patience_s:
        return Silence(all_silent=True)
    silent = [watch for watch in live if watch.stream and watch.silent_s(now) > stall_s]
    stalled = [
        watch
        for watch in silent
        if watch.first_token is not None or traffic.newest_answered > watch.sent + SAME_TIME_S
    ]
    unanswered: list[Watch] = []
    if now - traffic.last_turnover > stall_s:
        unanswered = [watch for watch in silent if watch not in stalled]
    return Silence(stalled=tuple(stalled), unanswered=tuple(unanswered))


def is_of_single_streams(stuck: int, answered_since: int) -> bool:
    """True when most requests in flight since the first stuck one was sent did get an answer."""
    return answered_since / (stuck + answered_since) >= ANSWERED_SHARE
