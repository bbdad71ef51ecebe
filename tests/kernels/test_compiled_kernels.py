"""Machine code of every kernel for five GPUs: no spills, wide loads, few instructions a word."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")

PROGRAM = Path(__file__).with_name("compiled_kernels.py")
TARGETS = ["cuda 90", "cuda 100", "cuda 120", "hip gfx942", "hip gfx950"]
# Instructions a 32-bit word that keep the digest bound by memory: see benchmarks/kernels.md.
MOST_PER_WORD = {"fp8": 10.0, "bf16": 12.0, "fp4": 12.0, "fp4-rocm": 12.0}


@functools.cache
def compiled(target: str) -> list[dict[str, Any]]:
    """What `compiled_kernels.py` prints for `target`, compiled afresh."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
        done = subprocess.run(
            [sys.executable, PROGRAM, *target.split()],
            env=environment | {"TRITON_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_spills(target: str):
    found = compiled(target)
    assert len(found) == 12
    for kernel in found:
        assert kernel["spills"] == 0, kernel
        assert kernel["stack_bytes"] == 0, kernel


@pytest.mark.parametrize("target", TARGETS)
def test_digests_load_sixteen_bytes_at_a_time(target: str):
    for kernel in compiled(target):
        if "digest" not in kernel["kernel"]:
            continue
        words = kernel["words"]
        # All value words by 128-bit loads; the latent rows' (in a loop) at least by some.
        assert kernel["wide_loads"] >= max(words / 4, 2), kernel


@pytest.mark.parametrize("target", ["cuda 90", "cuda 100", "cuda 120"])
def test_instructions_a_word_leave_the_digest_bound_by_memory(target: str):
    """The whole kernel's instructions, prologue and mixing included, over a thread's words."""
    seen = set()
    for kernel in compiled(target):
        if kernel["kernel"] != "page_digest_kernel":
            continue
        dtype = kernel["case"].removesuffix("-table")
        seen.add(dtype)
        assert kernel["instructions"] / kernel["words"] <= MOST_PER_WORD[dtype], kernel
    assert seen == set(MOST_PER_WORD)


@pytest.mark.parametrize("target", TARGETS)
def test_patterns_store_sixteen_bytes_at_a_time(target: str):
    (kernel,) = [k for k in compiled(target) if k["kernel"] == "fill_pattern_kernel"]
    assert kernel["wide_stores"] >= kernel["words"] / 4, kernel
