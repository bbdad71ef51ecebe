"""SGLang's and vLLM's own request logs, as far as they hold the text of the reply.

SGLang (`--log-requests --log-requests-level 2` or 3) writes `Finish: obj=…, out={…}`: the model's
raw text. Lower levels, and level 2 beyond 2,048 characters, cut the text in the middle (` ... `),
and what was cut cannot be judged. vLLM (`--enable-log-requests --enable-log-outputs`) writes
`Generated response …: output: '…'`.

Sources: SGLang `managers/tokenizer_manager.py`, `utils/log_utils.py`; vLLM
`entrypoints/logger.py`.
"""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

Record = dict[str, Any]

_LOG_LINE = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[\d\d:\d\d|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b|"
    r"\(\w+(?: \w+)? pid=\d+\)|\d\d:\d\d:\d\d|Traceback|\s+File \")"
)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)")
_FINISH = re.compile(r"Finish: obj=.*?\bout=(\{.*\})\s*$")
_RID = re.compile(r"\brid='([^']{1,128})'")
_GENERATED = re.compile(
    r"Generated response ([\w-]{1,128})(?: \((?:streaming[^)]{0,40})\))?: output: ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"),"
    r".*?finish_reason: (\w+)"
)
# SGLang shows long strings as their two ends.
_CUT_MARK = " ... "
_MAX_LITERAL = 4_000_000


def looks_like_log(line: str) -> bool:
    """True for a line that some program's logger wrote."""
    return _LOG_LINE.match(line) is not None


def record_of_line(line: str) -> Record | None:
    """The record that a log line holds; None for every other line."""
    if "Finish: obj=" in line:
        return _sglang(line)
    if "Generated response " in line:
        return _vllm(line)
    return None


def _sglang(line: str) -> Record | None:
    match = _FINISH.search(line)
    if match is None or len(match[1]) > _MAX_LITERAL:
        return None
    try:
        out = ast.literal_eval(match[1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    text = out.get("text") if isinstance(out, Mapping) else None
    if not isinstance(text, str) or _CUT_MARK in text:
        return None
    info = out.get("meta_info")
    finish = info.get("finish_reason") if isinstance(info, Mapping) else None
    kind = finish.get("type") if isinstance(finish, Mapping) else None
    rid = _RID.search(line)
    return {
        **_when(line),
        **({"id": rid[1]} if rid else {}),
        "raw_text": text,
        "finish_reason": kind,
    }


def _vllm(line: str) -> Record | None:
    match = _GENERATED.search(line)
    if match is None:
        return None
    try:
        text = ast.literal_eval(match[2])
    except (ValueError, SyntaxError, MemoryError):
        return None
    finish = None if match[3] in ("None", "streaming_complete") else match[3]
    # A streamed reply is logged whole at its end, without the reason that the client got.
    finish = "stop" if match[3] == "streaming_complete" else finish
    reply = {
        "content": text,
        "reasoning_content": None,
        "tool_calls": None,
        "finish_reason": finish,
    }
    return {**_when(line), "id": match[1], "response": reply}


def _when(line: str) -> Record:
    match = _TIME.search(line[:80])
    return {"time": match[1].replace(",", ".")} if match else {}
