"""`dsv4doctor lab serve`: SGLang's switches and the lab's own to a plan, the plan to its server."""

from __future__ import annotations

import os
import shlex
import sys
from enum import StrEnum
from typing import Annotated

import typer

from dsv4doctor.cli.bounds import MAX_BYTES_PER_MS, MAX_MS, MAX_REQUESTS, MAX_SEED, MAX_TOKENS
from dsv4doctor.cli.options import AsJson, IndexK, NoColor

_PHYSICS = "Physics (virtual time and sizes; defaults reproduce the record)"

_MAX_PAGES = 100_000  # real bytes, several layers of them: some gigabytes


class DisaggregationMode(StrEnum):
    NULL = "null"
    PREFILL = "prefill"
    DECODE = "decode"


def serve(
    fault: Annotated[
        list[str] | None,
        typer.Option(help="What is wrong with the engine; repeatable [default: index-race]."),
    ] = None,
    fix: Annotated[
        list[str] | None, typer.Option(help="A fix applied, e.g. index-gate; repeatable.")
    ] = None,
    index_k: Annotated[
        IndexK | None,
        typer.Option(
            help="Index-K storage [default: as SGLang's switch and variable say, else fp8]."
        ),
    ] = None,
    enable_deepseek_v4_fp4_indexer: Annotated[
        bool, typer.Option("--enable-deepseek-v4-fp4-indexer", help="SGLang's: fp4 index-K.")
    ] = False,
    enable_hierarchical_cache: Annotated[
        bool,
        typer.Option(
            "--enable-hierarchical-cache", "--enable-hicache", help="SGLang's: host pool (HiCache)."
        ),
    ] = False,
    hicache_ratio: Annotated[
        float, typer.Option(min=0.1, max=100, help="SGLang's: host pool over device pool.")
    ] = 4.0,
    disable_overlap_schedule: Annotated[
        bool, typer.Option("--disable-overlap-schedule", help="SGLang's.")
    ] = False,
    as_version: Annotated[
        str | None,
        typer.Option(
            help="Order (and leave unordered) what that SGLang release does, 0.5.12 to 0.5.23; "
            "then no fault is on unless named [default: only the faults are unordered]."
        ),
    ] = None,
    disaggregation: Annotated[
        bool,
        typer.Option(
            "--disaggregation",
            help="A router, a prefill and a decode server in processes of their own "
            "[default: where the fault needs them].",
        ),
    ] = False,
    disaggregation_mode: Annotated[
        DisaggregationMode, typer.Option(help="SGLang's: serve one of the two alone.")
    ] = DisaggregationMode.NULL,
    disaggregation_bootstrap_port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="SGLang's, of a prefill server; 0 takes any free."),
    ] = 0,
    model_path: Annotated[
        str, typer.Option("--model-path", "--model", help="SGLang's: reported, nothing is loaded.")
    ] = "deepseek-ai/DeepSeek-V4-Lab",
    served_model_name: Annotated[
        str | None, typer.Option(help="SGLang's [default: the model path].")
    ] = None,
    tool_call_parser: Annotated[
        str, typer.Option(help="SGLang's: deepseekv4, or none for raw text.")
    ] = "deepseekv4",
    reasoning_parser: Annotated[
        str | None, typer.Option(help="SGLang's: reported; the lab's model never thinks.")
    ] = None,
    max_running_requests: Annotated[
        int, typer.Option(min=1, max=MAX_REQUESTS, help="SGLang's: most requests in one round.")
    ] = 256,
    context_length: Annotated[
        int, typer.Option(min=1, max=MAX_TOKENS, help="SGLang's.")
    ] = 1_048_576,
    enable_metrics: Annotated[
        bool, typer.Option("--enable-metrics", help="SGLang's: always on here.")
    ] = True,
    enable_cache_report: Annotated[
        bool, typer.Option("--enable-cache-report", help="SGLang's: always on here.")
    ] = True,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="SGLang's: nothing is loaded.")
    ] = False,
    api_key: Annotated[
        str | None, typer.Option(help="SGLang's: ask for this bearer token.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=MAX_SEED, help="Orders the requests of a round.")
    ] = 0,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any free port.")] = 0,
    ground_truth: Annotated[
        str | None, typer.Option(help="File for what was really read; the doctor never sees it.")
    ] = None,
    record: Annotated[
        str | None,
        typer.Option(help="File to keep what comes in, in its order, for `lab replay`."),
    ] = None,
    parser_group: Annotated[
        str | None,
        typer.Option(
            help="Parser behaviour: A (<=0.5.17), B (0.5.18-20), C (0.5.21+) "
            "[default: that of --as-version, else B]."
        ),
    ] = None,
    itl_ms: Annotated[
        float, typer.Option(min=0, max=MAX_MS, help="Pace of the stream, real ms.")
    ] = 5.0,
    ttft_ms: Annotated[
        float, typer.Option(min=0, max=MAX_MS, help="Real ms before the first token.")
    ] = 20.0,
    quiet_ms: Annotated[
        float,
        typer.Option(min=0, max=MAX_MS, help="A round closes after so long without a request."),
    ] = 250.0,
    device_pages: Annotated[
        int | None,
        typer.Option(min=1, max=_MAX_PAGES, help="Device pool.", rich_help_panel=_PHYSICS),
    ] = None,
    prefill_batch: Annotated[
        int | None,
        typer.Option(
            min=1, max=MAX_REQUESTS, help="Most requests in a prefill.", rich_help_panel=_PHYSICS
        ),
    ] = None,
    layers: Annotated[
        int | None, typer.Option(min=1, max=128, help="c4 layers.", rich_help_panel=_PHYSICS)
    ] = None,
    slack_ms: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=MAX_MS, help="Queueing to first index read.", rich_help_panel=_PHYSICS
        ),
    ] = None,
    copy_bytes_per_ms: Annotated[
        float | None,
        typer.Option(
            min=1.0,
            max=MAX_BYTES_PER_MS,
            help="Bandwidth of a copy stream.",
            rich_help_panel=_PHYSICS,
        ),
    ] = None,
    exit_with_stdin: Annotated[
        bool, typer.Option("--exit-with-stdin", help="End at end of file on stdin.")
    ] = False,
    as_json: AsJson = True,  # the line on stdout is a document in any case
    no_color: NoColor = False,  # nothing here is coloured
) -> None:
    """Serve SGLang's HTTP surface over the miniature engine until SIGTERM or Ctrl-C.

    Prints one JSON line on stdout when ready: base_url, pid, ground_truth. The log is on stderr.
    Example: dsv4doctor lab serve --index-k bf16 --enable-hierarchical-cache --port 30000
    """
    from dsv4doctor.flows.lab import (
        LabPlan,
        LaunchOptions,
        default_faults,
        default_parser_group,
        serve_lab,
    )

    options = LaunchOptions(
        host=host,
        port=port,
        model_path=model_path,
        served_model_name=served_model_name or model_path,
        hicache=enable_hierarchical_cache,
        hicache_ratio=hicache_ratio,
        overlap_schedule=not disable_overlap_schedule,
        as_version=as_version,
        faults=tuple(fault or default_faults(as_version)),
        fixes=tuple(fix or ()),
        seed=seed,
        ground_truth=os.path.abspath(ground_truth) if ground_truth else None,
        record=os.path.abspath(record) if record else None,
        parser_group=parser_group or default_parser_group(as_version),
        tool_call_parser=None if tool_call_parser == "none" else tool_call_parser,
        reasoning_parser=reasoning_parser,
        max_running_requests=max_running_requests,
        context_length=context_length,
        api_key=api_key,
        itl_ms=itl_ms,
        ttft_ms=ttft_ms,
        quiet_ms=quiet_ms,
        exit_with_stdin=exit_with_stdin,
        disaggregation=disaggregation,
        disaggregation_mode=disaggregation_mode.value,
        bootstrap_port=disaggregation_bootstrap_port,
        arguments=_arguments(),
        launch_command=_launch_command(),
        environment=dict(os.environ),
    )
    physics = {
        "device_pages": device_pages,
        "prefill_batch_requests": prefill_batch,
        "layers": layers,
        "slack_ms": slack_ms,
        "copy_bytes_per_ms": copy_bytes_per_ms,
    }
    plan = LabPlan(
        options=options,
        index_k=index_k.value if index_k else None,
        fp4_indexer=enable_deepseek_v4_fp4_indexer,
        physics=physics,
    )
    code = serve_lab(plan)
    if code:
        raise typer.Exit(code)


def _arguments() -> tuple[str, ...]:
    """The words behind `lab serve`."""
    words = sys.argv[1:]
    return tuple(words[words.index("serve") + 1 :]) if "serve" in words else ()


def _launch_command() -> str:
    """The command line as started, without the key."""
    program, *arguments = sys.argv
    shown = ["python", "-m", "dsv4doctor"] if program.endswith("__main__.py") else [program]
    for word in arguments:
        if shown[-1] == "--api-key":
            shown.append("***")
        elif word.startswith("--api-key="):
            shown.append("--api-key=***")
        else:
            shown.append(word)
    return shlex.join(shown)
