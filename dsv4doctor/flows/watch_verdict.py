"""Where a watch stands, and what it says when it ends: code, findings, the `watch` object."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.errors import EXIT_COULD_NOT, EXIT_DONE, EXIT_FINDINGS
from dsv4doctor.finding import Evidence, Finding, Severity
from dsv4doctor.flows.watch_metrics import Counts
from dsv4doctor.flows.watch_plan import CANARY_CONTEXT, Conversations, WatchPlan
from dsv4doctor.flows.watch_rules import Pulse, State, Verdict, Vigil
from dsv4doctor.progress import Progress
from dsv4doctor.stats.rates import sessions_to_prove, upper_bound_clean
from dsv4doctor.units import many

SEVERITY = {
    State.FINE: Severity.INFO,
    State.SLOW: Severity.WARNING,
    State.CORRUPT: Severity.ERROR,
    State.WEDGED: Severity.ERROR,
    State.UNREACHABLE: Severity.ERROR,
}
REMEDY = {
    State.SLOW: "look at the queue gauges beside it; dsv4doctor bench measures it",
    State.CORRUPT: "dsv4doctor diagnose --base-url {base_url}",
    State.WEDGED: "take stacks before restarting: dsv4doctor watch --once --base-url {base_url} "
    "--ssh-host HOST --stack-dump; POST /abort_request with abort_all frees many wedges",
    State.UNREACHABLE: "is the server up? check --base-url, --api-key and --model",
}


@dataclass(slots=True)
class Watching:
    """A watch under way."""

    plan: WatchPlan
    progress: Progress
    fail_on: Severity
    vigil: Vigil
    conversations: Conversations
    counts: Counts = field(default_factory=Counts)
    last: Pulse | None = None
    verdict: Verdict | None = None
    run: RunDirectory | None = None
    faults: list[dict[str, Any]] = field(default_factory=list)
    loaded: int = 0
    began_unix: float = field(default_factory=time.time)


def exit_code_of(state: State, fail_on: Severity) -> int:
    """The contract's code for the state in which the watch ended."""
    if state is State.UNREACHABLE:
        return EXIT_COULD_NOT
    grave = state is not State.FINE and SEVERITY[state].rank >= fail_on.rank
    return EXIT_FINDINGS if grave else EXIT_DONE


def findings_of(work: Watching) -> tuple[Finding, ...]:
    """The fault that the watch ended with, if it was one."""
    verdict = work.verdict
    if verdict is None or verdict.state is State.FINE:
        return ()
    remedy = REMEDY[verdict.state].replace("{base_url}", work.plan.endpoint.base_url)
    return (
        Finding(
            rule=verdict.state.value.upper(),
            severity=SEVERITY[verdict.state],
            title=f"{verdict.state} since {_utc(verdict.since_unix)}",
            evidence=(Evidence(where="watch", what=verdict.why),),
            remedy=remedy,
        ),
    )


def body_of(work: Watching, dumps: list[dict[str, object]]) -> dict[str, Any]:
    """The `watch` object, as JSON types."""
    verdict, pulse = work.verdict, work.last
    return {
        "target": {"base_url": work.plan.endpoint.base_url},
        "since": None if verdict is None else _utc(verdict.since_unix),
        "since_unix": None if verdict is None else verdict.since_unix,
        "why": "" if verdict is None else verdict.why,
        "last_answer_unix": None if verdict is None else verdict.last_good_unix,
        "interval_s": work.plan.interval_s,
        "pulses": sum(work.counts.pulses.values()),
        "pulses_by_state": dict(work.counts.pulses),
        "health_status": None if pulse is None else pulse.health_status,
        "ttft_ms": None if pulse is None else pulse.ttft_ms,
        "slow_above_ms": work.vigil.slow_above_ms,
        "gauges": {} if pulse is None else dict(pulse.gauges),
        "canaries": _canaries(work),
        "faults": work.faults[-50:],
        "stacks": dumps,
        "run_dir": str(work.run.path) if work.run is not None else None,
        "seed": work.plan.seed,
    }


def _canaries(work: Watching) -> dict[str, Any]:
    """How many were sent, and what so many can see: the promise of the watch, in numbers."""
    plan, sent = work.plan, work.vigil.canaries
    needed = sessions_to_prove(plan.rate)
    seconds = needed / max(1, plan.canaries) * plan.interval_s
    pace = f", at this pace within {seconds / 60:.1f} minutes of load" if seconds else " under load"
    return {
        "sent": sent,
        "corrupted": work.vigil.corrupted,
        "context_tokens": list(CANARY_CONTEXT),
        "assumed_rate": plan.rate,
        "needed_for_95_percent": needed,
        "needed_seconds": seconds or None,
        "would_have_seen_rate": upper_bound_clean(sent) if not work.vigil.corrupted else None,
        "pulses_beside_load": work.loaded,
        "said": f"corruption of {100 * plan.rate:g} % of replies is met by "
        f"{many(needed, 'canary', 'canaries')} with 95 % probability{pace}; an idle server "
        "shows none",
    }


def _utc(unix: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix))
