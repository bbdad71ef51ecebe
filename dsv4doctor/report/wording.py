"""How numbers and labels are said: one spelling for every section and format."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dsv4doctor.units import many

# What each label means, for a reader who meets it for the first time.
LABEL_MEANINGS: Mapping[str, str] = {
    "clean": "as asked for",
    "dsml_leak": "tool-call markup in the text",
    "malformed_arguments": "arguments that are no JSON object",
    "schema_violation": "a call that breaks its tool's schema",
    "unknown_tool": "a call to a tool that was not offered",
    "missing_tool_call": "no call, or too few, where calls were asked for",
    "token_salad": "text that is no language",
    "repetition_loop": "the same words again and again",
    "foreign_content": "content of another session",
    "canary_mismatch": "a well-formed call with a value that was not planted there",
    "misplaced_reasoning": "reasoning in the answer, or the answer in the reasoning",
    "truncated": "cut off before its end",
    "empty": "neither text nor calls",
    "special_token_leak": "control tokens in the text",
    "timeout": "no whole reply within --timeout",
    "stalled": "no token within --stall-timeout",
    "http_error": "an HTTP status other than 200",
    "connection_error": "no connection, or one that broke",
    "protocol_error": "a reply that is no chat completion",
}

# From the most to the least telling: which examples a reader should see first.
WORST_FIRST = (
    "foreign_content",
    "canary_mismatch",
    "dsml_leak",
    "malformed_arguments",
    "unknown_tool",
    "schema_violation",
    "special_token_leak",
    "token_salad",
    "repetition_loop",
    "misplaced_reasoning",
    "missing_tool_call",
    "truncated",
    "empty",
)

NO_VALUE = "–"


def percent(share: float | None) -> str:
    """A share as a percentage: two digits of it, and never `0 %` for what is only small."""
    if share is None:
        return NO_VALUE
    value = 100 * share
    if value == 0 or value >= 10:
        return f"{value:.1f} %"
    return f"{value:.2f} %" if value >= 0.1 else f"{value:.2g} %"


def count(number: Any) -> str:
    """A count with thousands parted; `–` where it is unknown."""
    return f"{number:,}" if isinstance(number, int) else NO_VALUE


def share_of(part: int, whole: int, noun: str = "") -> str:
    """`12 of 60 (20.0 %)`, `12 of 60 responses (20.0 %)`."""
    of = many(whole, noun) if noun else f"{whole:,}"
    return f"{part:,} of {of} ({percent(part / whole if whole else None)})"


def interval(rate: Mapping[str, Any]) -> str:
    """`95 % interval 12.1 to 21.3 %`."""
    low, high = percent(rate["low"]).removesuffix(" %"), percent(rate["high"])
    return f"{_level(rate['level'])} interval {low} to {high}"


def rate_sentence(rate: Mapping[str, Any], noun: str) -> str:
    """`59 of 360 responses (16.4 %, 95 % interval 12.1 to 21.3 %)`."""
    if rate.get("estimate") is None:
        return f"no {noun}s"
    head = f"{rate['k']:,} of {many(rate['n'], noun)}"
    return f"{head} ({percent(rate['estimate'])}, {interval(rate)})"


def milliseconds(value: float | None) -> str:
    """`12.3 ms`, `1,234 ms`; `–` over no samples."""
    if value is None:
        return NO_VALUE
    return f"{value:,.0f} ms" if abs(value) >= 100 else f"{value:.3g} ms"


def moment(unix_seconds: float | None) -> str:
    """A wall-clock time in UTC."""
    if unix_seconds is None:
        return NO_VALUE
    try:
        return f"{datetime.fromtimestamp(unix_seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return NO_VALUE


def _level(level: float) -> str:
    return f"{100 * level:g} %"
