"""`size --sweep`: one or two inputs varied, one row a combination; CSV through pandas."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.errors import UsageError
from dsv4doctor.sizing.plan import make_plan
from dsv4doctor.sizing.refusal import Refusal
from dsv4doctor.sizing.spec import KEYS, read_spec
from dsv4doctor.sizing.verdict import DOES_NOT_FIT, judge
from dsv4doctor.sizing.versions import accounting_of
from dsv4doctor.units import parse_bytes

MOST_INPUTS = 2
MOST_ROWS = 10_000
_BYTE_KEYS = ("available_bytes",)
_ALIASES = {"available": "available_bytes", "index_k": "index_dtype", "sglang_version": "version"}


def parse_sweep(texts: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`KEY=V1,V2,…` texts as keys and values.

    Raises:
        UsageError: no such input, no value, or more than two inputs.
    """
    swept = []
    for text in texts:
        name, separator, values = text.partition("=")
        key = name.strip().lstrip("-").replace("-", "_")
        key = _ALIASES.get(key, key)
        items = tuple(item.strip() for item in values.split(",") if item.strip())
        if not separator or not items:
            raise UsageError(f"--sweep {text!r} names no values", "--sweep index_dtype=fp8,bf16")
        if key not in KEYS or key in ("env", "compress_ratios", "layers", "engine"):
            raise UsageError(
                f"--sweep {key!r} is no input of a sizing",
                "available_bytes, version, max_running_requests, index_dtype, …",
            )
        swept.append((key, items))
    if len(swept) > MOST_INPUTS:
        raise UsageError(f"{len(swept)} inputs are swept", "at most two at a time")
    return tuple(swept)


def sweep_rows(
    spec: Mapping[str, Any], available_bytes: int, sweep: Sequence[tuple[str, tuple[str, ...]]]
) -> list[dict[str, Any]]:
    """One row a combination: the swept inputs, then tokens, price, over-commit and verdict."""
    keys = [key for key, _ in sweep]
    combinations = list(itertools.product(*(values for _, values in sweep)))
    if len(combinations) > MOST_ROWS:
        raise UsageError(f"the sweep has {len(combinations)} rows", f"at most {MOST_ROWS}")
    base = {**spec, "available_bytes": spec.get("available_bytes", available_bytes)}
    base.pop("engine", None)
    if "model" in keys:
        for key in ("num_hidden_layers", "compress_ratios", "kv_source_layer_ids"):
            base.pop(key, None)
    rows = []
    for values in combinations:
        chosen = {key: _value(key, text) for key, text in zip(keys, values, strict=True)}
        rows.append(chosen | _row({**base, **chosen}))
    return rows


def _value(key: str, text: str) -> Any:
    """A swept value as its input's JSON type."""
    if key in _BYTE_KEYS:
        return parse_bytes(text)
    if key == "version":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _row(data: Mapping[str, Any]) -> dict[str, Any]:
    spec = read_spec(data)
    accounting, executed = accounting_of(spec.version)
    try:
        judged = judge(make_plan(spec.inputs, accounting), spec.version, executed=executed)
    except Refusal as refusal:
        return _columns(verdict=DOES_NOT_FIT, error=str(refusal))
    plan = judged.plan
    return _columns(
        verdict=judged.verdict,
        tokens=None if plan.pools is None else plan.pools.full,
        bytes_per_full_token=plan.price.per_full_token,
        allocated_total=plan.allocated_total,
        draft_allocated_total=plan.draft_total,
        over_commit_bytes=plan.over_commit_bytes,
        error=None if plan.refusal is None else str(plan.refusal),
    )


def _columns(**values: Any) -> dict[str, Any]:
    order = (
        "tokens", "bytes_per_full_token", "allocated_total", "draft_allocated_total",
        "over_commit_bytes", "verdict", "error",
    )  # fmt: skip
    return {key: values.get(key) for key in order}


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as CSV, integers kept as integers where a value is missing."""
    import pandas as pd

    frame = pd.DataFrame.from_records(list(rows)).convert_dtypes()
    return str(frame.to_csv(index=False, lineterminator="\n"))
