"""`dsv4doctor checksum`: flags to a job, the job to its flow, the outcome to stdout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dsv4doctor.cli import options
from dsv4doctor.cli.bounds import MAX_DEPTH, MAX_RANKS
from dsv4doctor.cli.checksum_flags import Flags, with_flags
from dsv4doctor.cli.checksum_live import live
from dsv4doctor.cli.console import say
from dsv4doctor.cli.output import emit_json
from dsv4doctor.errors import EXIT_INTERRUPTED, UsageError

if TYPE_CHECKING:
    from dsv4doctor.flows.checksum import Outcome

app = typer.Typer(
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DEFAULT_TIME_BUDGET_S = 300.0
DEFAULT_DEPTHS = "1,2,4,8"


app.command("live")(live)


@app.callback(invoke_without_command=True)
@with_flags
def checksum(context: typer.Context, flags: Flags) -> None:
    """Checksum cache pages: are this machine's kernels, memory and copies sound?

    Without an action it is a selftest of this machine. On other hosts it sends one self-contained
    program, runs it in the server's own Python and leaves nothing behind; a GPU that serves keeps a
    reserve of free memory. Example: dsv4doctor checksum --ssh-host gpu7 --ssh-host gpu8
    """
    context.obj = flags
    if context.invoked_subcommand is None:
        _finish(_on_hosts("selftest", flags), flags)


@app.command("selftest")
@with_flags
def selftest(context: typer.Context, flags: Flags) -> None:
    """Kernels against references, planted edits, copies through host memory, a whole pool.

    Example: dsv4doctor checksum selftest --ssh-host gpu7 --require-gpu
    """
    _finish(_on_hosts("selftest", flags), flags)


@app.command("race")
@with_flags
def race(
    context: typer.Context,
    depths: Annotated[
        str, typer.Option("--depths", help="Requests restored ahead of the read, comma-separated.")
    ] = DEFAULT_DEPTHS,
    *,
    flags: Flags,
) -> None:
    """HiCache's load against the index-K read: with the gate, without, and on the wrong layer.

    On a GPU: real copies on one stream and reads on another. Without: a virtual clock and threads.
    Example: dsv4doctor checksum race --index-k bf16 --depths 1,4,16
    """
    job: dict[str, Any] = {"depths": _numbers(depths, "--depths", least=1, most=MAX_DEPTH)}
    if flags.index_k is not None:
        job["race_index_k"] = flags.index_k.value
    _finish(_on_hosts("race", flags, job), flags)


@app.command("bench")
@with_flags
def bench(context: typer.Context, flags: Flags) -> None:
    """GB/s of the digests against a copy on the same device in the same run.

    Example: dsv4doctor checksum bench --ssh-host gpu7 --gpus 0
    """
    _finish(_on_hosts("bench", flags), flags)


@app.command("compare")
def compare(
    context: typer.Context,
    left: Annotated[Path, typer.Argument(help="Dump or manifest that is right.")],
    right: Annotated[Path | None, typer.Argument(help="Dump or manifest to compare.")] = None,
    layout: Annotated[
        str | None,
        typer.Option("--layout", help="fp8, bf16, fp4, fp4-rocm (or e.g. fp8/32), swa, c4, c128."),
    ] = None,
    write_manifest: Annotated[
        Path | None,
        typer.Option("--write-manifest", help="Digest LEFT into this file (.json) instead."),
    ] = None,
    as_json: options.AsJson = False,
    no_color: options.NoColor = False,
) -> None:
    """Which pages and tokens of two dumps differ, and whose bytes lie there instead.

    Takes .pt (never runs what is in it), .safetensors, raw bytes with --layout, and manifests.
    Example: dsv4doctor checksum compare prefill.pt decode.pt --layout fp8
    """
    from dsv4doctor.flows.checksum_compare import compare_files, make_manifest

    earlier = context.obj if isinstance(context.obj, Flags) else Flags()
    flags = Flags(as_json=as_json, no_color=no_color).over(earlier)
    if (right is None) == (write_manifest is None):
        raise UsageError(
            "compare takes two files, or one file and --write-manifest",
            "dsv4doctor checksum compare GOOD.pt BAD.pt",
        )
    if write_manifest is not None:
        outcome = make_manifest(left, write_manifest, layout)
    else:
        assert right is not None
        outcome = compare_files(left, right, layout)
    _finish(outcome, flags)


def _on_hosts(action: str, flags: Flags, extra: dict[str, Any] | None = None) -> Outcome:
    from dsv4doctor.flows.checksum import run_on_hosts

    job: dict[str, Any] = {
        "action": action,
        "index_k": (flags.index_k or options.IndexK.FP8).value,
        "seed": flags.seed_used,
        "max_bytes": flags.byte_limit,
        "time_budget_s": flags.time_budget or DEFAULT_TIME_BUDGET_S,
        "require_gpu": flags.require_gpu,
        "gpus": None
        if flags.gpus is None
        else _numbers(flags.gpus, "--gpus", least=0, most=MAX_RANKS),
    }
    targets = flags.targets()
    if flags.names_hosts:
        say(f"{action}: one program is sent to each host, run there, and removed")
    return run_on_hosts(job | (extra or {}), targets, fail_on=flags.telling().least)


def _finish(outcome: Outcome, flags: Flags) -> None:
    if flags.as_json:
        emit_json("checksum", outcome.verdict, outcome.exit_code, outcome.findings, outcome.body)
    else:
        from dsv4doctor.cli.checksum_view import print_outcome

        print_outcome(outcome, no_color=flags.no_color)
    if outcome.exit_code == EXIT_INTERRUPTED:
        say("interrupted; the hosts that had ended are told. Run it again for the others")
    raise typer.Exit(outcome.exit_code)


def _numbers(text: str, flag: str, *, least: int, most: int) -> list[int]:
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(f"{flag} {text!r} is no list of numbers", "for example 0,1") from error
    for number in found:
        if not least <= number <= most:
            raise UsageError(f"{flag}: {number} is not {least} to {most}", "for example 1,2,4")
    return found
