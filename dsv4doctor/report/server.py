"""What the server says of its configuration, and the launch line that a bug form asks for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.report.document import Block, Command, Facts, Note, Section
from dsv4doctor.report.members import mapping
from dsv4doctor.units import many

# The launch arguments that decide about KV, index and output; the rest stay in summary.json.
_TELLING_ARGUMENTS = (
    "model_path",
    "tp_size",
    "dp_size",
    "ep_size",
    "pp_size",
    "kv_cache_dtype",
    "page_size",
    "mem_fraction_static",
    "max_running_requests",
    "chunked_prefill_size",
    "context_length",
    "enable_hierarchical_cache",
    "hicache_ratio",
    "hicache_size",
    "hicache_io_backend",
    "hicache_mem_layout",
    "hicache_write_policy",
    "hicache_storage_backend",
    "disable_radix_cache",
    "disable_overlap_schedule",
    "disaggregation_mode",
    "disaggregation_transfer_backend",
    "attention_backend",
    "speculative_algorithm",
    "tool_call_parser",
    "reasoning_parser",
    "index_k",
)
# Told by /server_info, and no flag of `launch_server`.
_NO_FLAGS = frozenset({"index_k"})


def server_section(summary: Mapping[str, Any]) -> Section:
    """What the server says of its own configuration."""
    arguments = mapping(mapping(summary.get("target")).get("server_args"))
    if not arguments:
        note = Note(text="It says nothing of its launch arguments (no /server_info).")
        return Section(title="The server's configuration", blocks=(note,))
    telling = [name for name in _TELLING_ARGUMENTS if arguments.get(name) is not None]
    rows = tuple((name, _argument(arguments[name])) for name in telling)
    blocks: list[Block] = [Facts(rows=rows)] if rows else []
    blocks.append(launch_line(arguments, telling))
    rest = len(arguments) - len(telling)
    if rest:
        blocks.append(Note(text=f"{many(rest, 'further argument')} in summary.json."))
    return Section(title="The server's configuration", blocks=tuple(blocks))


def launch_line(arguments: Mapping[str, Any], telling: Sequence[str]) -> Command:
    """The line that the server says it was launched with, or one made of its `telling` arguments.

    `arguments` is what `/server_info` says, SGLang's argument names with underscores.
    """
    environment = [f"{name}={value}" for name, value in mapping(arguments.get("env_vars")).items()]
    said = arguments.get("launch_command")
    if isinstance(said, str) and said:
        line = " ".join([*map(shlex.quote, environment), said])
        return Command(line=line, why="the launch line, as the server tells it")
    words = [*environment, "python", "-m", "sglang.launch_server"]
    for name in telling:
        if name not in _NO_FLAGS:
            words += _flag(name, arguments[name])
    return Command(
        line=shlex.join(words), why="the launch line, put together from what /server_info says"
    )


def _flag(name: str, value: Any) -> list[str]:
    """A flag in SGLang's spelling; a switch that is off is not there."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, str(value)] if isinstance(value, str | int | float) else []


def _argument(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
