"""Launch commands as people write them, and what a server makes of their flags."""

from __future__ import annotations

import pytest

from dsv4doctor.errors import UsageError
from dsv4doctor.sizing.launch import read_launch, sglang_spec, vllm_spec

PLAIN = (
    "SGLANG_DSV4_BF16_INDEX_K=1 python -m sglang.launch_server --model-path "
    "deepseek-ai/DeepSeek-V4-Flash --tp 4 --max-running-requests=64 --disable-overlap-schedule"
)


def test_plain_command() -> None:
    launch = read_launch(PLAIN)
    assert launch.engine == "sglang"
    assert launch.env == {"SGLANG_DSV4_BF16_INDEX_K": "1"}
    assert launch.flags["tp_size"] == "4"
    assert launch.flags["max_running_requests"] == "64"
    assert launch.flags["disable_overlap_schedule"] is True


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        pytest.param("sglang serve --model-path m --tp 8", "sglang", id="sglang-serve"),
        pytest.param("/opt/venv/bin/sglang serve m --tp 8", "sglang", id="path"),
        pytest.param("vllm serve m --tensor-parallel-size 8", "vllm", id="vllm"),
        pytest.param("--model-path m --tp 8", "sglang", id="flags-alone"),
        pytest.param(
            "docker run --gpus all -e A=1 img python3 -m sglang.launch_server --model-path m \\\n"
            "  --tp 8 # the record's",
            "sglang",
            id="docker-many-lines-comment",
        ),
        pytest.param(
            "export A=1 && sglang serve --model-path m --tp 8 && echo done", "sglang", id="export"
        ),
    ],
)
def test_forms(command: str, engine: str) -> None:
    launch = read_launch(command)
    assert launch.engine == engine
    assert launch.flags["model_path"] == "m"
    assert launch.flags["tp_size"] == "8"


def test_docker_environment() -> None:
    launch = read_launch("docker run -e A=1 --env B=2 img sglang serve --model-path m")
    assert launch.env == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param("sglang serve --model-path 'm", "quotation", id="open-quote"),
        pytest.param("ls -l", "no sglang", id="no-launch"),
        pytest.param("", "no sglang", id="empty"),
        pytest.param(
            "python -m sglang_router.launch_router --prefill http://a", "router", id="router"
        ),
    ],
)
def test_unreadable(command: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_launch(command)


def test_bf16_switch_and_fp4_flag() -> None:
    assert sglang_spec({}, {})["index_dtype"] == "fp8"
    assert sglang_spec({}, {"SGLANG_DSV4_BF16_INDEX_K": "1"})["index_dtype"] == "bf16"
    assert sglang_spec({}, {"SGLANG_DSV4_BF16_INDEX_K": "0"})["index_dtype"] == "fp8"
    assert sglang_spec({"enable_deepseek_v4_fp4_indexer": True}, {})["index_dtype"] == "fp4"


def test_decode_keeps_slots_for_requests_in_transfer() -> None:
    decode = {"disaggregation_mode": "decode", "max_running_requests": "32"}
    assert sglang_spec(decode, {})["disaggregation_decode_extra_slots"] == 64
    many = decode | {"max_running_requests": "64"}
    assert "disaggregation_decode_extra_slots" not in sglang_spec(many, {})
    shared = many | {"enable_dp_attention": True, "dp_size": "2"}
    assert sglang_spec(shared, {})["disaggregation_decode_extra_slots"] == 64
    given = decode | {"disaggregation_decode_extra_slots": "5"}
    assert sglang_spec(given, {})["disaggregation_decode_extra_slots"] == 5


def test_dp_counts_under_dp_attention_only() -> None:
    assert sglang_spec({"dp_size": "4"}, {})["attn_dp_size"] == 1
    assert sglang_spec({"dp_size": "4", "enable_dp_attention": True}, {})["attn_dp_size"] == 4


@pytest.mark.parametrize("value", ["many", "", "1.5"])
def test_value_of_the_wrong_kind(value: str) -> None:
    with pytest.raises(UsageError, match="max-running-requests"):
        sglang_spec({"max_running_requests": value}, {})


def test_vllm_flags() -> None:
    launch = read_launch(
        """vllm serve m --max-model-len 131072 --attention-config '{"indexer_kv_dtype":"mxfp4"}'"""
    )
    spec = vllm_spec(launch.flags)
    assert (spec["max_model_len"], spec["index"]) == (131072, "mxfp4")


@pytest.mark.parametrize("value", ["[1]", "5", "{", '"fp8"'])
@pytest.mark.parametrize("flag", ["attention_config", "hisparse_config"])
def test_a_config_that_is_no_object_is_told(flag: str, value: str) -> None:
    spec_of = vllm_spec if flag == "attention_config" else lambda args: sglang_spec(args, {})
    with pytest.raises(UsageError, match="is no JSON"):
        spec_of({flag: value, "enable_hisparse": True})
