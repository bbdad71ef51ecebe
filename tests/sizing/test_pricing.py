"""bytes_per_full_token against the published values, version by version, switch by switch."""

from __future__ import annotations

from typing import Any

import pytest
from builders_sizing import plan

FLASH_44 = {"model": "V4-Flash(44-entry HF list)"}
PRO = {"model": "V4-Pro"}
V41 = {"model": "V4.1-Flash"}
BF16 = {"index_dtype": "bf16_priced"}
UNIFIED = {
    "platform": "hip-gfx95",
    "env": {"SGLANG_HACK_FLASHMLA_BACKEND": "unified_kv_triton"},
}
UNIFIED_FP8 = {
    "platform": "hip-gfx95",
    "env": {**UNIFIED["env"], "SGLANG_DSV4_UNIFIED_KV_FP8": "1"},  # type: ignore[dict-item]
}


@pytest.mark.parametrize(
    ("version", "keys", "expected"),
    [
        pytest.param("0.5.12", {}, 15897.45, id="12-flash-43-layers"),
        pytest.param("0.5.12", FLASH_44, 15955.85, id="12-counts-the-mtp-entry"),
        pytest.param("0.5.13", FLASH_44, 15897.45, id="13-cuts-the-list"),
        pytest.param("0.5.12", BF16, 16548.45, id="12-bf16-priced-right"),
        pytest.param("0.5.13", BF16, 16548.45, id="13-bf16-priced-right"),
        pytest.param("0.5.13", {"index_dtype": "bf16"}, 15897.45, id="13-bf16-priced-as-fp8"),
        pytest.param("0.5.12", PRO, 23691.4375, id="12-pro"),
        pytest.param("0.5.15", {}, 7705.45, id="15-c128-state-is-fixed"),
        pytest.param("0.5.20", BF16, 8356.45, id="20-bf16-priced"),
        pytest.param("0.5.19", PRO, 10993.8375, id="19-pro"),
        pytest.param("0.5.21", {}, 7086.75, id="21-padded-pages"),
        pytest.param("0.5.23", BF16, 7737.75, id="23-bf16-priced"),
        pytest.param("0.5.23", PRO, 10115.25, id="23-pro"),
        pytest.param("0.5.22", {"swa_full_tokens_ratio": None}, 3899.25, id="22-cap-mode"),
        pytest.param("0.5.22", V41, 1630.0, id="22-v41-cap"),
        pytest.param("0.5.23", V41, 1632.5, id="23-v41-cap"),
        pytest.param("0.5.22", V41 | {"speculative": "DSPARK"}, 1670.75, id="22-v41-dspark"),
        pytest.param("0.5.23", V41 | {"speculative": "DSPARK"}, 1673.3125, id="23-v41-dspark"),
        pytest.param(
            "0.5.20", {"platform": "hip-gfx95", "index_dtype": "fp4"}, 7369.45, id="20-hip-fp4"
        ),
        pytest.param(
            "0.5.19", {"platform": "hip-gfx95", "index_dtype": "fp4"}, 7705.45, id="19-hip-fp4"
        ),
        pytest.param("0.5.20", {"dsv4_attn_backend": "trtllm"}, 7705.45, id="20-trtllm-unpriced"),
        pytest.param("0.5.21", {"dsv4_attn_backend": "trtllm"}, 6334.6, id="21-trtllm-priced"),
        pytest.param(
            "0.5.13", {"env": {"SGLANG_OPT_USE_ONLINE_COMPRESS": "1"}}, 7801.45, id="13-online"
        ),
        pytest.param(
            "0.5.14", {"env": {"SGLANG_DSV4_COMPRESS_STATE_DTYPE": "bf16"}}, 11129.45, id="14-bf16"
        ),
        pytest.param(
            "0.5.13", {"env": {"SGLANG_DSV4_COMPRESS_STATE_DTYPE": "bf16"}}, 15897.45, id="13-none"
        ),
        pytest.param("0.5.20", UNIFIED, 6229.0, id="20-unified-bf16"),
        pytest.param("0.5.20", UNIFIED_FP8, 4153.0, id="20-unified-fp8"),
        pytest.param("0.5.19", UNIFIED, 7705.45, id="19-unified-not-priced"),
        pytest.param("0.5.21", {"kv_layout": "v41", "platform": "cuda-sm100"}, 6527.4, id="v41"),
    ],
)
def test_published_values(version: str, keys: dict[str, Any], expected: float) -> None:
    assert plan(version=version, **keys).price.per_full_token == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param({"max_running_requests": 256}, 2_715_811_840, id="flash-256"),
        pytest.param({"max_running_requests": 32}, 367_001_600, id="flash-32"),
        pytest.param({"model": "V4-Pro", "max_running_requests": 256}, 4_209_508_352, id="pro-256"),
        pytest.param(
            {"max_running_requests": None, "speculative": "EAGLE"}, 43_002_101_760, id="eagle-unset"
        ),
    ],
)
def test_c128_state_is_deducted(keys: dict[str, Any], expected: int) -> None:
    assert plan(version="0.5.19", **keys).fixed_bytes["c128_state"] == expected
