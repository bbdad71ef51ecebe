"""A spec's keys and values: what is taken, and which one line says what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from builders_sizing import AVAILABLE, spec

from dsv4doctor.errors import UsageError
from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.checks import refuse
from dsv4doctor.sizing.dsa import DsaModel
from dsv4doctor.sizing.modelconfig import read_model_config
from dsv4doctor.sizing.refusal import Refusal
from dsv4doctor.sizing.spec import read_spec
from dsv4doctor.sizing.versions import accounting_of
from dsv4doctor.sizing.vllm import read_vllm_spec


def test_defaults_are_what_a_v4_server_resolves() -> None:
    inputs = read_spec({"available_bytes": AVAILABLE}).inputs
    assert inputs.model.name == "V4-Flash"
    assert inputs.max_running_requests == 256
    assert inputs.swa_full_tokens_ratio == 0.1
    v41 = read_spec({"available_bytes": AVAILABLE, "model": "V4.1-Flash"}).inputs
    assert v41.swa_full_tokens_ratio is None


def test_draft_follows_the_algorithm() -> None:
    inputs = read_spec(spec(model="V4.1-Flash", speculative="DSPARK")).inputs
    assert (inputs.speculative_num_draft_tokens, inputs.draft_layers) == (6, 3)
    inputs = read_spec(spec(speculative="EAGLE", speculative_num_draft_tokens=2)).inputs
    assert (inputs.speculative_num_draft_tokens, inputs.draft_layers) == (2, 1)


def test_golden_keys_that_describe_a_row_are_ignored() -> None:
    read_spec(spec(layers={"4": 21}, allocation_executed=True))


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        pytest.param({"max_runing_requests": 3}, "max_runing_requests", id="unknown-key"),
        pytest.param({"available_bytes": "26"}, "available_bytes", id="text-for-a-number"),
        pytest.param({"available_bytes": -1}, "available_bytes", id="negative"),
        pytest.param({"available_bytes": 10**400}, "available_bytes", id="beyond-floats"),
        pytest.param({"available_bytes": True}, "available_bytes", id="bool-for-a-number"),
        pytest.param({"page_size": 0}, "page_size", id="zero-page"),
        pytest.param({"page_size": 1.5}, "page_size", id="fraction"),
        pytest.param({"attn_dp_size": 0}, "attn_dp_size", id="zero-dp"),
        pytest.param({"swa_full_tokens_ratio": float("nan")}, "swa_full_tokens_ratio", id="nan"),
        pytest.param({"swa_full_tokens_ratio": 2}, "swa_full_tokens_ratio", id="ratio-above-1"),
        pytest.param({"index_dtype": "int8"}, "int8", id="index-format"),
        pytest.param({"platform": "npu"}, "npu", id="platform"),
        pytest.param({"disaggregation_mode": "both"}, "both", id="pd-mode"),
        pytest.param({"model": "Qwen3"}, "Qwen3", id="other-model"),
        pytest.param({"model": 3}, "model", id="model-number"),
        pytest.param({"compress_ratios": [4, "x"]}, "compress_ratios", id="layer-text"),
        pytest.param({"compress_ratios": [4, 4]}, "compress_ratios", id="list-too-short"),
        pytest.param({"kv_source_layer_ids": [99]}, "kv_source_layer_ids", id="layer-past-list"),
        pytest.param({"env": "A=1"}, "env", id="env-text"),
        pytest.param({"disable_radix_cache": 1}, "disable_radix_cache", id="number-for-a-flag"),
        pytest.param({"pp_size": 2, "pp_rank": 2}, "pipeline", id="pp-rank"),
        pytest.param(
            {"env": {"SGLANG_SWA_EVICTION_INTERVAL": "often"}}, "EVICTION", id="interval-text"
        ),
    ],
)
def test_one_line_names_what_is_wrong(keys: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_spec(spec(**keys))
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_the_budget_is_demanded() -> None:
    with pytest.raises(UsageError, match="available_bytes"):
        read_spec({"model": "V4-Flash"})


@pytest.mark.parametrize(
    ("version", "keys", "words"),
    [
        pytest.param("0.5.20", {"page_size": 64}, "multiple of 128", id="page"),
        pytest.param(
            "0.5.13",
            {"speculative": "EAGLE", "env": {"SGLANG_OPT_USE_ONLINE_COMPRESS": "1"}},
            "online c128 does not support MTP",
            id="online-and-draft",
        ),
        pytest.param(
            "0.5.14",
            {
                "env": {
                    "SGLANG_OPT_USE_ONLINE_COMPRESS": "1",
                    "SGLANG_DSV4_COMPRESS_STATE_DTYPE": "bf16",
                }
            },
            "must stay float32",
            id="online-and-bf16-state",
        ),
        pytest.param(
            "0.5.18",
            {"speculative": "EAGLE", "speculative_num_draft_tokens": 11},
            "c4 compress state",
            id="draft-longer-than-the-ring",
        ),
        pytest.param("0.5.20", {"model": "V4.1-Flash"}, "ratio 1 or 2", id="v41-before-21"),
        pytest.param(
            "0.5.21",
            {"env": {"SGLANG_DSV4_KV_LAYOUT": "v41"}, "platform": "cuda-sm120"},
            "SM100",
            id="v41-layout-on-sm120",
        ),
        pytest.param(
            "0.5.21",
            {
                "platform": "hip-gfx95",
                "disaggregation_mode": "decode",
                "env": {
                    "SGLANG_HACK_FLASHMLA_BACKEND": "unified_kv_triton",
                    "SGLANG_DSV4_UNIFIED_KV_FP8": "1",
                },
            },
            "PD disaggregation",
            id="unified-fp8-and-pd",
        ),
        pytest.param("0.5.23", {"head_dim": 576}, "584", id="other-row"),
        pytest.param("0.5.23", {"compress_ratios": [8] * 43}, "compression ratio: 8", id="ratio"),
    ],
)
def test_what_a_release_refuses(version: str, keys: dict[str, Any], words: str) -> None:
    read = read_spec(spec(version=version, **keys))
    with pytest.raises(Refusal, match=words):
        refuse(read.inputs, _accounting(version))


@pytest.mark.parametrize(
    ("version", "keys"),
    [
        pytest.param(
            "0.5.17",
            {"speculative": "EAGLE", "speculative_num_draft_tokens": 11},
            id="17-has-no-bound",
        ),
        pytest.param(
            "0.5.16",
            {
                "env": {
                    "SGLANG_OPT_USE_ONLINE_COMPRESS": "1",
                    "SGLANG_DSV4_COMPRESS_STATE_DTYPE": "bf16",
                }
            },
            id="16-allows-bf16-state",
        ),
        pytest.param(
            "0.5.14",
            {
                "speculative": "EAGLE",
                "env": {
                    "SGLANG_OPT_USE_ONLINE_COMPRESS": "1",
                    "SGLANG_EXPERIMENTAL_ONLINE_C128_MTP": "1",
                },
            },
            id="experimental-banks",
        ),
    ],
)
def test_what_a_release_allows(version: str, keys: dict[str, Any]) -> None:
    refuse(read_spec(spec(version=version, **keys)).inputs, _accounting(version))


def _accounting(version: str) -> Accounting:
    return accounting_of(version)[0]


V41_CONFIG = {
    "model_type": "deepseek_v41",
    "num_hidden_layers": 40,
    "compress_ratios": [0, 0, *([2] * 18), *([1] * 20), 0, 0, 0],
    "kv_source_layer_ids": [2, 8, 14, 20],
    "num_nextn_predict_layers": 3,
}


def test_config_json_of_v41() -> None:
    model = read_model_config(V41_CONFIG, "x")
    assert not isinstance(model, DsaModel)
    assert (model.family, model.draft_layers) == ("v41", 3)


def test_config_json_of_v32_is_the_dsa_path() -> None:
    config = {"model_type": "deepseek_v32", "num_hidden_layers": 61, "index_head_dim": 128}
    model = read_model_config(config, "x")
    assert isinstance(model, DsaModel)
    assert model.index_row_bytes == 132
    assert model.bytes_per_token(fp8=True) == 61 * (656 + 132)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param({"model_type": "llama"}, "llama", id="other-family"),
        pytest.param({"model_type": "deepseek_v4"}, "num_hidden_layers", id="empty"),
        pytest.param(
            {"model_type": "deepseek_v4", "num_hidden_layers": 43}, "compress_ratios", id="no-list"
        ),
        pytest.param(V41_CONFIG | {"compress_ratios": [4]}, "1 entries", id="short-list"),
        pytest.param(V41_CONFIG | {"num_hidden_layers": "many"}, "many", id="text"),
        pytest.param(V41_CONFIG | {"kv_source_layer_ids": [80]}, "past", id="source-past-list"),
    ],
)
def test_broken_config_json(config: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_model_config(config, "x")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        pytest.param({"index": "bf16"}, "bf16", id="index"),
        pytest.param({"kv": "int4"}, "int4", id="kv"),
        pytest.param({"page_size": 256}, "page_size", id="sglang-key"),
        pytest.param({"max_model_len": 0}, "max_model_len", id="zero"),
        pytest.param({"model": "V4.1-Flash"}, "not executed", id="v41"),
    ],
)
def test_vllm_spec_errors(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_vllm_spec({"engine": "vllm", "model": "V4-Flash", "available_bytes": 1 << 35} | keys)
