"""`dsv4doctor checksum live`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.checksum_flags import Flags, with_flags
from dsv4doctor.cli.console import say, stdout_console
from dsv4doctor.cli.output import emit_json
from dsv4doctor.cli.target_flags import endpoint_of, lab_of
from dsv4doctor.errors import EXIT_INTERRUPTED, UsageError
from dsv4doctor.units import parse_bytes

if TYPE_CHECKING:
    from dsv4doctor.flows.checksum_live_plan import LivePlan
    from dsv4doctor.flows.live_target import LabOptions
    from dsv4doctor.target import Endpoint

_LOAD = "Load"
_PROBE = "Probe"
DEFAULT_SEED = 42
# Enough rounds in the lab for prefixes to be evicted and loaded back.
DEFAULT_SESSIONS = 60


class During(StrEnum):
    REPRO = "repro"


class Hop(StrEnum):
    """Where a byte can be flipped."""

    BACKUP = "backup"
    HOST = "host"
    HOST_LOAD = "host_load"
    LOAD = "load"
    READ = "read"
    HELD = "held"
    SEND = "send"
    ARRIVE = "arrive"


class Pool(StrEnum):
    INDEX_K = "index_k"
    C4 = "c4"
    C128 = "c128"


@with_flags
def live(
    context: typer.Context,
    during: Annotated[
        During | None,
        typer.Option(
            "--during",
            help="Drive this load meanwhile [default: repro at the lab, else none].",
            rich_help_panel=_LOAD,
        ),
    ] = None,
    sessions: Annotated[
        int, typer.Option("--sessions", min=1, help="Sessions of --during.", rich_help_panel=_LOAD)
    ] = DEFAULT_SESSIONS,
    turns: Annotated[
        int | None,
        typer.Option("--turns", min=1, help="Turns of a session.", rich_help_panel=_LOAD),
    ] = None,
    scenario: Annotated[
        str,
        typer.Option("--scenario", help="Name or TOML file (see repro/).", rich_help_panel=_LOAD),
    ] = "tool-calls",
    perturb: Annotated[
        bool | None,
        typer.Option(
            "--perturb/--no-perturb",
            help="Self-test: flip one byte of one page at each hop, digest it, flip it back "
            "[default: only in the lab]. Without it nothing is called clean.",
            rich_help_panel=_PROBE,
        ),
    ] = None,
    perturb_hop: Annotated[
        list[Hop] | None,
        typer.Option("--perturb-hop", help="Flip here only; repeatable.", rich_help_panel=_PROBE),
    ] = None,
    pool: Annotated[
        list[Pool] | None,
        typer.Option(
            "--pool",
            help="Observe this pool; repeatable [default: index_k, and c4 too between a prefill "
            "and a decode side].",
            rich_help_panel=_PROBE,
        ),
    ] = None,
    max_share: Annotated[
        float,
        typer.Option(
            "--max-share",
            min=0.0001,
            max=1,
            help="Most of the scheduler's time that digests may take; what is left out is told.",
            rich_help_panel=_PROBE,
        ),
    ] = 0.02,
    probe_dir: Annotated[
        list[str] | None,
        typer.Option(
            "--probe-dir",
            help="Folder of the probes' sockets [default: where `probe install` puts them].",
            rich_help_panel=_PROBE,
        ),
    ] = None,
    base_url: options.BaseUrl = None,
    host: options.Host = None,
    port: options.Port = None,
    model: options.Model = None,
    api_key: options.ApiKey = None,
    header: options.Headers = None,
    insecure: options.Insecure = False,
    lab_index_k: options.LabIndexK = None,
    lab_hicache: options.LabHicache = None,
    lab_fault: options.LabFault = None,
    lab_fix: options.LabFix = None,
    lab_option: options.LabOption = None,
    output_dir: options.OutputDir = Path("reports"),
    no_progress: options.NoProgress = False,
    *,
    flags: Flags,
) -> None:
    """Follow index-K's bytes inside a running SGLang; name the hop where they change.

    Needs the probe in its schedulers (`dsv4doctor probe install`); digests are taken only between
    arming and disarming. With neither host nor URL it observes the lab.
    Example: dsv4doctor checksum live --ssh-host gpu7 --base-url http://gpu7:30000 --during repro
    """
    from dsv4doctor.cli.live import progress_display
    from dsv4doctor.finding import Severity
    from dsv4doctor.flows.checksum import Targets, refuse_no_host
    from dsv4doctor.flows.checksum_live import run_live
    from dsv4doctor.flows.checksum_live_plan import DEFAULT_WATCH_S, LivePlan
    from dsv4doctor.flows.repro_plan import ReproPlan, load_scenario

    _refuse(flags)
    lab = lab_of(lab_index_k, lab_hicache, lab_fault, lab_fix, lab_option)
    endpoint = endpoint_of(base_url, host, port, api_key, header, insecure=insecure, lab=lab)
    targets = Targets(
        ssh_hosts=flags.ssh_host,
        ssh_host_files=flags.ssh_hosts,
        ssh_config=flags.ssh_config,
        python=flags.remote_python,
        prefix=flags.remote_prefix or "",
    )
    load = ReproPlan(
        scenario=load_scenario(scenario),
        sessions=sessions,
        turns=turns,
        seed=DEFAULT_SEED if flags.seed is None else flags.seed,
        endpoint=endpoint,
        lab=lab,
        model=model,
        output_dir=output_dir,
        argv=tuple(sys.argv),
    )
    plan = LivePlan(
        load=load,
        targets=targets,
        watch_s=flags.time_budget or DEFAULT_WATCH_S,
        perturbs=True if perturb_hop and perturb is None else perturb,
        hops=tuple(hop.value for hop in perturb_hop or ()),
        folders=tuple(probe_dir or ()),
        pools=tuple(each.value for each in pool or ()),
        max_bytes_per_step=_bound(flags.max_bytes),
        max_share=max_share,
    )
    if plan.has_hosts:
        refuse_no_host(targets)
    plan = _with_load(plan, endpoint, lab, during=during)
    with progress_display(enabled=not no_progress, no_color=flags.no_color) as progress:
        least = Severity((flags.fail_on or options.FailOn.WARNING).value)
        found = run_live(plan, progress, fail_on=least)
    outcome = found.outcome
    if flags.as_json:
        emit_json("checksum", outcome.verdict, outcome.exit_code, outcome.findings, outcome.body)
    else:
        from dsv4doctor.report.formats.console import print_report

        print_report(found.report, stdout_console(no_color=flags.no_color))
    if outcome.exit_code == EXIT_INTERRUPTED:
        say(f"interrupted; what was seen is saved. To see it: dsv4doctor report {found.run_dir}")
    raise typer.Exit(outcome.exit_code)


def _with_load(
    plan: LivePlan, endpoint: Endpoint | None, lab: LabOptions | None, *, during: During | None
) -> LivePlan:
    """The plan with what is served meanwhile: the lab is driven, a server only if it is asked for.

    Raises:
        UsageError: if a load is asked for and no server is named, or a lab beside hosts.
    """
    from dataclasses import replace

    if lab is not None and plan.has_hosts:
        raise UsageError("--lab-* and --ssh-host contradict each other", "drop one of them")
    if endpoint is None and (plan.has_hosts or plan.folders):
        if during is not None:
            raise UsageError(
                "--during needs the server to send to", "give --base-url beside the hosts"
            )
        return replace(plan, has_server=False, drives=False)
    return replace(plan, drives=during is not None or endpoint is None)


def _bound(text: str | None) -> int | None:
    if text is None:
        return None
    value = parse_bytes(text)
    if value <= 0:
        raise UsageError(f"--max-bytes {text!r} leaves nothing", "for example 64MiB")
    return value


def _refuse(flags: Flags) -> None:
    """Flags of the other actions that would say nothing here."""
    for name, is_given, instead in (
        ("--index-k", flags.index_k is not None, "--lab-index-k sets the lab's"),
        ("--gpus", flags.gpus is not None, "every rank whose probe answers is observed"),
        ("--require-gpu", flags.require_gpu, "the probe runs where the scheduler runs"),
    ):
        if is_given:
            raise UsageError(f"checksum live takes no {name}", instead)
