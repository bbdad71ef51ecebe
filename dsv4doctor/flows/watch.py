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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.manifest import NewRun
from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.client.http import HttpClient
from dsv4doctor.client.sglang import list_models
from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import EXIT_INTERRUPTED, DoctorError, Interrupted
from dsv4doctor.finding import Finding, Severity
from dsv4doctor.flows.live_target import scrub_bytes, secrets_of
from dsv4doctor.flows.watch_metrics import MetricsServer, render
from dsv4doctor.flows.watch_plan import COMMAND, Conversations, WatchPlan
from dsv4doctor.flows.watch_pulse import Sender, take_pulse
from dsv4doctor.flows.watch_rules import Pulse, State, Vigil
from dsv4doctor.flows.watch_verdict import (
    SEVERITY,
    Watching,
    body_of,
    exit_code_of,
    findings_of,
)
from dsv4doctor.load.options import RunOptions
from dsv4doctor.progress import Progress
from dsv4doctor.redact import scrub, scrub_value

_RUNNING = ("sglang:num_running_reqs", "vllm:num_requests_running")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOutcome:
    """What a watch that ended has to say."""

    verdict: str
    exit_code: int
    findings: tuple[Finding, ...]
    body: Mapping[str, Any]


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
        DoctorError: if the metrics' port is taken, or it is stopped before its first pulse is over.
    """
    work = Watching(plan, progress, fail_on, Vigil(plan.slow_ttft_ms), Conversations(plan))
    with ExitStack() as stack:
        metrics = None
        if plan.port is not None:
            metrics = stack.enter_context(MetricsServer(plan.port))
            progress.note(f"metrics on port {metrics.port}")
        try:
            asyncio.run(_watch(work, metrics))
        except KeyboardInterrupt as stop:
            if work.verdict is None:
                raise Interrupted("stopped before the first pulse was over") from stop
            progress.note("stopped")
            return _conclude(work, [], stopped=True)
        return _conclude(work, _stacks(work, stacks))


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
    verdict = replace(verdict, why=scrub(verdict.why, secrets_of(work.plan.endpoint)))
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


def _conclude(
    work: Watching, dumps: list[dict[str, object]], *, stopped: bool = False
) -> WatchOutcome:
    verdict = work.verdict
    state = verdict.state if verdict is not None else State.UNREACHABLE
    findings = findings_of(work)
    body = body_of(work, dumps)
    code = EXIT_INTERRUPTED if stopped else exit_code_of(state, work.fail_on)
    if work.run is not None:
        work.run.write_findings(to_builtins(findings))
        work.run.write_summary({"verdict": state.value, "exit_code": code, COMMAND: body})
        work.run.finish()
    return WatchOutcome(verdict=state.value, exit_code=code, findings=findings, body=body)


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
