"""Every golden row: figures obtained by executing each release's own code, integers to the unit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsv4doctor.flows.size_batch import size_row

FLOAT_TOLERANCE = 1e-9


def differences(expected: Any, got: Any, path: str = "") -> list[str]:
    """Where `got` departs from `expected`: integers exactly, floats relatively."""
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return [f"{path}: {got!r} is no object"]
        found = [f"{path}.{key} is extra" for key in set(got) - set(expected)]
        for key, value in expected.items():
            if key not in got:
                found.append(f"{path}.{key} is missing")
            else:
                found += differences(value, got[key], f"{path}.{key}")
        return found
    if isinstance(expected, float) or isinstance(got, float):
        close = abs(expected - got) <= FLOAT_TOLERANCE * max(1.0, abs(expected))
        return [] if close else [f"{path}: {got!r} instead of {expected!r}"]
    return [] if expected == got else [f"{path}: {got!r} instead of {expected!r}"]


def row_differences(row: dict[str, Any]) -> list[str]:
    answer = size_row({**row["inputs"], "version": row["version"]})
    found = [] if answer.get("error") == row["error"] else [f"error: {answer.get('error')!r}"]
    for key, value in row["outputs"].items():
        expected = value
        if key == "geometry":
            # Whether a page is one tensor or two says nothing of its bytes.
            expected = {
                name: {k: v for k, v in pool.items() if k != "split"}
                for name, pool in value.items()
            }
        if key not in answer:
            found.append(f"{key} is missing")
        else:
            found += differences(expected, answer[key], key)
    return found


def test_sglang_rows(shared_data: Path) -> None:
    rows = json.loads((shared_data / "sizing" / "golden_public.json").read_text())["rows"]
    assert len(rows) > 200
    wrong = {row["id"]: found for row in rows if (found := row_differences(row))}
    assert not wrong, wrong


def test_a_changed_row_is_noticed(shared_data: Path) -> None:
    rows = json.loads((shared_data / "sizing" / "golden_public.json").read_text())["rows"]
    row = next(row for row in rows if row["error"] is None)
    row["outputs"]["pool_sizes"]["full"] += 256
    assert row_differences(row) == [
        f"pool_sizes.full: {row['outputs']['pool_sizes']['full'] - 256} instead of "
        f"{row['outputs']['pool_sizes']['full']}"
    ]


@pytest.mark.parametrize(
    "key",
    [
        "page_sizes",
        "bytes_per_block",
        "num_blocks",
        "blocks_per_request",
        "max_concurrency",
        "capacity_tokens",
        "allocated_bytes",
    ],
)
def test_vllm_rows(shared_data: Path, key: str) -> None:
    rows = json.loads((shared_data / "sizing" / "vllm_golden.json").read_text())
    assert len(rows) == 36
    for row in rows:
        answer = size_row({**row["inputs"], "engine": "vllm", "model": row["model"]})
        assert not differences(row[key], answer[key], key), row["inputs"]
