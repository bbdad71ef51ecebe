"""What the lab was launched with: SGLang's switches where they exist, and the lab's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dsv4doctor.errors import UsageError
from dsv4doctor.lab.releases import release_named

DEFAULT_MODEL_PATH = "deepseek-ai/DeepSeek-V4-Lab"
DEFAULT_FAULTS = ("index-race",)
DEFAULT_PARSER_GROUP = "B"
BF16_INDEX_K_VARIABLE = "SGLANG_DSV4_BF16_INDEX_K"
FP4_INDEXER_FLAG = "--enable-deepseek-v4-fp4-indexer"
PARSER_GROUPS = ("A", "B", "C")
UNIFIED, PREFILL, DECODE = "null", "prefill", "decode"

# How long no request may have come before a round is closed. Clients on two busy cores answer a
# finished response within 60 ms; four times that keeps a round whole, and is paid once a round.
DEFAULT_QUIET_MS = 250.0
DEFAULT_ITL_MS = 5.0
DEFAULT_TTFT_MS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """One launch, as far as the server needs to know; the engine has its own settings.

    `disaggregation`: this process is the router of two others. `disaggregation_mode`: it is one of
    the two. `arguments` is the command line behind `lab serve`, for processes started from here.
    """

    host: str = "127.0.0.1"
    port: int = 0
    model_path: str = DEFAULT_MODEL_PATH
    served_model_name: str = DEFAULT_MODEL_PATH
    index_k: str = "fp8"
    hicache: bool = False
    hicache_ratio: float = 4.0
    overlap_schedule: bool = True
    as_version: str | None = None
    faults: tuple[str, ...] = DEFAULT_FAULTS
    fixes: tuple[str, ...] = ()
    seed: int = 0
    ground_truth: str | None = None
    record: str | None = None
    parser_group: str = DEFAULT_PARSER_GROUP
    tool_call_parser: str | None = "deepseekv4"
    reasoning_parser: str | None = None
    max_running_requests: int = 256
    context_length: int = 1_048_576
    api_key: str | None = None
    itl_ms: float = DEFAULT_ITL_MS
    ttft_ms: float = DEFAULT_TTFT_MS
    quiet_ms: float = DEFAULT_QUIET_MS
    exit_with_stdin: bool = False
    disaggregation: bool = False
    disaggregation_mode: str = UNIFIED
    bootstrap_port: int = 0
    launch_command: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def default_faults(as_version: str | None) -> tuple[str, ...]:
    """What is wrong if nothing is said: the case's fault, or what the release leaves open."""
    return DEFAULT_FAULTS if as_version is None else ("none",)


def default_parser_group(as_version: str | None) -> str:
    """The parser of the release that the lab stands for."""
    if as_version is None:
        return DEFAULT_PARSER_GROUP
    return release_named(as_version).parser_group


def resolve_index_k(
    chosen: str | None, *, fp4_indexer: bool, environment: Mapping[str, str]
) -> str:
    """The index-K dtype: `--index-k`, else SGLang's switch and variable, else fp8 as SGLang has it.

    Raises:
        UsageError: if two of them disagree: a launch must be what it says.
    """
    bf16 = environment.get(BF16_INDEX_K_VARIABLE, "").lower() in {"1", "true", "yes"}
    said = {
        "--index-k": chosen,
        FP4_INDEXER_FLAG: "fp4" if fp4_indexer else None,
        f"{BF16_INDEX_K_VARIABLE}=1": "bf16" if bf16 else None,
    }
    values = {value for value in said.values() if value is not None}
    if len(values) > 1:
        contradiction = " and ".join(f"{name} ({value})" for name, value in said.items() if value)
        raise UsageError(f"the index-K dtype is given twice: {contradiction}", "drop one of them")
    return values.pop() if values else "fp8"
