"""Finding the ranks that can be observed, and arming them."""

from __future__ import annotations

from pathlib import Path

from dsv4doctor import probe_protocol as protocol
from dsv4doctor.checksum.probe_sites import Ask, Site
from dsv4doctor.errors import DoctorError
from dsv4doctor.flows.checksum_live_plan import LivePlan
from dsv4doctor.flows.checksum_live_ranks import Gone, RankWatch, Watch, answer_of
from dsv4doctor.probe_protocol import ProtocolError
from dsv4doctor.tracing.selftest import SelfTest
from dsv4doctor.tracing.trace import Trace


def begin_watch(plan: LivePlan, sites: list[Site], folder: Path) -> Watch:
    """Find every rank and arm it; `ranks` is empty where none of any site can be observed."""
    ranks, unreachable, left_over = _find(sites)
    if not ranks:
        said = unreachable or ["no probe answers there"]
        return Watch([], Trace(awaits_sends=False), None, unreachable=said, left_over=left_over)
    awaits_sends = any(rank.status.rank.role == "prefill" for rank in ranks)
    watch = Watch(
        ranks=ranks,
        trace=Trace(awaits_sends=awaits_sends),
        tests=_self_test(plan, ranks),
        unreachable=unreachable,
        left_over=left_over,
        folder=folder,
    )
    try:
        watch.begin(plan)
    except BaseException:
        watch.end()
        raise
    return watch


def _find(sites: list[Site]) -> tuple[list[RankWatch], list[str], list[str]]:
    """The ranks that answer, what kept others from it, and sockets of processes that ended."""
    ranks: list[RankWatch] = []
    problems: list[str] = []
    left_over: list[str] = []
    for site in sites:
        try:
            answers = site.ask([Ask(request=protocol.status())])
        except DoctorError as problem:
            problems.append(str(problem))
            continue
        if not answers:
            problems.append(f"{site.name}: no probe has a socket there")
        for answered in answers:
            if answered.is_old:
                left_over.append(f"{site.name} {answered.socket}")
                continue
            try:
                status = protocol.parse_status(
                    protocol.parse_answer(answer_of(answered)).get("status")
                )
            except (ProtocolError, Gone) as problem:
                problems.append(f"{site.name} {Path(answered.socket).name}: {problem}")
                continue
            ranks.append(RankWatch(site=site, socket=answered.socket, status=status))
    return ranks, problems, left_over


def _self_test(plan: LivePlan, ranks: list[RankWatch]) -> SelfTest | None:
    """The flips that may be made: asked for, or every rank is a lab's."""
    wanted = plan.perturbs
    if wanted is None:
        wanted = all(rank.status.engine == "lab" for rank in ranks)
    if not wanted:
        return None
    hops = {
        rank.key: [hop for hop in rank.testable if not plan.hops or hop in plan.hops]
        for rank in ranks
    }
    return SelfTest(hops, seed=plan.load.seed)
