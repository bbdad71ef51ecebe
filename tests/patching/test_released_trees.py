"""The fixes on real releases, the fork's faults planted first; the patched configurator executed.

Wheels are taken by pip into a temporary folder. CI runs the newest release, `make soak` all.
"""

from __future__ import annotations

import difflib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from planting import CONFIGURATOR, MEMORY_POOL, SWITCH, plant_bf16_store, remove_gate
from released import fetch_wheel, unpack

from dsv4doctor.flows.patch import run_patch
from dsv4doctor.flows.size_batch import size_row
from dsv4doctor.patching.layer_gate import ungated_reads
from dsv4doctor.sizing.architecture import MODELS

AVAILABLE = 28_883_655_065
RANDOM_ROWS = 200
RATIOS = [0, 0, *([4, 128] * 20), 4]
EXECUTE = Path(__file__).with_name("execute_configurator.py")
NEEDED = (
    "sglang/srt/model_executor/pool_configurator.py",
    "sglang/srt/mem_cache/deepseek_v4_memory_pool.py",
    "sglang/kernels/ops/attention/dsv4/kv_layout.py",
)
OLDER = [pytest.param(f"0.5.{n}", marks=pytest.mark.soak, id=f"0.5.{n}") for n in range(12, 23)]
pytestmark = pytest.mark.upstream


