"""The flags of `bench` that say what is sent, how, and what is made of the numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsv4doctor.cli.bounds import MAX_BLOCKS, MAX_REQUESTS, MAX_REQUESTS_PER_S, MAX_SECONDS
from dsv4doctor.errors import UsageError

if TYPE_CHECKING:
    from dsv4doctor.finding import Severity
    from dsv4doctor.flows.bench import BenchWishes
    from dsv4doctor.flows.bench_plan import BenchPlan


class ArrivalFlag(StrEnum):
    POISSON = "poisson"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFlags:
    """How many requests are sent, and when."""

    max_concurrency: Annotated[
        list[int] | None,
        typer.Option(
            "--max-concurrency",
            "--concurrency",
            min=1,
            max=MAX_REQUESTS,
            help="Requests in flight; repeatable. [default: 1 and 32]",
        ),
    ] = None
    blocks: Annotated[
        int, typer.Option("--blocks", min=1, max=MAX_BLOCKS, help="Repetitions of each level.")
    ] = 5
    num_prompts: Annotated[
        int | None,
        typer.Option(
            "--num-prompts",
            min=1,
            max=MAX_REQUESTS,
            help="Requests a block. [default: two for each in flight, at least 4]",
        ),
    ] = None
    request_rate: Annotated[
        float | None,
        typer.Option(
            "--request-rate",
            min=0.001,
            max=MAX_REQUESTS_PER_S,
            help="Arrivals a second, instead of a closed loop.",
        ),
    ] = None
    arrival: Annotated[
        ArrivalFlag, typer.Option("--arrival", help="Spacing at --request-rate.")
    ] = ArrivalFlag.POISSON
    ramp_up: Annotated[
        float,
        typer.Option(
            "--ramp-up",
            min=0.0,
            max=MAX_SECONDS,
            help="Seconds over which a block's first requests start.",
        ),
    ] = 0.0
    warmup_requests: Annotated[
        int,
        typer.Option(
            "--warmup-requests",
            min=0,
            max=MAX_REQUESTS,
            help="Sent before a level's first block, not measured.",
        ),
    ] = 1

    def on(self, plan: BenchPlan) -> BenchPlan:
        """The plan with this load.

        Raises:
            UsageError: if two flags say when requests start.
        """
        from dsv4doctor.flows.bench_plan import Arrival

        if self.request_rate is not None and self.ramp_up:
            raise UsageError("--request-rate and --ramp-up were both given", "give one of them")
        return replace(
            plan,
            concurrencies=tuple(self.max_concurrency or ()),
            blocks=self.blocks,
            num_prompts=self.num_prompts,
            warmup_requests=self.warmup_requests,
            ramp_up_s=self.ramp_up,
            request_rate=self.request_rate,
            arrival=Arrival(self.arrival.value),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFlags:
    """What a request asks, and how its reply comes."""

    input_len: Annotated[
        str, typer.Option("--input-len", "--random-input-len", help="Prompt tokens, about.")
    ] = "1024"
    output_len: Annotated[
        str,
        typer.Option(
            "--output-len",
            "--random-output-len",
            help="Reply tokens, about; of prompts from a file at most.",
        ),
    ] = "256"
    length_jitter: Annotated[
        float,
        typer.Option(
            "--length-jitter",
            min=0.0,
            max=0.9,
            help="Share by which lengths differ between requests.",
        ),
    ] = 0.0
    dataset_path: Annotated[
        Path | None,
        typer.Option(
            "--dataset-path", metavar="FILE", help="Prompts of your own: JSON lines or ShareGPT."
        ),
    ] = None
    ignore_eos: Annotated[
        bool,
        typer.Option(
            "--ignore-eos", help="Exactly --output-len tokens; replies are then not judged."
        ),
    ] = False
    keep_prefixes: Annotated[
        bool,
        typer.Option(
            "--keep-prefixes", help="Send prompts unsalted, so that prefix caches may serve them."
        ),
    ] = False
    disable_stream: Annotated[bool, typer.Option("--disable-stream", help="Whole replies.")] = False

    def on(self, plan: BenchPlan) -> BenchPlan:
        """The plan with these prompts.

        Raises:
            UsageError: if a length is no number of tokens.
        """
        from dsv4doctor.units import parse_tokens

        return replace(
            plan,
            input_len=parse_tokens(self.input_len),
            output_len=parse_tokens(self.output_len),
            length_jitter=self.length_jitter,
            dataset_path=self.dataset_path,
            ignore_eos=self.ignore_eos,
            salts_prompts=not self.keep_prefixes,
            stream=not self.disable_stream,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFlags:
    """What is made of the numbers."""

    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", metavar="RUN_DIR", help="An earlier bench: better, same or worse?"
        ),
    ] = None
    margin: Annotated[
        float,
        typer.Option(
            "--margin", min=0.001, max=0.9, help="Relative change that still counts as the same."
        ),
    ] = 0.05
    output_file: Annotated[
        Path | None,
        typer.Option(
            "--output-file",
            "--append-jsonl",
            metavar="FILE",
            help="Append a line a level in the form of SGLang's bench_serving.",
        ),
    ] = None
    output_details: Annotated[
        bool, typer.Option("--output-details", help="Arrays over requests in that file.")
    ] = False

    def wishes(self, least: Severity) -> BenchWishes:
        """They as the flow takes them; `least` severity makes the exit code 1."""
        from dsv4doctor.flows.bench import BenchWishes

        return BenchWishes(
            baseline=self.baseline,
            margin=self.margin,
            output_file=self.output_file,
            output_details=self.output_details,
            fail_on=least,
        )
