"""One piece of work on many hosts at once; each host's failure is its own value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

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


def fan_out(
    hosts: Sequence[str],
    connect: Callable[[str], Transport],
    work: Callable[[Transport], T],
) -> tuple[HostResult[T], ...]:
    """`work` on every host in parallel, results in the hosts' order, unreachable ones included.

    Interrupted, it closes every connection, which ends what runs there, and passes the
    interruption on.
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
        try:
            return tuple(pool.map(on_host, hosts))
        except BaseException:
            for transport in opened:
                transport.close()
            raise
