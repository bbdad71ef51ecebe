"""`dsv4doctor watch`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.bounds import MAX_MS, MAX_REQUESTS, MAX_SECONDS, MAX_SEED
from dsv4doctor.cli.output import emit_json
from dsv4doctor.cli.target_flags import ServerFlags, extra_body_of
from dsv4doctor.errors import UsageError
from dsv4doctor.units import many

if TYPE_CHECKING:
    from dsv4doctor.flows.watch import WatchOutcome

_PULSE, _STACKS = "Pulse", "Stacks of a wedged server"


def watch(
    interval: Annotated[
        float,
        typer.Option(
            "--interval", min=0.1, max=86400, help="Seconds between pulses.", rich_help_panel=_PULSE
        ),
    ] = 30.0,
    once: Annotated[
        bool,
        typer.Option("--once", help="One look, for cron: three pulses.", rich_help_panel=_PULSE),
    ] = False,
    pulses: Annotated[
        int | None,
        typer.Option(
            "--pulses", min=1, max=MAX_REQUESTS, help="End after so many.", rich_help_panel=_PULSE
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            min=0.1,
            max=MAX_SECONDS,
            help="Seconds a pulse's request may take [default: the interval, 5 to 60].",
            rich_help_panel=_PULSE,
        ),
    ] = None,
    canaries: Annotated[
        int,
        typer.Option(
            "--canaries", min=0, max=64, help="Canary calls a pulse.", rich_help_panel=_PULSE
        ),
    ] = 1,
    expect_rate: Annotated[
        float,
        typer.Option(
            "--expect-rate",
            min=1e-6,
            max=0.99,
            help="Share of corrupted replies that the canaries are to find.",
            rich_help_panel=_PULSE,
        ),
    ] = 0.05,
    slow_ttft_ms: Annotated[
        float | None,
        typer.Option(
            "--slow-ttft-ms",
            min=0,
            max=MAX_MS,
            help="Slow above so many ms to the first token [default: 5 x the usual].",
            rich_help_panel=_PULSE,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            help="Serve Prometheus metrics (9464 is usual) and go on through faults.",
            rich_help_panel=_PULSE,
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", envvar="OPENAI_BASE_URL", help="Server root."),
    ] = None,
    model: options.Model = None,
    api_key: options.ApiKey = None,
    header: options.Headers = None,
    extra_request_body: options.ExtraBody = None,
    insecure: options.Insecure = False,
    stack_dump: Annotated[
        bool,
        typer.Option(
            "--stack-dump",
            help="When wedged, dump the serving processes' stacks on --ssh-host.",
            rich_help_panel=_STACKS,
        ),
    ] = False,
    ssh_host: Annotated[
        list[str] | None,
        typer.Option("--ssh-host", help="Host of the server; repeatable.", rich_help_panel=_STACKS),
    ] = None,
    ssh_config: Annotated[
        Path | None,
        typer.Option("--ssh-config", help="Instead of ~/.ssh/config.", rich_help_panel=_STACKS),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, max=MAX_SEED, help="Fixes the canaries [default: from the clock]."
        ),
    ] = None,
    output_dir: options.OutputDir = Path("reports"),
    fail_on: options.FailOnFlag = options.FailOn.WARNING,
    as_json: options.AsJson = False,
    no_progress: options.NoProgress = False,
    no_color: options.NoColor = False,
) -> None:
    """Watch a server: real generations and canary tool calls at an interval, until a fault.

    Sends a few requests a minute and nothing else. Example: dsv4doctor watch --base-url
    http://gpu7:30000 --interval 30 --port 9464
    """
    from dsv4doctor.cli.live import progress_display
    from dsv4doctor.finding import Severity
    from dsv4doctor.flows.watch import run_watch, stack_taker
    from dsv4doctor.flows.watch_plan import WatchPlan

    server = ServerFlags(base_url=base_url, api_key=api_key, header=header, insecure=insecure)
    endpoint = server.endpoint(lab=None)
    if endpoint is None:
        raise UsageError("no server to watch", "give --base-url, or set OPENAI_BASE_URL")
    if stack_dump and not ssh_host:
        raise UsageError("--stack-dump needs the server's host", "give --ssh-host HOST")
    for name, other in (("--port", port), ("--pulses", pulses)):
        if once and other is not None:
            raise UsageError(f"--once and {name} were both given", "drop one of them")
    plan = WatchPlan(
        endpoint=endpoint,
        # New prompts at every start: what an earlier watch sent may still be cached.
        seed=int(time.time()) if seed is None else seed,
        output_dir=output_dir,
        interval_s=0.0 if once else interval,
        timeout_s=timeout if timeout is not None else min(60.0, max(5.0, interval)),
        canaries=canaries,
        pulses=pulses or (ONCE_PULSES if once else None),
        port=port,
        slow_ttft_ms=slow_ttft_ms,
        rate=expect_rate,
        model=model,
        extra_body=extra_body_of(extra_request_body),
        argv=tuple(sys.argv),
    )
    stacks = stack_taker(tuple(ssh_host or ()), ssh_config) if stack_dump else None
    with progress_display(enabled=not no_progress, no_color=no_color) as progress:
        outcome = run_watch(plan, progress, fail_on=Severity(fail_on.value), stacks=stacks)
    if as_json:
        emit_json("watch", outcome.verdict, outcome.exit_code, outcome.findings, outcome.body)
    else:
        _show(outcome)
    raise typer.Exit(outcome.exit_code)


# One look sends this many pulses: a canary's second turn is the first that reads what was cached.
ONCE_PULSES = 3


def _show(outcome: WatchOutcome) -> None:
    from dsv4doctor.safetext import one_line

    body = outcome.body
    typer.echo(f"{outcome.verdict} since {body['since'] or 'the start'}: {one_line(body['why'])}")
    canaries = body["canaries"]
    typer.echo(
        f"{many(body['pulses'], 'pulse')}, {canaries['corrupted']} of "
        f"{many(canaries['sent'], 'canary', 'canaries')} corrupt; "
        f"{canaries['said']}"
    )
    for dump in body["stacks"]:
        if "error" in dump:
            typer.echo(f"{dump['host']}: {one_line(str(dump['error']))}")
            continue
        still = "stands still" if dump["stands_still"] else "moves"
        typer.echo(f"{dump['host']} {dump['pid']} {one_line(str(dump['process']))}: {still}, "
                   f"by {dump['method']}")  # fmt: skip
        typer.echo("\n".join(f"  {one_line(line)}" for line in str(dump["stack"]).splitlines()))
    for finding in outcome.findings:
        typer.echo(f"try: {finding.remedy}")
    if body["run_dir"]:
        typer.echo(f"saved in {body['run_dir']}")
