"""A sizing's inputs from a JSON object: the `--spec` file, a line of `--batch`, a `config.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dsv4doctor.errors import UsageError
from dsv4doctor.sizing.architecture import FLASH, Architecture, find_architecture
from dsv4doctor.sizing.inputs import (
    DEFAULT_MAX_RUNNING_REQUESTS,
    DEFAULT_SWA_RATIO,
    INDEX_DTYPES,
    Inputs,
    as_mapping,
)
from dsv4doctor.sizing.versions import NEWEST

_LARGEST = 1 << 53  # past it a byte count is no longer exact as a float
ENGINES = ("sglang", "vllm")
IGNORED = ("layers", "allocation_executed")

# What a V4 model gets when speculation is asked for and its draft length is not.
DEFAULT_DRAFT_TOKENS = {"EAGLE": 4, "NEXTN": 4, "DSPARK": 6}

_COUNTS = (
    "available_bytes", "page_size", "max_running_requests", "max_total_tokens",
    "disaggregation_decode_extra_slots", "chunked_prefill_size", "context_len", "attn_dp_size",
    "pp_size", "pp_rank", "swa_prefix_tails", "draft_layers", "speculative_num_draft_tokens",
    "speculative_num_steps", "speculative_eagle_topk", "hisparse_host_to_device_ratio",
)  # fmt: skip
_FLAGS = ("disable_radix_cache", "disable_overlap_schedule", "encoder_replay")
_TEXTS = (
    "platform", "index_dtype", "speculative", "disaggregation_mode", "dsv4_attn_backend",
    "kv_cache_dtype", "kv_layout",
)  # fmt: skip
_MODEL_COUNTS = (
    "num_hidden_layers", "head_dim", "qk_rope_head_dim", "index_head_dim", "sliding_window",
)  # fmt: skip
_MODEL_LISTS = ("compress_ratios", "kv_source_layer_ids")
_NULLABLE = (
    "max_running_requests", "max_total_tokens", "chunked_prefill_size", "swa_prefix_tails",
    "speculative_num_draft_tokens", "speculative_num_steps", "speculative_eagle_topk",
    "speculative",
)  # fmt: skip
_AT_LEAST_ONE = (
    "page_size", "attn_dp_size", "pp_size", "context_len", "num_hidden_layers", "head_dim",
    "index_head_dim", "sliding_window", "hisparse_host_to_device_ratio",
)  # fmt: skip
KEYS = frozenset(
    (
        *_COUNTS, *_FLAGS, *_TEXTS, *_MODEL_COUNTS, *_MODEL_LISTS, *IGNORED,
        "model", "version", "engine", "env", "swa_full_tokens_ratio",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a JSON object asks: an engine's release and a rank's inputs."""

    version: str
    inputs: Inputs


def read_spec(data: Mapping[str, Any]) -> Spec:
    """The SGLang sizing that `data` describes.

    Absent keys take what a V4 server would resolve: 256 requests, an SWA ratio of 0.1 (V4.1: none,
    cap mode), the engine's draft length. A null means that the operator gave none.

    Raises:
        UsageError: an unknown key, a value of the wrong type or range, an unknown model.
    """
    unknown = sorted(set(data) - KEYS)
    if unknown:
        raise UsageError(f"unknown spec key {unknown[0]!r}", f"known: {', '.join(sorted(KEYS))}")
    if "available_bytes" not in data:
        raise UsageError("available_bytes is missing", "the bytes a rank's KV pools get")
    model = read_model(data)
    values: dict[str, Any] = {}
    for key in _COUNTS:
        if key in data:
            values[key] = _count(key, data[key])
    for key in _FLAGS:
        if key in data:
            values[key] = _flag(key, data[key])
    for key in _TEXTS:
        if key in data:
            values[key] = _text(key, data[key])
    values["env"] = _environment(data.get("env"))
    values["swa_full_tokens_ratio"] = _ratio(data, model)
    if "max_running_requests" not in data:
        values["max_running_requests"] = DEFAULT_MAX_RUNNING_REQUESTS
    if "context_len" not in data:
        values["context_len"] = model.context_len
    return Spec(
        version=_text("version", data.get("version", NEWEST)) or NEWEST,
        inputs=checked(Inputs(model=model, **_with_draft(values, model))),
    )


def _with_draft(values: dict[str, Any], model: Architecture) -> dict[str, Any]:
    """`values` with the draft's length and layers that the algorithm implies."""
    algorithm = values.get("speculative")
    if algorithm is None:
        return values
    if values.get("speculative_num_draft_tokens") is None:
        values["speculative_num_draft_tokens"] = DEFAULT_DRAFT_TOKENS.get(algorithm.upper(), 4)
    if values.get("draft_layers") is None:
        values["draft_layers"] = model.draft_layers if algorithm.upper() == "DSPARK" else 1
    return values


