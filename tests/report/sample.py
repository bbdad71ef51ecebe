"""One run of each verdict, as `repro` has it, and records that a broken server might send."""

from __future__ import annotations

from typing import Any

from dsv4doctor.rate import Quantiles
from dsv4doctor.stats.rates import clean_bound, response_rate, session_rate

HOSTILE_TEXTS = {
    "ansi": "\x1b[2J\x1b]0;owned\x07\x1b[31mred",
    "c1": "\x9b31m \x85 \x90",
    "carriage": "all is well\rBROKEN",
    "bidi": "abc\u202edcba\u2066x\u2069",
    "zero-width": "in\u200bvis\u2060ible\ufeff\u00ad",
    "surrogate": "half \ud83d of a pair",
    "markup": "[bold red]x[/bold red] [/] [link=http://evil]y[/link] :smiley:",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "fence": "```\n````\n~~~\n# heading\n",
    "backticks": "a `b` ``c`` ```d```",
    "pipe": "a|b|c\n|---|",
    "mention": "@maintainer fixes #12 in https://evil.example www.evil.example",
    "salad": "｜DSML｜ <｜DSML｜tool_calls> 的的的 ☃",
    "zalgo": "e" + "\u0301" * 40,
    "tags": "a\U000e0041\U000e0042b",
    "separators": "a\u2028b\u2029c",
    "long": "x" * 1_000_000,
    "tall": "y\n" * 10_000,
    "nul": "\x00\x00",
}


def summary(**changes: Any) -> dict[str, Any]:
    """The `repro` object of a corrupted run of 60 sessions, with `changes`."""
    hit = [(2, 6)] * 20 + [(1, 5)] * 19 + [(0, 6)] * 21
    responses, corrupted = sum(n for _, n in hit), sum(k for k, _ in hit)
    made: dict[str, Any] = {
        "run_dir": "reports/20261129T104500Z-repro-tool-calls",
        "target": {
            "base_url": "http://gpu7:30000",
            "engine": "sglang",
            "version": "0.5.18",
            "model": "deepseek-ai/DeepSeek-V4-Flash",
            "server_args": {
                "tp_size": 8,
                "enable_hierarchical_cache": True,
                "tool_call_parser": "deepseekv4",
                "random_seed": 7,
            },
        },
        "scenario": "tool-calls",
        "seed": 42,
        "sessions": 60,
        "turns": 6,
        "responses": responses,
        "corrupted_responses": corrupted,
        "corrupted_sessions": 39,
        "failures": 1,
        "by_failure": {"stalled": 1},
        "aborted_by_us": 30,
        "response_rate": response_rate(hit),
        "session_rate": session_rate(39, 60),
        "clean_bound": None,
        "by_label": {"clean": responses - corrupted, "dsml_leak": 40, "canary_mismatch": 19},
        "also_label": {"truncated": 3, "canary_mismatch": 2},
        "by_turn": [
            {"turn": 0, "responses": 57, "corrupted": 0},
            {"turn": 3, "responses": 57, "corrupted": 12},
        ],
        "by_context": [
            {"context_tokens": 2048, "responses": 100, "corrupted": 1},
            {"context_tokens": 5120, "responses": 57, "corrupted": 20},
        ],
        "by_kind": [{"kind": "tool_call", "responses": 300, "corrupted": 50}],
        "ttft_ms": Quantiles(p50=812.4, p90=1420.0, p99=2210.7, n=responses),
        "itl_ms": Quantiles(p50=18.18, p90=21.0, p99=44.25, n=30_000),
        "e2e_latency_ms": Quantiles(p50=3012.0, p90=4100.0, p99=5000.0, n=99),
        "output_throughput": 529.6,
        "wedge": None,
        "client_lag_ms": {"p50": 0.1, "p99": 0.9, "max": 2.0},
        "timings_valid": True,
        "interrupted": False,
        "segments": 1,
        "torn_lines": 0,
        "notes": [],
    }
    return {**made, **changes}


def clean_summary() -> dict[str, Any]:
    return summary(
        corrupted_responses=0,
        corrupted_sessions=0,
        failures=0,
        by_failure={},
        response_rate=response_rate([(0, 6)] * 60),
        session_rate=session_rate(0, 60),
        clean_bound=clean_bound(60),
        responses=360,
        by_label={"clean": 360},
        also_label={},
    )


def wedged_summary() -> dict[str, Any]:
    return summary(
        scenario="abort-storm",
        wedge={
            "since_unix": 1_796_000_000.0,
            "silent_s": 31.2,
            "after": "abort",
            "detail": "we aborted session 3, turn 2, 0.4 s before",
            "probes": [
                {"name": "/health", "answered": True, "status": 200, "seconds": 0.004},
                {"name": "generation", "answered": False, "status": None, "seconds": 10.0},
            ],
            "stuck": [[4, 1], [5, 1]],
            "peak_in_flight": 60,
            "gauges": {"sglang:num_running_reqs": 12.0},
        },
    )


def record(name: str = "s0012-t04", **changes: Any) -> dict[str, Any]:
    """A corrupted record: one argument is the session's own earlier value."""
    made: dict[str, Any] = {
        "id": name,
        "session": 12,
        "turn": 4,
        "kind": "tool_call",
        "response": {
            "content": None,
            "reasoning_content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "index": 0,
                    "type": "function",
                    "function": {
                        "name": "file_report",
                        "arguments": '{"ticket": "VGQM-DPPY-RSBH", "site": "JWP0-NN8F-1EJH"}',
                    },
                }
            ],
            "finish_reason": "tool_calls",
        },
        "canaries": [
            {
                "label": "amber-heron-3",
                "value": "VGQM-DPPY-RSBH",
                "planted_turn": 0,
                "tool": "file_report",
                "call_index": 0,
                "argument": "ticket",
            },
            {
                "label": "teal-wren-8",
                "value": "8JHZ-9RDG-JRZB",
                "planted_turn": 2,
                "tool": "file_report",
                "call_index": 0,
                "argument": "site",
            },
        ],
        "primary": "canary_mismatch",
        "also": [],
        "evidence": [
            {"where": "tool_calls[0].arguments.site", "what": "the session's own value of turn 1"}
        ],
        "corrupted": True,
        "prompt_tokens": 4411,
        "cached_tokens": 4096,
        "raw": f"raw/{name}.txt",
    }
    return {**made, **changes}


def leak_record() -> dict[str, Any]:
    text = (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="move_stock">\n'
        '<｜DSML｜parameter name="source" string="true">K7F3-QM2X'
    )
    return record(
        "s0031-t05",
        session=31,
        turn=5,
        primary="dsml_leak",
        also=["truncated"],
        evidence=[{"where": "content", "what": "DeepSeek-V4 opener, characters 0 to 20"}],
        response={
            "content": text,
            "reasoning_content": None,
            "tool_calls": None,
            "finish_reason": "length",
        },
    )


def hostile_record(text: str) -> dict[str, Any]:
    """A record with `text` in every member that a server or a file can fill."""
    return record(
        text[:300],
        primary="token_salad",
        also=[text[:300]],
        kind=text[:300],
        evidence=[{"where": text, "what": text}],
        raw=text[:300],
        response={
            "content": text,
            "reasoning_content": text,
            "tool_calls": [{"function": {"name": text, "arguments": text}}, text],
            "finish_reason": text,
        },
    )