@pytest.fixture(scope="module", params=[*OLDER, pytest.param("0.5.23", id="0.5.23")])
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def wheel(release: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fetch_wheel(release, tmp_path_factory.mktemp(f"wheel-{release}"))


@pytest.fixture
def tree(wheel: Path, tmp_path: Path) -> Path:
    return unpack(wheel, tmp_path, NEEDED.__contains__)


def execute(tree: Path, index: str) -> dict[str, Any]:
    """What the tree's configurator computes with the 43 layers at 26.9 GiB."""
    row = random_row(random.Random(0)) | {
        "model": "V4-Flash",
        "num_hidden_layers": 43,
        "compress_ratios": RATIOS,
        "kv_source_layer_ids": [],
        "swa_full_tokens_ratio": 0.1,
        "max_running_requests": 32,
        "index_dtype": index,
        "available_bytes": AVAILABLE,
        "speculative": None,
        "speculative_num_draft_tokens": None,
        "disaggregation_mode": "null",
        "disaggregation_decode_extra_slots": 0,
        "attn_dp_size": 1,
        "page_size": 256,
        "dsv4_attn_backend": "flashmla",
        "env": {},
    }
    return run_rows(tree, [row], bf16=index == "bf16")[0]


def run_rows(tree: Path, rows: list[dict[str, Any]], *, bf16: bool = False) -> list[dict[str, Any]]:
    """What the tree's configurator computes for each row."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("SGLANG_")}
    if bf16:
        env[SWITCH] = "1"
    done = subprocess.run(
        [sys.executable, str(EXECUTE), str(tree / "sglang")],
        input=json.dumps(rows),
        capture_output=True, text=True, timeout=120, check=True, env=env,
    )  # fmt: skip
    return list(json.loads(done.stdout.splitlines()[-1]))


def random_row(dice: random.Random, *, v41: bool = False) -> dict[str, Any]:
    """A server's sizing drawn over models, drafts, disaggregation, parallelism and budgets."""
    names = ["V4-Flash", "V4-Flash(44-entry HF list)", "V4-Pro", *(["V4.1-Flash"] if v41 else [])]
    name = dice.choice(names)
    model = next(known for known in MODELS if known.name == name)
    draft = dice.choice([None, None, "EAGLE", "DSPARK"])
    mode = dice.choice(["null", "prefill", "decode"])
    return {
        "model": model.name,
        "num_hidden_layers": model.num_hidden_layers,
        "compress_ratios": list(model.compress_ratios),
        "kv_source_layer_ids": list(model.kv_source_layer_ids),
        "index_dtype": "fp8",
        "swa_full_tokens_ratio": dice.choice([0.05, 0.1, 0.15, 0.5, 0.8, *([None] if v41 else [])]),
        "page_size": dice.choice([256, 256, 128]),
        "speculative": draft,
        "speculative_num_draft_tokens": dice.choice([2, 4, 6]) if draft else None,
        "speculative_num_steps": 3,
        "speculative_eagle_topk": 1,
        "max_running_requests": dice.choice([None, 1, 8, 32, 33, 128, 256, 1000]),
        "disaggregation_mode": mode,
        "disaggregation_decode_extra_slots": dice.choice([0, 32, 64]) if mode == "decode" else 0,
        "chunked_prefill_size": dice.choice([2048, 8192, 16384]),
        "disable_overlap_schedule": dice.random() < 0.2,
        "disable_radix_cache": dice.random() < 0.3,
        "swa_prefix_tails": dice.choice([None, None, 0, 500]),
        "attn_dp_size": dice.choice([1, 2, 4]),
        "dsv4_attn_backend": dice.choice(["flashmla", "trtllm"]) if v41 else "flashmla",
        "available_bytes": dice.randrange(1 << 30, 140 << 30),
        "env": {
            "SGLANG_DSV4_COMPRESS_STATE_DTYPE": dice.choice(["float32", "bf16"]),
            "SGLANG_SWA_EVICTION_INTERVAL": dice.choice(["128", "512"]),
        },
    }


def sized(release: str, index: str) -> dict[str, Any]:
    keys = {"version": release, "available_bytes": AVAILABLE, "max_running_requests": 32}
    return size_row({**keys, "index_dtype": index})


def test_a_released_tree_is_refused(tree: Path) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*.py")}
    outcome = run_patch(tree, write=True)
    assert outcome.verdict == "nothing_to_fix"
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


def test_random_sizings_are_the_releases_own(release: str, tree: Path) -> None:
    dice = random.Random(f"sizing {release}")
    v41 = release in ("0.5.21", "0.5.22", "0.5.23")
    rows = [random_row(dice, v41=v41) for _ in range(RANDOM_ROWS)]
    refused = 0
    for row, own in zip(rows, run_rows(tree, rows), strict=True):
        ours = size_row({**row, "version": release})
        if "error" in own or "error" in ours:
            refused += 1
            assert ours.get("error") == own.get("error"), row
            continue
        figures = {**ours["pool_sizes"], **ours}
        assert {key: figures[key] for key in own} == own, row
    assert refused < RANDOM_ROWS / 2


def test_the_planted_fault_is_one(release: str, tree: Path) -> None:
    plant_bf16_store(tree / "sglang")
    assert execute(tree, "bf16")["full"] == sized(release, "fp8")["pool_sizes"]["full"]


def test_patched_configurator_counts_what_is_stored(release: str, tree: Path) -> None:
    plant_bf16_store(tree / "sglang")
    assert run_patch(tree, write=True).verdict == "written"
    bf16, right = execute(tree, "bf16"), sized(release, "bf16_priced")
    assert bf16["bytes_per_full_token"] == pytest.approx(right["bytes_per_full_token"], rel=1e-12)
    assert bf16["full"] == right["pool_sizes"]["full"]
    if release in ("0.5.12", "0.5.13"):
        assert bf16["bytes_per_full_token"] == pytest.approx(16548.45, rel=1e-12)
    fp8 = execute(tree, "fp8")
    assert fp8["full"] == sized(release, "fp8")["pool_sizes"]["full"]
    if release != "0.5.12":
        # 21 layers x 64 B / 4: what fp4 is smaller than fp8.
        cheaper = fp8["bytes_per_full_token"] - execute(tree, "fp4")["bytes_per_full_token"]
        assert cheaper == pytest.approx(336, rel=1e-9)


def test_gate_is_back(tree: Path) -> None:
    released = (tree / "sglang" / MEMORY_POOL).read_text()
    for method in ("get_index_k_with_scale_buffer", "get_index_k_scale_buffer"):
        remove_gate(tree / "sglang", method)
    planted = (tree / "sglang" / MEMORY_POOL).read_text()
    assert ungated_reads(planted) == (
        "get_index_k_with_scale_buffer",
        "get_index_k_scale_buffer",
    )
    assert run_patch(tree, write=True).verdict == "written"
    assert (tree / "sglang" / MEMORY_POOL).read_text() == released


def test_a_second_run_changes_nothing(tree: Path) -> None:
    plant_bf16_store(tree / "sglang")
    remove_gate(tree / "sglang")
    run_patch(tree, write=True)
    after = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    outcome = run_patch(tree, write=True)
    assert (outcome.verdict, outcome.diff) == ("already_patched", "")
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == after


def test_v32_and_formatting_are_untouched(tree: Path) -> None:
    plant_bf16_store(tree / "sglang")
    before = (tree / "sglang" / CONFIGURATOR).read_text()
    run_patch(tree, write=True)
    after = (tree / "sglang" / CONFIGURATOR).read_text()
    changed = [
        line[2:]
        for line in difflib.ndiff(before.splitlines(), after.splitlines())
        if line[0] in "+-"
    ]
    assert 0 < len(changed) < 25
    outside = before[: before.index("class DSV4PoolConfigurator")]
    lines = [line for line in outside.splitlines() if "quant_block_size" in line]
    assert lines
    assert not [
        line for line in changed if "DSATokenToKVPool" in line or "NSATokenToKVPool" in line
    ]
    kept = [line for line in after.splitlines() if "TokenToKVPool.quant_block_size" in line]
    assert kept == lines
