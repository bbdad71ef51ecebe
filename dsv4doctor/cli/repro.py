"""`dsv4doctor repro`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.bounds import MAX_SESSIONS
from dsv4doctor.cli.groups import with_groups
from dsv4doctor.cli.resuming import say_unheeded
from dsv4doctor.cli.target_flags import LabFlags, ServerFlags, extra_body_of
from dsv4doctor.cli.telling import TellingFlags
from dsv4doctor.errors import UsageError

_MAX_CONTEXT_TOKENS = 1 << 20  # DeepSeek-V4's own; prompts are made before the first is sent


@with_groups
def repro(
    *,
    sessions: Annotated[
        int, typer.Option("--sessions", min=1, max=MAX_SESSIONS, help="Concurrent sessions.")
    ] = 60,
    turns: options.Turns = None,
    scenario: options.ScenarioName = "tool-calls",
    context_tokens: Annotated[
        str | None,
        typer.Option(
            "--context-tokens", metavar="A:B", help="Prompt length at the first and the last turn."
        ),
    ] = None,
    max_concurrency: Annotated[
        int | None,
        typer.Option(
            "--max-concurrency",
            "--concurrency",
            min=1,
            max=MAX_SESSIONS,
            help="Requests in flight; default: one a session.",
        ),
    ] = None,
    seed: options.Seed = 42,
    stall_timeout: options.StallTimeout = 30.0,
    timeout: options.RequestTimeout = 600.0,
    server: ServerFlags,
    extra_request_body: options.ExtraBody = None,
    lab: LabFlags,
    output_dir: options.OutputDir = Path("reports"),
    resume: options.Resume = None,
    telling: TellingFlags,
) -> None:
    """Drive concurrent multi-turn tool-call sessions and classify every response.

    Sends load to the deployment at --base-url, or starts the lab when there is none. Reads nothing
    else and changes nothing there. Example: dsv4doctor repro --base-url http://gpu7:30000
    """
    from dsv4doctor.flows.repro import run_repro
    from dsv4doctor.flows.repro_plan import ReproPlan, load_scenario, resumed_plan

    lab_options = lab.asked_for()
    endpoint = server.endpoint(lab_options)
    with telling.progress() as progress:
        plan = ReproPlan(
            scenario=load_scenario(scenario),
            sessions=sessions,
            turns=turns,
            seed=seed,
            context_tokens=_context_range(context_tokens),
            endpoint=endpoint,
            lab=lab_options,
            model=server.model,
            extra_body=extra_body_of(extra_request_body),
            max_concurrency=max_concurrency,
            stall_timeout_s=stall_timeout,
            request_timeout_s=timeout,
            output_dir=output_dir,
            argv=tuple(sys.argv),
        )
        if resume is not None:
            plan = resumed_plan(resume, plan)
            say_unheeded(sys.argv[1:])
        outcome = run_repro(plan, progress, fail_on=telling.least)
    hint = outcome.resume_hint
    telling.finish(
        "repro",
        outcome,
        outcome.report,
        body=outcome.body,
        hint=hint and f"interrupted; what was seen is saved. To finish it: {hint}",
    )


def _context_range(text: str | None) -> tuple[int, int] | None:
    """`A:B` (or one number for both) in tokens; `2k` and `32K` as `units` reads them."""
    if text is None:
        return None
    from dsv4doctor.units import parse_tokens

    first, _, last = text.partition(":")
    asked = parse_tokens(first), parse_tokens(last or first)
    if max(asked) > _MAX_CONTEXT_TOKENS:
        raise UsageError(
            f"--context-tokens {text} is longer than any DeepSeek-V4 takes",
            f"give at most {_MAX_CONTEXT_TOKENS:,}",
        )
    return asked
