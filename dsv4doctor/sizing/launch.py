"""A user's own launch command, read: environment, engine, flags in the server's names.

Understands plain commands, `export A=B && …`, `docker run -e A=B …`, `sglang serve`, `python -m
sglang.launch_server` and `vllm serve`; what it does not know it passes over.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.errors import UsageError

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_ALIASES = {
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "dp": "dp_size",
    "data_parallel_size": "dp_size",
    "pp": "pp_size",
    "pipeline_parallel_size": "pp_size",
    "model": "model_path",
    "enable_hicache": "enable_hierarchical_cache",
    "speculative_algo": "speculative_algorithm",
    "max_model_len": "context_length",
}
# A decode server keeps this many request slots per request for requests in transfer, to 32 of them.
_PREALLOC_FACTOR, _PREALLOC_LIMIT = 2, 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A launch command: `engine` is sglang or vllm; `flags` in underscores, values as written."""

    engine: str
    flags: Mapping[str, str | bool]
    env: Mapping[str, str]


def read_launch(command: str) -> Launch:
    """The launch that `command` describes.

    Raises:
        UsageError: quotes that do not close, or no launch of a known engine.
    """
    try:
        words = shlex.split(command.replace("\\\n", " ").replace("\\\r\n", " "), comments=True)
    except ValueError as problem:
        raise UsageError(
            f"the launch command cannot be read: {str(problem).lower()}",
            "close every quote; put the whole command in single quotes",
        ) from problem
    start, engine = _find_engine(words)
    env = dict(_environment(words[:start]))
    flags = _flags(words[start + 1 :])
    return Launch(engine=engine, flags=flags, env=env)


def _find_engine(words: Sequence[str]) -> tuple[int, str]:
    for place, word in enumerate(words):
        name = word.rsplit("/", 1)[-1]
        if "sglang_router" in name or "launch_router" in name:
            raise UsageError("this launches a router, which has no KV pools", "a server's launch")
        following = words[place + 1] if place + 1 < len(words) else ""
        if name in ("sglang.launch_server", "launch_server.py"):
            return place, "sglang"
        if name == "sglang" and following in ("serve", "launch"):
            return place + 1, "sglang"
        if name == "vllm" and following == "serve":
            return place + 1, "vllm"
        if name.startswith("vllm.entrypoints"):
            return place, "vllm"
    if any(word.startswith("--") for word in words):
        # Bare flags, as people paste them.
        return -1, "sglang"
    raise UsageError(
        "no sglang.launch_server, `sglang serve` or `vllm serve` in the launch command",
        "the whole command as it was run",
    )


def _environment(words: Sequence[str]) -> Mapping[str, str]:
    found = {}
    for word in words:
        text = word.rstrip(";")
        for head in ("-e=", "--env="):
            text = text.removeprefix(head)
        if _ASSIGNMENT.fullmatch(text) and not text.startswith("-"):
            name, value = text.split("=", 1)
            found[name] = value
    return found


def _flags(words: Sequence[str]) -> dict[str, str | bool]:
    flags: dict[str, str | bool] = {}
    if words and not words[0].startswith("-") and words[0] not in ("&&", ";", "|"):
        flags["model_path"] = words[0]
    for place, word in enumerate(words):
        if word in ("&&", ";", "|", "||", "&"):
            break
        if not word.startswith("--"):
            continue
        name, separator, value = word[2:].partition("=")
        key = name.replace("-", "_")
        key = _ALIASES.get(key, key)
        following = words[place + 1] if place + 1 < len(words) else "--"
        if separator:
            flags[key] = value
        elif following.startswith("--") or following in ("&&", ";", "|", "||", "&"):
            flags[key] = True
        else:
            flags[key] = following
    return flags


