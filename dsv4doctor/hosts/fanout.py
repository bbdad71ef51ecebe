"""One piece of work on many hosts at once; each host's failure is its own value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dsv4doctor.errors import DoctorError
from dsv4doctor.hosts.transport import Transport

T = TypeVar("T")
MOST_AT_ONCE = 64  # threads that mostly wait; more hosts than that take turns


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResult(Generic[T]):
    """What one host gave: an answer, or the problem and what to do about it."""

    host: str
    answer: T | None = None
    problem: str | None = None
    hint: str = ""


class FanOutInterrupted(KeyboardInterrupt):
    """Ctrl-C while hosts were at work; `results` has an answer of each that had ended."""

    def __init__(self, results: tuple[HostResult[Any], ...]) -> None:
        super().__init__()
        self.results = results


def fan_out(
    hosts: Sequence[str],
    connect: Callable[[str], Transport],
    work: Callable[[Transport], T],
) -> tuple[HostResult[T], ...]:
    """`work` on every host in parallel, results in the hosts' order, unreachable ones included.

    Interrupted, it closes every connection, which ends what runs there.

    Raises:
        FanOutInterrupted: with what had ended; it is a KeyboardInterrupt.
    """
    opened: list[Transport] = []

    def on_host(host: str) -> HostResult[T]:
        try:
            transport = connect(host)
            opened.append(transport)
            try:
                return HostResult(host=host, answer=work(transport))
            finally:
                transport.close()
        except DoctorError as error:
            return HostResult(host=host, problem=str(error), hint=error.hint)

    if not hosts:
        return ()
    with ThreadPoolExecutor(max_workers=min(len(hosts), MOST_AT_ONCE)) as pool:
        futures = [pool.submit(on_host, host) for host in hosts]
        try:
            return tuple(future.result() for future in futures)
        except BaseException as stop:
            ended = [_so_far(host, future) for host, future in zip(hosts, futures, strict=True)]
            for future in futures:
                future.cancel()
            for transport in opened:
                transport.close()
            if isinstance(stop, KeyboardInterrupt):
                raise FanOutInterrupted(tuple(ended)) from stop
            raise


def _so_far(host: str, future: Future[HostResult[T]]) -> HostResult[T]:
    if future.done() and future.exception() is None:
        return future.result()
    return HostResult(host=host, problem=f"{host}: interrupted before it had ended")
