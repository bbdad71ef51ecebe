"""A batch goes on whatever a line holds: every line gets one answer that is JSON."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from dsv4doctor.flows.size_batch import BatchTally, size_lines

HUGE = 1 << 40
ODD: dict[str, list[Any]] = {
    "available_bytes": [0, 1, 10**6, 28_883_655_065, 1 << 53, -1],
    "model": ["V4-Flash", "V4.1-Flash", "V4-Pro", "x", None, ""],
    "version": ["0.5.12", "0.5.15", "0.5.20", "0.5.23", "9.9", "", None, 3],
    "page_size": [1, 128, 256, 1024, HUGE],
    "swa_full_tokens_ratio": [None, 0, 1, 0.1, 1e-9],
    "max_running_requests": [None, 0, 1, HUGE],
    "speculative": [None, "EAGLE", "DSPARK", "x"],
    "speculative_num_draft_tokens": [None, 0, 1, HUGE],
    "chunked_prefill_size": [None, -1, 0, HUGE],
    "attn_dp_size": [1, HUGE],
    "pp_size": [1, 2, 43],
    "index_dtype": ["fp8", "bf16", "fp4", "bf16_priced"],
    "encoder_replay": [True, False],
    "platform": ["cuda", "hip", "hip-gfx95", "cuda-sm120", "cuda-sm100"],
    "env": [
        {},
        {"SGLANG_HACK_FLASHMLA_BACKEND": "unified_kv_triton"},
        {"SGLANG_OPT_USE_ONLINE_COMPRESS": "1"},
        {"SGLANG_DSV4_KV_LAYOUT": "v41_new"},
    ],
    "hisparse_host_to_device_ratio": [1, 4, HUGE],
    "max_total_tokens": [None, 0, 256, 1 << 50],
    "sliding_window": [1, 128, HUGE],
    "compress_ratios": [[0] * 43, [4] * 43, [128] * 43, [1] * 43, [2] * 50],
    "disaggregation_mode": ["null", "decode", None],
}


@pytest.mark.parametrize("seed", range(4))
def test_odd_specs_get_an_answer(seed: int) -> None:
    dice = random.Random(seed)
    specs = [
        {key: dice.choice(values) for key, values in ODD.items() if dice.random() < 0.35}
        for _ in range(500)
    ]
    tally = BatchTally()
    answers = [json.loads(line) for line in size_lines(map(json.dumps, specs), tally)]
    assert len(answers) == len(specs)
    assert tally.rows == len(specs)
    assert any("error" in answer for answer in answers)
    assert any(answer.get("verdict") == "fits" for answer in answers)


@pytest.mark.parametrize("line", ["{", "[1]", "null", "3", '"x"', "NaN", "[" * 5000, '{"a": NaN}'])
def test_a_line_that_is_no_object(line: str) -> None:
    tally = BatchTally()
    (answer,) = (json.loads(text) for text in size_lines([line], tally))
    assert answer["error"].startswith("line 1")
    assert tally.exit_code == 2
