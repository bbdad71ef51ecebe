"""`dsv4doctor bench`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import sys
from pathlib import Path

from dsv4doctor.cli import options
from dsv4doctor.cli.bench_flags import LoadFlags, PromptFlags, ResultFlags
from dsv4doctor.cli.groups import with_groups
from dsv4doctor.cli.resuming import say_unheeded
from dsv4doctor.cli.target_flags import LabFlags, ServerFlags, extra_body_of
from dsv4doctor.cli.telling import TellingFlags

# What is made of the numbers may be asked anew of a resumed run.
_HEEDED_TOO = ("--baseline", "--margin", "--output-file", "--append-jsonl", "--output-details")


@with_groups
def bench(
    *,
    load: LoadFlags,
    prompts: PromptFlags,
    seed: options.Seed = 42,
    stall_timeout: options.StallTimeout = 30.0,
    timeout: options.RequestTimeout = 600.0,
    server: ServerFlags,
    extra_request_body: options.ExtraBody = None,
    lab: LabFlags,
    result: ResultFlags,
    output_dir: options.OutputDir = Path("reports"),
    resume: options.Resume = None,
    telling: TellingFlags,
) -> None:
    """Measure speed, judge every reply beside it, compare with a baseline.

    Sends load to the deployment at --base-url, or starts the lab when there is none. Reads nothing
    else and changes nothing there. Example: dsv4doctor bench --base-url http://gpu7:30000
    """
    from dsv4doctor.flows.bench import run_bench
    from dsv4doctor.flows.bench_plan import BenchPlan, resumed_bench

    lab_options = lab.asked_for()
    endpoint = server.endpoint(lab_options)
    with telling.progress() as progress:
        plan = BenchPlan(
            seed=seed,
            endpoint=endpoint,
            lab=lab_options,
            model=server.model,
            extra_body=extra_body_of(extra_request_body),
            stall_timeout_s=stall_timeout,
            request_timeout_s=timeout,
            output_dir=output_dir,
            argv=tuple(sys.argv),
        )
        plan = prompts.on(load.on(plan))
        if resume is not None:
            plan = resumed_bench(resume, plan)
            say_unheeded(sys.argv[1:], also_heeded=_HEEDED_TOO)
        outcome = run_bench(plan, result.wishes(telling.least), progress)
    hint = outcome.resume_hint
    telling.finish(
        "bench",
        outcome,
        outcome.report,
        body=outcome.body,
        hint=hint and f"interrupted; whole blocks are kept. To finish it: {hint}",
    )
