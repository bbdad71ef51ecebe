"""`dsv4doctor checksum live`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.bounds import MAX_SESSIONS
from dsv4doctor.cli.checksum_flags import Flags, with_flags
from dsv4doctor.cli.target_flags import LabFlags, ServerFlags
from dsv4doctor.errors import EXIT_INTERRUPTED, UsageError

if TYPE_CHECKING:
    from dsv4doctor.flows.checksum_live_plan import LivePlan

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbingFlags:
    """What the probes are asked to do, and where they answer."""

    perturb: Annotated[
        bool | None,
        typer.Option(
            "--perturb/--no-perturb",
            help="Self-test: flip one byte of one page at each hop, digest it, flip it back "
            "[default: only in the lab]. Without it nothing is called clean.",
        ),
    ] = None
    perturb_hop: Annotated[
        list[Hop] | None, typer.Option("--perturb-hop", help="Flip here only; repeatable.")
    ] = None
    pool: Annotated[
        list[Pool] | None,
        typer.Option(
            "--pool",
            help="Observe this pool; repeatable [default: index_k, and c4 too between a prefill "
            "and a decode side].",
        ),
    ] = None
    max_share: Annotated[
        float,
        typer.Option(
            "--max-share",
            min=0.0001,
            max=1,
            help="Most of the scheduler's time that digests may take; what is left out is told.",
        ),
    ] = 0.02
    probe_dir: Annotated[
        list[str] | None,
        typer.Option(
            "--probe-dir",
            help="Folder of the probes' sockets [default: where `probe install` puts them].",
        ),
    ] = None

    def on(self, plan: LivePlan) -> LivePlan:
        """The plan with these wishes; a hop that is named is a wish to flip there."""
        return replace(
            plan,
            perturbs=True if self.perturb_hop and self.perturb is None else self.perturb,
            hops=tuple(hop.value for hop in self.perturb_hop or ()),
            folders=tuple(self.probe_dir or ()),
            pools=tuple(each.value for each in self.pool or ()),
            max_share=self.max_share,
        )


@with_flags
def live(
    context: typer.Context,
    *,
    during: Annotated[
        During | None,
        typer.Option(
            "--during", help="Drive this load meanwhile [default: repro at the lab, else none]."
        ),
    ] = None,
    sessions: Annotated[
        int, typer.Option("--sessions", min=1, max=MAX_SESSIONS, help="Sessions of --during.")
    ] = DEFAULT_SESSIONS,
    turns: options.Turns = None,
    scenario: options.ScenarioName = "tool-calls",
    probing: ProbingFlags,
    server: ServerFlags,
    lab: LabFlags,
    output_dir: options.OutputDir = Path("reports"),
    no_progress: options.NoProgress = False,
    flags: Flags,
) -> None:
    """Follow index-K's bytes inside a running SGLang; name the hop where they change.

    Needs the probe in its schedulers (`dsv4doctor probe install`); digests are taken only between
    arming and disarming. With neither host nor URL it observes the lab.
    Example: dsv4doctor checksum live --ssh-host gpu7 --base-url http://gpu7:30000 --during repro
    """
    from dsv4doctor.flows.checksum_live import run_live
    from dsv4doctor.flows.checksum_live_plan import DEFAULT_WATCH_S, LivePlan
    from dsv4doctor.flows.repro_plan import ReproPlan, load_scenario

    _refuse(flags)
    lab_options = lab.asked_for()
    load = ReproPlan(
        scenario=load_scenario(scenario),
        sessions=sessions,
        turns=turns,
        seed=flags.seed_used,
        endpoint=server.endpoint(lab_options),
        lab=lab_options,
        model=server.model,
        output_dir=output_dir,
        argv=tuple(sys.argv),
    )
    plan = LivePlan(
        load=load,
        targets=flags.targets(),
        watch_s=flags.time_budget or DEFAULT_WATCH_S,
        max_bytes_per_step=flags.byte_limit,
    )
    plan = _with_load(probing.on(plan), during=during)
    telling = flags.telling(no_progress=no_progress)
    with telling.progress() as progress:
        found = run_live(plan, progress, fail_on=telling.least)
    hint = f"interrupted; what was seen is saved. To see it: dsv4doctor report {found.run_dir}"
    telling.finish(
        "checksum",
        found.outcome,
        found.report,
        body=found.outcome.body,
        hint=hint if found.outcome.exit_code == EXIT_INTERRUPTED else "",
    )


def _with_load(plan: LivePlan, *, during: During | None) -> LivePlan:
    """The plan with what is served meanwhile: the lab is driven, a server only if it is asked for.

    Raises:
        UsageError: if a load is asked for and no server is named, or a lab beside hosts.
    """
    endpoint = plan.load.endpoint
    if plan.load.lab is not None and plan.has_hosts:
        raise UsageError("--lab-* and --ssh-host contradict each other", "drop one of them")
    if endpoint is None and (plan.has_hosts or plan.folders):
        if during is not None:
            raise UsageError(
                "--during needs the server to send to", "give --base-url beside the hosts"
            )
        return replace(plan, has_server=False, drives=False)
    return replace(plan, drives=during is not None or endpoint is None)


def _refuse(flags: Flags) -> None:
    """Flags of the other actions that would say nothing here."""
    for name, is_given, instead in (
        ("--index-k", flags.index_k is not None, "--lab-index-k sets the lab's"),
        ("--gpus", flags.gpus is not None, "every rank whose probe answers is observed"),
        ("--require-gpu", flags.require_gpu, "the probe runs where the scheduler runs"),
    ):
        if is_given:
            raise UsageError(f"checksum live takes no {name}", instead)
