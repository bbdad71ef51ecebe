"""What an observation did not see, and whether it is blind for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsv4doctor.flows.checksum_live_ranks import RankWatch, Watch
from dsv4doctor.flows.repro_drive import Work
from dsv4doctor.probe_protocol import ARRIVE, DISABLED, HELD, READ, REUSED, YES

# Reasons for which a page is rightly left out: nothing is served from a graph's capture, and what
# a host page held is of no interest once it is given to another.
_HARMLESS = frozenset({"capture", REUSED})
_WORDS = {
    "limit": "over the bound of --max-bytes or --max-share",
    "ring": "no room in the probe's ring",
    "failure": "a hook failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen:
    """Something that was not observed. With `blinds`, nothing may be called clean."""

    where: str
    what: str
    blinds: bool = True


def unseen_of(watch: Watch, *, has_records: bool, is_joined: bool) -> tuple[Unseen, ...]:
    """Everything that was not seen."""
    found = [Unseen(where="ranks", what=problem) for problem in watch.unreachable]
    found += [Unseen(where="ranks", what=problem) for problem in watch.problems]
    found += [
        Unseen(where=socket, what="left over from a process that has ended", blinds=False)
        for socket in watch.left_over
    ]
    for rank in watch.ranks:
        found += _of_rank(rank)
    found += _of_trace(watch)
    if has_records and not is_joined and watch.trace.read_requests:
        found.append(
            Unseen(
                where="joined",
                what="the ranks know no request by the id that was sent: replies are not joined",
                blinds=False,
            )
        )
    return tuple(found)


def _of_rank(rank: RankWatch) -> Iterator[Unseen]:
    status = rank.status
    if rank.gone is not None:
        yield Unseen(where=rank.name, what=f"stopped answering: {rank.gone}")
    if rank.lost:
        yield Unseen(where=rank.name, what=f"{rank.lost:,} records were overwritten unread")
    if rank.left:
        yield Unseen(where=rank.name, what=f"{rank.left:,} records never came back")
    for reason, pages in status.skipped.items():
        if pages and reason not in _HARMLESS:
            what = f"{pages:,} pages not digested: {_WORDS.get(reason, reason)}"
            yield Unseen(where=rank.name, what=what)
    for failure in status.failures:
        yield Unseen(where=rank.name, what=failure)
    if all(status.observes.get(hop) != YES for hop in (READ, HELD)):
        yield Unseen(where=rank.name, what="none of its reads can be observed")
    for hop, said in status.observes.items():
        if said != YES:
            yield Unseen(where=f"{rank.name} {hop}", what=said, blinds=said.startswith(DISABLED))


def _of_trace(watch: Watch) -> Iterator[Unseen]:
    trace = watch.trace
    for reason, pages in trace.forgotten.items():
        if reason not in _HARMLESS:
            what = f"{pages:,} pages or records missed: {_WORDS.get(reason, reason)}"
            yield Unseen(where="pages", what=what)
    roles = {rank.status.rank.role for rank in watch.ranks}
    if len(roles & {"prefill", "decode"}) == 1:
        one = next(iter(roles & {"prefill", "decode"}))
        yield Unseen(where="ranks", what=f"only {one} ranks were observed, not the other side")
    if not trace.compared[READ] and not trace.compared[HELD]:
        yield Unseen(where="reads", what="no read of a known page was observed")
    if {"prefill", "decode"} <= roles and not trace.compared[ARRIVE]:
        yield Unseen(where="transfers", what="no page that arrived was known from its send")


def unserved_of(work: Work) -> Iterator[Unseen]:
    """What of the load was not served, so that nothing of it could be seen."""
    if work.wedge is not None:
        yield Unseen(where="load", what=f"the server stood still: {work.wedge.detail}")
    if work.unreachable is not None:
        yield Unseen(where="load", what=work.unreachable)
    if work.tally.failures:
        what = f"{work.tally.failures:,} requests ended without a reply"
        yield Unseen(where="load", what=what, blinds=not work.tally.responses)
