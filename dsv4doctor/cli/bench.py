"""`dsv4doctor bench`: flags to a plan, the plan to its flow, the outcome to stdout."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.console import say, stdout_console
from dsv4doctor.cli.output import emit_json
from dsv4doctor.cli.resuming import say_unheeded
from dsv4doctor.cli.target_flags import endpoint_of, extra_body_of, lab_of
from dsv4doctor.errors import UsageError

_LOAD = "Load"
_PROMPTS = "Prompts"
_RESULT = "Result"
# What is made of the numbers may be asked anew of a resumed run.
_HEEDED_TOO = ("--baseline", "--margin", "--output-file", "--append-jsonl", "--output-details")


class ArrivalFlag(StrEnum):
    POISSON = "poisson"
    FIXED = "fixed"


def bench(
    max_concurrency: Annotated[
        list[int] | None,
        typer.Option(
            "--max-concurrency",
            "--concurrency",
            min=1,
            help="Requests in flight; repeatable. [default: 1 and 32]",
            rich_help_panel=_LOAD,
        ),
    ] = None,
    blocks: Annotated[
        int,
        typer.Option("--blocks", min=1, help="Repetitions of each level.", rich_help_panel=_LOAD),
    ] = 5,
    num_prompts: Annotated[
        int | None,
        typer.Option(
            "--num-prompts",
            min=1,
            help="Requests a block. [default: two for each in flight, at least 4]",
            rich_help_panel=_LOAD,
        ),
    ] = None,
    request_rate: Annotated[
        float | None,
        typer.Option(
            "--request-rate",
            min=0.001,
            help="Arrivals a second, instead of a closed loop.",
            rich_help_panel=_LOAD,
        ),
    ] = None,
    arrival: Annotated[
        ArrivalFlag,
        typer.Option("--arrival", help="Spacing at --request-rate.", rich_help_panel=_LOAD),
    ] = ArrivalFlag.POISSON,
    ramp_up: Annotated[
        float,
        typer.Option(
            "--ramp-up",
            min=0.0,
            help="Seconds over which a block's first requests start.",
            rich_help_panel=_LOAD,
        ),
    ] = 0.0,
    warmup_requests: Annotated[
        int,
        typer.Option(
            "--warmup-requests",
            min=0,
            help="Sent before a level's first block, not measured.",
            rich_help_panel=_LOAD,
        ),
    ] = 1,
    input_len: Annotated[
        str,
        typer.Option(
            "--input-len",
            "--random-input-len",
            help="Prompt tokens, about.",
            rich_help_panel=_PROMPTS,
        ),
    ] = "1024",
    output_len: Annotated[
        str,
        typer.Option(
            "--output-len",
            "--random-output-len",
            help="Reply tokens, about; of prompts from a file at most.",
            rich_help_panel=_PROMPTS,
        ),
    ] = "256",
    length_jitter: Annotated[
        float,
        typer.Option(
            "--length-jitter",
            min=0.0,
            max=0.9,
            help="Share by which lengths differ between requests.",
            rich_help_panel=_PROMPTS,
        ),
    ] = 0.0,
    dataset_path: Annotated[
        Path | None,
        typer.Option(
            "--dataset-path",
            metavar="FILE",
            help="Prompts of your own: JSON lines or ShareGPT.",
            rich_help_panel=_PROMPTS,
        ),
    ] = None,
    ignore_eos: Annotated[
        bool,
        typer.Option(
            "--ignore-eos",
            help="Exactly --output-len tokens; replies are then not judged.",
            rich_help_panel=_PROMPTS,
        ),
    ] = False,
    keep_prefixes: Annotated[
        bool,
        typer.Option(
            "--keep-prefixes",
            help="Send prompts unsalted, so that prefix caches may serve them.",
            rich_help_panel=_PROMPTS,
        ),
    ] = False,
    disable_stream: Annotated[
        bool,
        typer.Option("--disable-stream", help="Whole replies.", rich_help_panel=_PROMPTS),
    ] = False,
    seed: options.Seed = 42,
    stall_timeout: options.StallTimeout = 30.0,
    timeout: options.RequestTimeout = 600.0,
    base_url: options.BaseUrl = None,
    host: options.Host = None,
    port: options.Port = None,
    model: options.Model = None,
    api_key: options.ApiKey = None,
    header: options.Headers = None,
    extra_request_body: options.ExtraBody = None,
    insecure: options.Insecure = False,
    lab_index_k: options.LabIndexK = None,
    lab_hicache: options.LabHicache = None,
    lab_fault: options.LabFault = None,
    lab_fix: options.LabFix = None,
    lab_option: options.LabOption = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            metavar="RUN_DIR",
            help="An earlier bench: better, same or worse?",
            rich_help_panel=_RESULT,
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            "--margin",
            min=0.001,
            max=0.9,
            help="Relative change that still counts as the same.",
            rich_help_panel=_RESULT,
        ),
    ] = 0.05,
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output-file",
            "--append-jsonl",
            metavar="FILE",
            help="Append a line a level in the form of SGLang's bench_serving.",
            rich_help_panel=_RESULT,
        ),
    ] = None,
    output_details: Annotated[
        bool,
        typer.Option(
            "--output-details", help="Arrays over requests in that file.", rich_help_panel=_RESULT
        ),
    ] = False,
    output_dir: options.OutputDir = Path("reports"),
    resume: Annotated[
        Path | None,
        typer.Option("--resume", metavar="RUN_DIR", help="Finish a run that was cut short."),
    ] = None,
    fail_on: options.FailOnFlag = options.FailOn.WARNING,
    as_json: options.AsJson = False,
    no_progress: options.NoProgress = False,
    no_color: options.NoColor = False,
) -> None:
    """Measure speed, judge every reply beside it, compare with a baseline.

    Sends load to the deployment at --base-url, or starts the lab when there is none. Reads nothing
    else and changes nothing there. Example: dsv4doctor bench --base-url http://gpu7:30000
    """
    from dsv4doctor.cli.live import progress_display
    from dsv4doctor.finding import Severity
    from dsv4doctor.flows.bench import BenchWishes, run_bench
    from dsv4doctor.flows.bench_plan import Arrival, BenchPlan, resumed_bench
    from dsv4doctor.units import parse_tokens

    lab = lab_of(lab_index_k, lab_hicache, lab_fault, lab_fix, lab_option)
    endpoint = endpoint_of(base_url, host, port, api_key, header, insecure=insecure, lab=lab)
    if request_rate is not None and ramp_up:
        raise UsageError("--request-rate and --ramp-up were both given", "give one of them")
    with progress_display(enabled=not no_progress, no_color=no_color) as progress:
        plan = BenchPlan(
            concurrencies=tuple(max_concurrency or ()),
            blocks=blocks,
            num_prompts=num_prompts,
            warmup_requests=warmup_requests,
            ramp_up_s=ramp_up,
            request_rate=request_rate,
            arrival=Arrival(arrival.value),
            input_len=parse_tokens(input_len),
            output_len=parse_tokens(output_len),
            length_jitter=length_jitter,
            dataset_path=dataset_path,
            ignore_eos=ignore_eos,
            salts_prompts=not keep_prefixes,
            stream=not disable_stream,
            seed=seed,
            endpoint=endpoint,
            lab=lab,
            model=model,
            extra_body=extra_body_of(extra_request_body),
            stall_timeout_s=stall_timeout,
            request_timeout_s=timeout,
            output_dir=output_dir,
            argv=tuple(sys.argv),
        )
        if resume is not None:
            plan = resumed_bench(resume, plan)
            say_unheeded(sys.argv[1:], also_heeded=_HEEDED_TOO)
        wishes = BenchWishes(
            baseline=baseline,
            margin=margin,
            output_file=output_file,
            output_details=output_details,
            fail_on=Severity(fail_on.value),
        )
        outcome = run_bench(plan, wishes, progress)
    if as_json:
        emit_json("bench", outcome.verdict, outcome.exit_code, outcome.findings, outcome.summary)
    else:
        from dsv4doctor.report.formats.console import print_report

        print_report(outcome.report, stdout_console(no_color=no_color))
    if outcome.resume_hint:
        say(f"interrupted; whole blocks are kept. To finish it: {outcome.resume_hint}")
    raise typer.Exit(outcome.exit_code)
