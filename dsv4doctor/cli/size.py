"""`dsv4doctor size`: flags in SGLang's spelling, the report or the JSON out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dsv4doctor.cli.bounds import MAX_RANKS, MAX_TOKENS
from dsv4doctor.cli.options import ApiKey, AsJson, FailOn, FailOnFlag, Host, NoColor, Port

_SOURCE = "Inputs from elsewhere"
_SERVER = "Server arguments, as SGLang spells them"
_BUDGET = "Memory and questions"


def size(
    model: Annotated[
        str | None,
        typer.Option(
            "--model", "--model-path", help="V4-Flash (default), V4-Pro, V4.1-Flash, or a path."
        ),
    ] = None,
    version: Annotated[
        str | None,
        typer.Option("--version", "--sglang-version", help="SGLang's release [default: newest]."),
    ] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="sglang or vllm.")] = None,
    index_dtype: Annotated[
        str | None,
        typer.Option(
            "--index-k",
            "--index-dtype",
            help="Stored index-K: fp8, fp4, bf16 (priced as the release does), bf16_priced.",
        ),
    ] = None,
    available: Annotated[
        str | None,
        typer.Option(
            "--available",
            "--available-bytes",
            help="Bytes a rank's pools get, as 26.9GiB.",
            rich_help_panel=_BUDGET,
        ),
    ] = None,
    available_gib: Annotated[
        float | None,
        typer.Option(
            "--available-gib", min=0.0, max=1e6, help="The same in GiB.", rich_help_panel=_BUDGET
        ),
    ] = None,
    model_config: Annotated[
        Path | None,
        typer.Option("--model-config", help="A model's config.json.", rich_help_panel=_SOURCE),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option("--spec", help="One JSON object of inputs.", rich_help_panel=_SOURCE),
    ] = None,
    batch: Annotated[
        Path | None,
        typer.Option(
            "--batch", help="One spec a line in, one answer a line out.", rich_help_panel=_SOURCE
        ),
    ] = None,
    launch: Annotated[
        str | None,
        typer.Option("--launch", help="Your own launch command.", rich_help_panel=_SOURCE),
    ] = None,
    from_log: Annotated[
        Path | None,
        typer.Option(
            "--from-log", help="Boot log: recompute and compare.", rich_help_panel=_SOURCE
        ),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", help="Read /server_info there.", rich_help_panel=_SOURCE),
    ] = None,
    host: Host = None,
    port: Port = None,
    api_key: ApiKey = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", help="SGLANG_NAME=VALUE of the server; repeatable."),
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option("--platform", help="cuda, cuda-sm100, cuda-sm120, hip, hip-gfx95."),
    ] = None,
    tp_size: Annotated[
        int | None,
        typer.Option(
            "--tp-size",
            "--tp",
            min=1,
            max=MAX_RANKS,
            rich_help_panel=_SERVER,
            help="Tensor parallel.",
        ),
    ] = None,
    dp_size: Annotated[
        int | None,
        typer.Option(
            "--dp-size",
            "--dp",
            min=1,
            max=MAX_RANKS,
            rich_help_panel=_SERVER,
            help="Data parallel.",
        ),
    ] = None,
    pp_size: Annotated[
        int | None, typer.Option("--pp-size", "--pp", min=1, max=MAX_RANKS, rich_help_panel=_SERVER)
    ] = None,
    pp_rank: Annotated[
        int | None, typer.Option(min=0, max=MAX_RANKS, rich_help_panel=_SERVER)
    ] = None,
    enable_dp_attention: Annotated[
        bool, typer.Option("--enable-dp-attention", rich_help_panel=_SERVER)
    ] = False,
    swa_full_tokens_ratio: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, rich_help_panel=_SERVER)
    ] = None,
    swa_prefix_tails: Annotated[
        int | None, typer.Option(min=0, max=MAX_TOKENS, rich_help_panel=_SERVER)
    ] = None,
    page_size: Annotated[
        int | None, typer.Option(min=1, max=MAX_TOKENS, rich_help_panel=_SERVER)
    ] = None,
    max_running_requests: Annotated[
        int | None, typer.Option(min=0, max=MAX_TOKENS, rich_help_panel=_SERVER)
    ] = None,
    max_total_tokens: Annotated[
        int | None, typer.Option(min=0, max=MAX_TOKENS, rich_help_panel=_SERVER)
    ] = None,
    chunked_prefill_size: Annotated[
        int | None, typer.Option(min=-1, max=MAX_TOKENS, rich_help_panel=_SERVER)
    ] = None,
    context_length: Annotated[
        int | None,
        typer.Option(
            "--context-length", "--max-model-len", min=1, max=MAX_TOKENS, rich_help_panel=_SERVER
        ),
    ] = None,
    max_num_batched_tokens: Annotated[
        int | None, typer.Option(min=1, max=MAX_TOKENS, help="vLLM's.", rich_help_panel=_SERVER)
    ] = None,
    kv_cache_dtype: Annotated[str | None, typer.Option(rich_help_panel=_SERVER)] = None,
    speculative_algorithm: Annotated[str | None, typer.Option(rich_help_panel=_SERVER)] = None,
    speculative_num_draft_tokens: Annotated[
        int | None, typer.Option(min=0, max=MAX_TOKENS, rich_help_panel=_SERVER)
    ] = None,
    speculative_num_steps: Annotated[
        int | None, typer.Option(min=0, max=MAX_TOKENS, rich_help_panel=_SERVER)
    ] = None,
    speculative_eagle_topk: Annotated[
        int | None, typer.Option(min=0, max=MAX_TOKENS, rich_help_panel=_SERVER)
    ] = None,
    disaggregation_mode: Annotated[str | None, typer.Option(rich_help_panel=_SERVER)] = None,
    disaggregation_decode_extra_slots: Annotated[
        int | None, typer.Option(min=0, max=MAX_TOKENS, rich_help_panel=_SERVER)
    ] = None,
    disable_radix_cache: Annotated[
        bool, typer.Option("--disable-radix-cache", rich_help_panel=_SERVER)
    ] = False,
    disable_overlap_schedule: Annotated[
        bool, typer.Option("--disable-overlap-schedule", rich_help_panel=_SERVER)
    ] = False,
    enable_deepseek_v4_fp4_indexer: Annotated[
        bool, typer.Option("--enable-deepseek-v4-fp4-indexer", rich_help_panel=_SERVER)
    ] = False,
    enable_encoder_swa_bounded_replay: Annotated[
        bool, typer.Option("--enable-encoder-swa-bounded-replay", rich_help_panel=_SERVER)
    ] = False,
    dsv4_attn_backend: Annotated[str | None, typer.Option(rich_help_panel=_SERVER)] = None,
    mem_fraction_static: Annotated[
        float | None, typer.Option(min=0.01, max=1.0, rich_help_panel=_BUDGET)
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help="GPU kind (H200, …) or memory (141GiB).", rich_help_panel=_BUDGET),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_RANKS,
            help="How many GPUs the question is about.",
            rich_help_panel=_BUDGET,
        ),
    ] = None,
    weight_bytes: Annotated[
        str | None,
        typer.Option(help="Weights a rank, as 62GiB.", rich_help_panel=_BUDGET),
    ] = None,
    session_tokens: Annotated[
        str | None,
        typer.Option(help="Sessions of this many tokens, as 64K.", rich_help_panel=_BUDGET),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(help="INPUT=V1,V2,…; one or two inputs.", rich_help_panel=_BUDGET),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv", help="Write the sweep as CSV (- is stdout).", rich_help_panel=_BUDGET
        ),
    ] = None,
    fail_on: FailOnFlag = FailOn.WARNING,
    as_json: AsJson = False,
    no_color: NoColor = False,
) -> None:
    """What the KV pools of a rank are believed to cost, what they really allocate, and what fits.

    Without flags: V4-Flash on the newest release with 26.9 GiB a rank. Sends nothing but one
    GET with --base-url. Example: dsv4doctor size --version 0.5.13 --index-k bf16
    """
    given = dict(locals())
    if batch is not None:
        raise typer.Exit(_run_batch(batch))
    from dsv4doctor.cli.console import say
    from dsv4doctor.finding import Severity
    from dsv4doctor.flows.size import run_size

    ask = _ask(given)
    outcome = run_size(ask, say)
    code = outcome.exit_code(Severity(fail_on.value))
    if csv is not None:
        _write_csv(csv, outcome.body.get("sweep"))
        if str(csv) == "-":
            raise typer.Exit(code)
    if as_json:
        from dsv4doctor.cli.output import emit_json

        emit_json("size", outcome.verdict, code, outcome.findings, outcome.body)
    else:
        from dsv4doctor.cli.size_view import show

        show(outcome, no_color=no_color)
    raise typer.Exit(code)


# Parameters of `size` that are SGLang's server arguments, under their own names.
_ARGUMENTS = (
    "index_dtype", "platform", "tp_size", "dp_size", "pp_size", "pp_rank", "enable_dp_attention",
    "swa_full_tokens_ratio", "swa_prefix_tails", "page_size", "max_running_requests",
    "max_total_tokens", "chunked_prefill_size", "context_length", "max_num_batched_tokens",
    "kv_cache_dtype", "speculative_algorithm", "speculative_num_draft_tokens",
    "speculative_num_steps", "speculative_eagle_topk", "disaggregation_mode",
    "disaggregation_decode_extra_slots", "disable_radix_cache", "disable_overlap_schedule",
    "enable_deepseek_v4_fp4_indexer", "enable_encoder_swa_bounded_replay", "dsv4_attn_backend",
)  # fmt: skip


def _ask(given: dict[str, Any]) -> Any:
    from dsv4doctor.errors import UsageError
    from dsv4doctor.flows.size_sources import SizeAsk, gpu_memory
    from dsv4doctor.flows.size_sweep import parse_sweep
    from dsv4doctor.units import GIB, parse_bytes, parse_tokens

    sources = [name for name in ("spec", "launch", "from_log", "base_url") if given[name]]
    if given["host"] or given["port"]:
        sources.append("base_url")
    if len(set(sources)) > 1:
        flags = ", ".join("--" + name.replace("_", "-") for name in sources)
        raise UsageError(f"{flags} each name the inputs", "one of them at a time")
    budget = parse_bytes(given["available"]) if given["available"] else None
    if given["available_gib"] is not None:
        budget = int(given["available_gib"] * GIB)
    if budget is not None and budget < 0:
        raise UsageError("the available bytes are negative", "--available 26.9GiB")
    return SizeAsk(
        args={
            key: given[key]
            for key in _ARGUMENTS
            if given[key] is not None and given[key] is not False
        },
        env=_environment(given["env"] or []),
        engine=_engine(given["engine"]),
        version=given["version"],
        model=given["model"],
        model_config=given["model_config"],
        available_bytes=budget,
        spec=given["spec"],
        launch=given["launch"],
        from_log=given["from_log"],
        endpoint=_endpoint(given),
        gpu_memory_bytes=gpu_memory(given["gpu"]) if given["gpu"] else None,
        weight_bytes=parse_bytes(given["weight_bytes"]) if given["weight_bytes"] else None,
        mem_fraction_static=given["mem_fraction_static"],
        gpus=given["gpus"],
        session_tokens=_session(given["session_tokens"], parse_tokens),
        sweep=parse_sweep(given["sweep"] or []),
    )


def _session(text: str | None, parse: Any) -> int | None:
    from dsv4doctor.errors import UsageError

    if text is None:
        return None
    tokens = int(parse(text))
    if tokens < 1:
        raise UsageError(f"--session-tokens {text!r} is no session", "at least one token, as 64K")
    return tokens


def _engine(name: str | None) -> str | None:
    from dsv4doctor.errors import UsageError

    if name not in (None, "sglang", "vllm"):
        raise UsageError(f"--engine {name!r} is unknown", "sglang or vllm")
    return name


def _environment(texts: list[str]) -> dict[str, str]:
    from dsv4doctor.errors import UsageError

    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise UsageError(f"--env {text!r} is no NAME=VALUE", "--env SGLANG_NAME=1")
        found[name] = value
    return found


def _endpoint(given: dict[str, Any]) -> Any:
    if not (given["base_url"] or given["host"] or given["port"]):
        return None
    from dsv4doctor.target import parse_endpoint

    url = given["base_url"] or f"{given['host'] or '127.0.0.1'}:{given['port'] or 30000}"
    return parse_endpoint(url, api_key=given["api_key"])


def _run_batch(path: Path) -> int:
    import sys

    from dsv4doctor.cli.console import say
    from dsv4doctor.flows.size_batch import BatchTally, size_lines
    from dsv4doctor.flows.size_sources import read_lines

    tally = BatchTally()
    write = sys.stdout.write
    for line in size_lines(read_lines(path, "--batch"), tally):
        write(line + "\n")
    sys.stdout.flush()
    if not tally.rows:
        say(f"{path} holds no spec: nothing was sized")
    return tally.exit_code


def _write_csv(path: Path, rows: Any) -> None:
    import sys

    from dsv4doctor.errors import DoctorError, UsageError
    from dsv4doctor.flows.size_sweep import to_csv

    if not rows:
        raise UsageError("--csv without --sweep has no rows", "--sweep INPUT=V1,V2")
    text = to_csv(rows)
    if str(path) == "-":
        sys.stdout.write(text)
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise DoctorError(
            f"cannot write {path}: {problem.strerror}", "give another --csv, or - for stdout"
        ) from problem
