"""SGLang's `--output-file` form: one JSON object a level, appended, with the keys that it writes.

Source: the `result` dictionary at the end of `benchmark` in python/sglang/benchmark/serving.py of
SGLang, read at 00f9ec47. What we cannot know (a tokenizer's own count) is null; an unlimited
request rate is the string "inf", since JSON has no infinity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.diskfull import told_plainly
from dsv4doctor.artifacts.jsonlines import encode
from dsv4doctor.throughput.metrics import LATENCIES, PERCENTILES

_BACKEND = "sglang-oai-chat"  # the chat route, in SGLang's own word
_COUNTS = (
    "duration", "completed", "total_input_tokens", "total_output_tokens", "request_throughput",
    "input_throughput", "output_throughput", "total_throughput",
)  # fmt: skip


def append_sglang_lines(
    path: Path, summary: Mapping[str, Any], records: Sequence[Mapping[str, Any]], *, details: bool
) -> None:
    """Append a line for every level with a whole block to `path`; `details` adds arrays over the
    requests of `records`.

    Raises:
        DoctorError: if the file cannot be written.
    """
    lines = []
    for number, level in enumerate(summary["levels"]):
        if not level["blocks"]:
            continue
        mine = [record for record in records if record["level"] == number] if details else None
        lines.append(encode(sglang_line(summary, level, mine)) + b"\n")
    with told_plainly(path), path.open("ab") as file:
        file.write(b"".join(lines))


def check_output_file(path: Path) -> None:
    """Refuse a file that cannot be appended to, before anything is measured for it.

    Raises:
        DoctorError: if it cannot be written.
    """
    with told_plainly(path), path.open("ab"):
        pass


def sglang_line(
    summary: Mapping[str, Any],
    level: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """One level as SGLang writes a run; `records` add its detail arrays."""
    workload = summary["workload"]
    rate = level["request_rate"]
    line: dict[str, Any] = {
        "tag": None,
        "backend": _BACKEND,
        "dataset_name": workload["dataset"],
        "request_rate": "inf" if rate is None else rate,
        "max_concurrency": level["max_concurrency"],
        "sharegpt_output_len": None,
        "random_input_len": workload["input_len"],
        "random_output_len": workload["output_len"],
        "random_range_ratio": None,
        "server_info": summary["target"].get("server_args") or None,
        **{name: level[name] for name in _COUNTS},
        "total_input_text_tokens": level["total_input_tokens"],
        "total_input_vision_tokens": 0,
        "total_output_tokens_retokenized": None,
    }
    for name in LATENCIES:
        for kind in ("mean", "median", "std", *(f"p{share}" for share in PERCENTILES)):
            line[f"{kind}_{name}_ms"] = level[f"{kind}_{name}_ms"]
    for name in ("max_itl_ms", "concurrency", "max_output_tokens_per_s", "max_concurrent_requests"):
        line[name] = level[name]
    line["accept_length"] = (summary["target"].get("server_args") or {}).get(
        "avg_spec_accept_length"
    )
    line["errors_total"] = level["errors"]
    line["corrupted_responses"] = level["corrupted_responses"]
    line["client_lag_ms"] = level["client_lag_ms"]
    return line if records is None else {**line, **_details(records)}


def _details(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """SGLang's arrays, times in seconds; a request without a first token has a null there."""
    return {
        "input_lens": [record["prompt_tokens"] for record in records],
        "output_lens": [record["completion_tokens"] for record in records],
        "ttfts": [None if r["ttft_ms"] is None else r["ttft_ms"] / 1000 for r in records],
        "itls": [[gap / 1000 for gap in record["itl_ms"]] for record in records],
        "generated_texts": [(r["response"] or {}).get("content") or "" for r in records],
        "errors": [(record["failure"] or {}).get("message", "") for record in records],
    }