def checked(inputs: Inputs) -> Inputs:
    """`inputs` when its values are of the known kinds and in range.

    Raises:
        UsageError: naming the value.
    """
    if inputs.index_dtype not in INDEX_DTYPES:
        raise UsageError(
            f"index_dtype {inputs.index_dtype!r} is unknown", f"one of {', '.join(INDEX_DTYPES)}"
        )
    if not inputs.platform.startswith(("cuda", "hip")):
        raise UsageError(
            f"platform {inputs.platform!r} is not covered",
            "cuda, cuda-sm90, cuda-sm100, cuda-sm120, hip or hip-gfx95",
        )
    if inputs.disaggregation_mode not in ("null", "prefill", "decode"):
        raise UsageError(
            f"disaggregation_mode {inputs.disaggregation_mode!r} is unknown",
            "null, prefill or decode",
        )
    if inputs.pp_rank >= inputs.pp_size or inputs.pp_size > inputs.model.num_hidden_layers:
        raise UsageError(
            f"pipeline rank {inputs.pp_rank} of {inputs.pp_size} holds no layer of "
            f"{inputs.model.num_hidden_layers}",
            "pp_rank from 0 to pp_size - 1, pp_size at most the layers",
        )
    try:
        int(inputs.env.get("SGLANG_SWA_EVICTION_INTERVAL", 0))
    except ValueError:
        value = inputs.env["SGLANG_SWA_EVICTION_INTERVAL"]
        raise UsageError(
            f"SGLANG_SWA_EVICTION_INTERVAL={value!r} is no integer", "a number of tokens, like 128"
        ) from None
    return inputs


def _count(key: str, value: Any) -> int | None:
    if value is None and key in _NULLABLE:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{key} must be an integer, not {value!r}", f"give {key} as a number")
    # -1 is how an operator turns chunked prefill off.
    least = 1 if key in _AT_LEAST_ONE else -1 if key == "chunked_prefill_size" else 0
    if not least <= value <= _LARGEST:
        raise UsageError(f"{key} is {value}, outside {least} … 2^53", f"a sensible {key}")
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{key} must be true or false, not {value!r}", f"{key}: true or false")
    return value


def _text(key: str, value: Any) -> str | None:
    if value is None and key in _NULLABLE:
        return None
    if value is None and key == "disaggregation_mode":
        return "null"
    if not isinstance(value, str):
        raise UsageError(f"{key} must be a string, not {value!r}", f"give {key} as text")
    return value


def _ratio(data: Mapping[str, Any], model: Architecture) -> float | None:
    if "swa_full_tokens_ratio" not in data:
        return None if model.family == "v41" else DEFAULT_SWA_RATIO
    value = data["swa_full_tokens_ratio"]
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not 0 <= value <= 1:
        raise UsageError(
            f"swa_full_tokens_ratio must be from 0 to 1, not {value!r}", "0.1 is the V4 default"
        )
    return float(value)


def _environment(value: Any) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(f"env must be an object, not {value!r}", 'env: {"NAME": "value"}')
    return as_mapping(value)


def read_model(data: Mapping[str, Any]) -> Architecture:
    """The named model with the fields of `data` laid over it; a full one needs no known name.

    Raises:
        UsageError: if a field is of the wrong kind, or the name is unknown and fields are missing.
    """
    name = data.get("model", FLASH.name)
    if not isinstance(name, str):
        raise UsageError(f"model must be a string, not {name!r}", "V4-Flash, V4-Pro, V4.1-Flash")
    lists = tuple(_layer_list(key, data[key]) if key in data else None for key in _MODEL_LISTS)
    counts = tuple(_count(key, data[key]) if key in data else None for key in _MODEL_COUNTS)
    return _overlay(name, lists, counts)


def _layer_list(key: str, value: Any) -> tuple[int, ...]:
    good = isinstance(value, list | tuple) and all(
        isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value
    )
    if not good:
        raise UsageError(f"{key} must be a list of layer numbers", f"{key}: [0, 0, 4, 128, …]")
    return tuple(value)


@lru_cache(maxsize=256)
def _overlay(
    name: str, lists: tuple[tuple[int, ...] | None, ...], counts: tuple[int | None, ...]
) -> Architecture:
    keys = (*_MODEL_LISTS, *_MODEL_COUNTS)
    pairs = zip(keys, (*lists, *counts), strict=True)
    given: dict[str, Any] = {key: value for key, value in pairs if value is not None}
    complete = "compress_ratios" in given and "num_hidden_layers" in given
    try:
        base = find_architecture(name)
    except UsageError:
        if not complete:
            raise
        base = replace(FLASH, name=name)
    if complete and "kv_source_layer_ids" not in given:
        given["kv_source_layer_ids"] = ()
    model = replace(base, name=name, **given)
    if len(model.compress_ratios) < model.num_hidden_layers:
        raise UsageError(
            f"compress_ratios has {len(model.compress_ratios)} entries for "
            f"{model.num_hidden_layers} layers",
            "one entry a layer, and one for each MTP or draft stage",
        )
    if any(layer >= len(model.compress_ratios) for layer in model.kv_source_layer_ids):
        raise UsageError(
            "kv_source_layer_ids names a layer past compress_ratios", "layer numbers from 0"
        )
    if set(model.layer_ratios) & {1, 2}:
        model = replace(model, family="v41")
    return model
