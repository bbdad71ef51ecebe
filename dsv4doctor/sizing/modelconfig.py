"""A model's `config.json` as sizing reads it: DeepSeek-V4, V4.1, or V3.2's DSA, told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsv4doctor.errors import UsageError
from dsv4doctor.sizing.architecture import Architecture
from dsv4doctor.sizing.dsa import DsaModel

V4_TYPES = ("deepseek_v4", "deepseek_v41")
DSA_TYPES = ("deepseek_v32", "glm_moe_dsa")


def read_model_config(config: Mapping[str, Any], name: str) -> Architecture | DsaModel:
    """The model that `config` describes.

    Raises:
        UsageError: a field is missing or of the wrong kind, or the model is of another family.
    """
    text = config.get("text_config")
    if isinstance(text, Mapping) and "num_hidden_layers" in text:
        config = {**config, **text}
    kind = str(config.get("model_type", ""))
    has_ratios = bool(config.get("compress_ratios"))
    if kind in DSA_TYPES or (not has_ratios and "index_topk" in config):
        return DsaModel(
            name=name,
            num_hidden_layers=_integer(config, "num_hidden_layers"),
            kv_lora_rank=_integer(config, "kv_lora_rank", 512),
            qk_rope_head_dim=_integer(config, "qk_rope_head_dim", 64),
            index_head_dim=_integer(config, "index_head_dim", 128),
        )
    if kind not in V4_TYPES and not has_ratios:
        raise UsageError(
            f"{name} is of model_type {kind or 'unknown'!r}, neither DeepSeek-V4 nor V3.2",
            "a config.json with model_type deepseek_v4, deepseek_v41 or deepseek_v32",
        )
    return _v4_model(config, name, kind)


def _v4_model(config: Mapping[str, Any], name: str, kind: str) -> Architecture:
    layers = _integer(config, "num_hidden_layers")
    ratios = _layers(config, "compress_ratios")
    if len(ratios) < layers:
        raise UsageError(
            f"{name}: compress_ratios has {len(ratios)} entries for {layers} layers",
            "one entry a layer, and one for each MTP or draft stage",
        )
    sources = _layers(config, "kv_source_layer_ids", ())
    if any(layer >= len(ratios) for layer in sources):
        raise UsageError(
            f"{name}: kv_source_layer_ids names a layer past compress_ratios",
            "layer numbers from 0",
        )
    has_low_ratios = bool(set(ratios[:layers]) & {1, 2})
    return Architecture(
        name=name,
        num_hidden_layers=layers,
        compress_ratios=ratios,
        kv_source_layer_ids=sources,
        head_dim=_integer(config, "head_dim", 512),
        qk_rope_head_dim=_integer(config, "qk_rope_head_dim", 64),
        index_head_dim=_integer(config, "index_head_dim", 128),
        sliding_window=_integer(config, "sliding_window", 128),
        context_len=_integer(config, "max_position_embeddings", 1_048_576),
        draft_layers=_integer(config, "num_nextn_predict_layers", 1),
        family="v41" if kind == "deepseek_v41" or has_low_ratios else "v4",
    )


def _integer(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = config.get(key, default)
    if value is None:
        if key in config and default is not None:
            return default
        raise UsageError(f"the model's config has no {key}", "the config.json of the model itself")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 40:
        raise UsageError(
            f"the model's config gives {key} as {value!r}", f"a positive integer for {key}"
        )
    return value


def _layers(
    config: Mapping[str, Any], key: str, default: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    value = config.get(key)
    if value is None:
        if default is None:
            raise UsageError(
                f"the model's config has no {key}", "the config.json of the model itself"
            )
        return default
    good = isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value
    )
    if not good:
        raise UsageError(f"the model's config gives {key} as {value!r}", "a list of integers")
    return tuple(value)