def sglang_spec(args: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """The spec (`spec.read_spec`'s keys) that server arguments and environment resolve to.

    `args` are flags of a launch, or `/server_info`'s fields, in underscores. What V4 forces at boot
    (page size 256, fp8 KV rows) is forced here, too. `available_bytes` is not among the result.

    Raises:
        UsageError: a value of the wrong kind.
    """
    spec: dict[str, Any] = {"env": dict(env)}
    for key, target in (
        ("max_running_requests", "max_running_requests"),
        ("max_total_tokens", "max_total_tokens"),
        ("chunked_prefill_size", "chunked_prefill_size"),
        ("swa_prefix_tails", "swa_prefix_tails"),
        ("context_length", "context_len"),
        ("speculative_num_draft_tokens", "speculative_num_draft_tokens"),
        ("speculative_num_steps", "speculative_num_steps"),
        ("speculative_eagle_topk", "speculative_eagle_topk"),
        ("pp_size", "pp_size"),
        ("pp_rank", "pp_rank"),
        ("page_size", "page_size"),
    ):
        if _given(args, key):
            spec[target] = _integer(key, args[key])
    if _given(args, "swa_full_tokens_ratio"):
        spec["swa_full_tokens_ratio"] = _number("swa_full_tokens_ratio", args)
    for flag in ("disable_radix_cache", "disable_overlap_schedule"):
        spec[flag] = _truth(args.get(flag))
    spec["encoder_replay"] = _truth(args.get("enable_encoder_swa_bounded_replay"))
    for key, target in (
        ("dsv4_attn_backend", "dsv4_attn_backend"),
        ("speculative_algorithm", "speculative"),
        ("disaggregation_mode", "disaggregation_mode"),
        ("platform", "platform"),
        ("kv_layout", "kv_layout"),
    ):
        if _given(args, key):
            spec[target] = str(args[key])
    spec["index_dtype"] = _index_dtype(args, env)
    spec["attn_dp_size"] = attn_dp_size(args)
    _add_extra_slots(args, spec)
    _add_hisparse(args, spec)
    return spec


def attn_dp_size(args: Mapping[str, Any]) -> int:
    """KV pools a replica keeps: its data-parallel workers under DP attention, else one."""
    if _given(args, "attn_dp_size"):
        return _integer("attn_dp_size", args["attn_dp_size"])
    if _truth(args.get("enable_dp_attention")) and _given(args, "dp_size"):
        return _integer("dp_size", args["dp_size"])
    return 1


def _index_dtype(args: Mapping[str, Any], env: Mapping[str, str]) -> str:
    if _given(args, "index_dtype"):
        return str(args["index_dtype"])
    if _truth(args.get("enable_deepseek_v4_fp4_indexer")):
        return "fp4"
    # The switch of the patched server that the tool grew out of; no release has it.
    return "bf16" if _truth(env.get("SGLANG_DSV4_BF16_INDEX_K")) else "fp8"


def _add_extra_slots(args: Mapping[str, Any], spec: dict[str, Any]) -> None:
    if spec.get("disaggregation_mode") != "decode":
        return
    if _given(args, "disaggregation_decode_extra_slots"):
        key = "disaggregation_decode_extra_slots"
        spec[key] = _integer(key, args[key])
        return
    requests = spec.get("max_running_requests")
    if requests is not None:
        per_worker = requests // max(1, spec["attn_dp_size"])
        if per_worker <= _PREALLOC_LIMIT:
            spec["disaggregation_decode_extra_slots"] = _PREALLOC_FACTOR * per_worker


def _add_hisparse(args: Mapping[str, Any], spec: dict[str, Any]) -> None:
    if not _truth(args.get("enable_hisparse")):
        return
    config = args.get("hisparse_config") or "{}"
    try:
        parsed = json.loads(config) if isinstance(config, str) else config
        ratio = int(dict(parsed).get("host_to_device_ratio", 1))
    except (ValueError, TypeError) as problem:
        raise UsageError(f"--hisparse-config {config!r} is no JSON object", "a JSON object") from (
            problem
        )
    spec["hisparse_host_to_device_ratio"] = ratio


def vllm_spec(args: Mapping[str, Any]) -> dict[str, Any]:
    """The vLLM spec (`vllm.read_vllm_spec`'s keys) that the flags resolve to, without the bytes.

    Raises:
        UsageError: if a flag's value cannot be read.
    """
    spec: dict[str, Any] = {"engine": "vllm"}
    for key, target in (
        ("context_length", "max_model_len"),
        ("max_num_batched_tokens", "max_num_batched_tokens"),
        ("num_gpu_blocks_override", "num_gpu_blocks_override"),
    ):
        if _given(args, key):
            spec[target] = _integer(key, args[key])
    kv = str(args.get("kv_cache_dtype") or "auto")
    spec["kv"] = "bf16" if kv in ("bf16", "bfloat16") else "fp8_ds_mla"
    config = args.get("attention_config")
    if isinstance(config, str):
        asked = _json_object("--attention-config", config)
        spec["index"] = str(asked.get("indexer_kv_dtype") or "fp8")
    if _given(args, "index_dtype"):
        spec["index"] = str(args["index_dtype"])
    return spec


def _json_object(flag: str, text: str) -> dict[str, Any]:
    hint = "give a JSON object"
    try:
        value = json.loads(text)
    except ValueError as problem:
        raise UsageError(f"{flag} {text!r} is no JSON", hint) from problem
    if not isinstance(value, dict):
        raise UsageError(f"{flag} {text!r} is no JSON object", hint)
    return value


def _given(args: Mapping[str, Any], key: str) -> bool:
    return args.get(key) is not None


def _truth(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("1", "true", "yes", "y", "on")
    return bool(value)


def _integer(key: str, value: Any) -> int:
    try:
        return int(str(value).replace("_", ""))
    except ValueError:
        flag = key.replace("_", "-")
        raise UsageError(f"--{flag} {value!r} is no integer", f"--{flag} with a number") from None


def _number(key: str, args: Mapping[str, Any]) -> float:
    try:
        return float(args[key])
    except (TypeError, ValueError):
        flag = key.replace("_", "-")
        raise UsageError(
            f"--{flag} {args[key]!r} is no number", f"--{flag} with a number"
        ) from None
