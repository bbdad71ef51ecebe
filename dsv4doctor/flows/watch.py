"""`watch`: a cheap sentinel: a pulse at an interval, a verdict after each, an end at a fault.

`/health` answers while no request passes; so every pulse is a real generation. Corruption shows
only where the server works hard, so the canaries are long conversations that go on from pulse to
pulse: between two of them the users' own load pushes their pages out, and in its midst they come
back. A canary sent to an idle server proves little, and the output says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.sglang import list_models
from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import EXIT_COULD_NOT, EXIT_DONE, EXIT_FINDINGS, DoctorError
from dsv4doctor.finding import Evidence, Finding, Severity
from dsv4doctor.flows.live_target import scrub_bytes, secrets_of
from dsv4doctor.flows.watch_metrics import Counts, MetricsServer, render
from dsv4doctor.flows.watch_plan import CANARY_CONTEXT, COMMAND, Conversations, WatchPlan
from dsv4doctor.flows.watch_pulse import Sender, take_pulse
from dsv4doctor.flows.watch_rules import Pulse, State, Verdict, Vigil
from dsv4doctor.load.options import RunOptions
from dsv4doctor.progress import Progress
from dsv4doctor.redact import scrub_value
from dsv4doctor.stats.rates import sessions_to_prove, upper_bound_clean

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
    State.UNREACHABLE: "is the server up? check --base-url",
}
_RUNNING = ("sglang:num_running_reqs", "vllm:num_requests_running")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOutcome:
    """What a watch that ended has to say."""

    verdict: str
    exit_code: int
    findings: tuple[Finding, ...]
    body: Mapping[str, Any]


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


def run_watch(
    plan: WatchPlan,
    progress: Progress,
    *,
    fail_on: Severity = Severity.WARNING,
    stacks: Callable[[], list[dict[str, object]]] | None = None,
) -> WatchOutcome:
    """Watch until a fault, or until the plan's pulses are over; with a port, through all faults.

    `stacks` takes a dump when the server is wedged.

    Raises:
        DoctorError: if the server was never there.
    """
    work = Watching(plan, progress, fail_on, Vigil(plan.slow_ttft_ms), Conversations(plan))
    with ExitStack() as stack:
        metrics = None
        if plan.port is not None:
            metrics = stack.enter_context(MetricsServer(plan.port))
            progress.note(f"metrics on port {metrics.port}")
        try:
            asyncio.run(_watch(work, metrics))
        except KeyboardInterrupt:
            progress.note("stopped")
        dumps = _stacks(work, stacks)
        return _conclude(work, dumps)


async def _watch(work: Watching, metrics: MetricsServer | None) -> None:
    plan = work.plan
    secrets = secrets_of(plan.endpoint)
    options = RunOptions(
        model=await _model(plan), run_prefix=f"watch{plan.seed:x}", extra_body=plan.extra_body
    )

    def keep(record: dict[str, Any], raw: bytes) -> None:
        _keep(work, scrub_value(record, secrets), scrub_bytes(raw, secrets))

    sender = Sender(plan, options, keep)
    pulses = 0
    while plan.pulses is None or pulses < plan.pulses or work.vigil.is_waiting:
        began = time.monotonic()
        async with HttpClient(plan.endpoint, connect_timeout_s=min(10.0, plan.timeout_s)) as http:
            pulse = await take_pulse(sender, http, work.conversations.next())
        pulses += 1
        _note(work, pulse, metrics)
        if work.plan.port is None and _is_fault(work):
            return
        if plan.pulses is None or pulses < plan.pulses:
            await asyncio.sleep(max(0.0, plan.interval_s - (time.monotonic() - began)))


async def _model(plan: WatchPlan) -> str:
    if plan.model is not None:
        return plan.model
    try:
        return (await asyncio.to_thread(list_models, plan.endpoint))[0]
    except DoctorError:
        # A watch also has to say that the server is down, not only end for it.
        return "default"


def _note(work: Watching, pulse: Pulse, metrics: MetricsServer | None) -> None:
    before = work.verdict
    verdict = work.vigil.take(pulse)
    work.last, work.verdict = pulse, verdict
    work.counts.pulses[verdict.state.value] += 1
    work.counts.canaries, work.counts.corrupted = work.vigil.canaries, work.vigil.corrupted
    work.loaded += any(pulse.gauges.get(name) for name in _RUNNING)
    if verdict.state is not State.FINE:
        fault = {"at_unix": pulse.at_unix, "state": verdict.state.value, "why": verdict.why}
        work.faults.append(fault)
    if before is None or before.state is not verdict.state:
        work.progress.note(f"{verdict.state}: {verdict.why}")
    if metrics is not None:
        metrics.text = render(work.counts, pulse, verdict)


def _is_fault(work: Watching) -> bool:
    """True when the watch has found what it is to end for; a first silence waits for the second."""
    assert work.verdict is not None
    state = work.verdict.state
    if state is State.FINE or work.vigil.is_waiting:
        return False
    return SEVERITY[state].rank >= work.fail_on.rank


def _keep(work: Watching, record: dict[str, Any], raw: bytes) -> None:
    """What went wrong goes to disk, into a directory that is made when it is first needed."""
    if work.run is None:
        details = {"seed": work.plan.seed, "plan": {"base_url": work.plan.endpoint.base_url}}
        new = NewRun(command=COMMAND, label="canary", argv=work.plan.argv, details=details)
        work.run = RunDirectory.create(work.plan.output_dir, new)
    record["raw"] = work.run.save_raw(record["request_id"], raw)
    work.run.append_record({**record, "id": record["request_id"]})


def _stacks(
    work: Watching, stacks: Callable[[], list[dict[str, object]]] | None
) -> list[dict[str, object]]:
    if stacks is None or work.verdict is None or work.verdict.state is not State.WEDGED:
        return []
    work.progress.note("taking stacks of the serving processes, twice")
    return stacks()


def _conclude(work: Watching, dumps: list[dict[str, object]]) -> WatchOutcome:
    verdict = work.verdict
    state = verdict.state if verdict is not None else State.UNREACHABLE
    findings = _findings(work)
    body = _body(work, dumps)
    code = _exit_code(state, work.fail_on)
    if work.run is not None:
        work.run.write_findings(to_builtins(findings))
        work.run.write_summary({"verdict": state.value, "exit_code": code, COMMAND: body})
        work.run.finish()
    return WatchOutcome(verdict=state.value, exit_code=code, findings=findings, body=body)


def _exit_code(state: State, fail_on: Severity) -> int:
    if state is State.UNREACHABLE:
        return EXIT_COULD_NOT
    grave = state is not State.FINE and SEVERITY[state].rank >= fail_on.rank
    return EXIT_FINDINGS if grave else EXIT_DONE


def _findings(work: Watching) -> tuple[Finding, ...]:
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


def _body(work: Watching, dumps: list[dict[str, object]]) -> dict[str, Any]:
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
        "said": f"corruption of {100 * plan.rate:g} % of replies is met by {needed} canaries with "
        f"95 % probability{pace}; an idle server shows none",
    }


def _utc(unix: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix))


def stack_taker(
    hosts: tuple[str, ...], ssh_config: Path | None
) -> Callable[[], list[dict[str, object]]]:
    """Dumps stacks on all hosts at once, over SSH."""

    def take() -> list[dict[str, object]]:
        from dsv4doctor.flows.watch_stacks import dump_stacks, told
        from dsv4doctor.hosts.fanout import fan_out
        from dsv4doctor.hosts.inventory import parse_host
        from dsv4doctor.hosts.ssh import SshTransport

        return told(
            fan_out(
                hosts,
                lambda host: SshTransport(parse_host(host), config_file=ssh_config),
                dump_stacks,
            )
        )

    return take
