"""SGLang's and vLLM's own request logs, as far as they hold the text of the reply.

SGLang (`--log-requests --log-requests-level 2` or 3) writes `Finish: obj=…, out={…}`, or with
`--log-requests-format json` an object with `"event": "request.finished"`: the model's raw text,
and in `obj` the rendered prompt. Levels 0 and 1 hold no text, and level 2 cuts what is longer than
2,048 characters in the middle: what was cut cannot be judged. vLLM (`--enable-log-requests
--enable-log-outputs`) writes `Generated response …: output: '…'`: the parsed content (or its calls
as `[tool_calls: f({…})]`) of a whole reply, the model's raw text of a streamed one. Its lines of
single deltas, which it writes too unless told not to, are pieces of what follows whole.

Sources: SGLang `utils/request_logger.py` and `utils/log_utils.py` of 0.5.12 to 0.5.23; vLLM
`entrypoints/logger.py` and the log_outputs calls of its chat serving.
"""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Record = dict[str, Any]

_LOG_LINE = re.compile(
    r"^\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[\d\d:\d\d|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b|"
    r"\(\w+(?: \w+)? pid=\d+\)|\d\d:\d\d:\d\d|Traceback|\s+File \")"
)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)")
_OUT = re.compile(r"\bout=(?=\{)")
_RID = re.compile(r"\brid='([^']{1,128})'")
_TEXT_FIELD = re.compile(r"[(,] ?text=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_GENERATED = re.compile(
    r"Generated response ([\w-]{1,128})(?: \(streaming ([^)]{0,40})\))?: output: ('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"),"
    r".*?finish_reason: (\w+)"
)
# What vLLM writes for a streamed reply whose text it did not keep.
_NO_TEXT = re.compile(r"<streaming_complete: \d+ tokens>")
_CALLS = re.compile(r"\[tool_calls: (.*)\]", re.DOTALL)
_CALL_NAME = re.compile(r"(?:, )?([^\s(){}\"]{0,128})\(")
# The rendered prompt's last turn of the user, and the thinking that it opens for the model.
_USER, _ASSISTANT, _THINK = "<｜User｜>", "<｜Assistant｜>", "<think>"
# SGLang's JSON form shows a long string as two halves of 1,024 characters around this.
_CUT_MARK, _CUT_HALF = "...", 1024
# A literal of many numbers takes a hundred times its length while it is read.
_MAX_LITERAL = 4_000_000
# A prompt may quote `out={` itself; further tries than this are somebody's joke.
_MAX_TRIES = 8


def looks_like_log(line: str) -> bool:
    """True for a line that some program's logger wrote."""
    return _LOG_LINE.match(line) is not None


def record_of_line(line: str) -> Record | None:
    """The record that a log line holds; None for every other line."""
    if "Finish: obj=" in line:
        return _sglang(line)
    if "Generated response " in line:
        return _vllm(line)
    if '"event": "request.finished"' in line:
        try:
            return record_of_event(json.loads(line[line.index("{") :]))
        except (ValueError, RecursionError):
            return None
    return None


def is_event(value: Any) -> bool:
    """True for an object that SGLang's request log writes in its JSON form."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("event"), str)
        and value["event"].startswith("request.")
        and isinstance(value.get("obj"), Mapping)
    )


def record_of_event(value: Any) -> Record | None:
    """The record of a finished request's event; None where the event has no whole text."""
    if not is_event(value) or not isinstance(value.get("out"), Mapping):
        return None
    text = value["out"].get("text")
    if isinstance(text, str) and _is_halved(text):
        return None
    when = {"time": value["timestamp"]} if isinstance(value.get("timestamp"), str) else {}
    rid = value.get("rid")
    known = {"id": rid} if isinstance(rid, str) else {}
    return _of_output({**when, **known}, value["out"], value["obj"].get("text"))


def _is_halved(text: str) -> bool:
    return (
        len(text) == 2 * _CUT_HALF + len(_CUT_MARK)
        and text[_CUT_HALF : _CUT_HALF + len(_CUT_MARK)] == _CUT_MARK
    )


def is_too_long(line: str) -> bool:
    """True for the line of a finished request that is longer than what is read of one."""
    if len(line) <= _MAX_LITERAL or "Finish: obj=" not in line:
        return False
    out = _OUT.search(line)
    return out is not None and len(line) - out.end() > _MAX_LITERAL


def _sglang(line: str) -> Record | None:
    # Of all that look like it, the reply is the one whose braces close with the line.
    for found, _ in zip(_OUT.finditer(line), range(_MAX_TRIES), strict=False):
        literal = line[found.end() :].rstrip()
        if len(literal) > _MAX_LITERAL:
            continue
        try:
            out = ast.literal_eval(literal)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            # A cut text is no literal: two strings with dots between them. A type is wrong where
            # a list is a key.
            continue
        if isinstance(out, Mapping) and "meta_info" in out:
            asked = line[: found.start()]
            rid = _RID.search(asked)
            known = {"id": rid[1]} if rid else {}
            return _of_output({**_when(line), **known}, out, _prompt_field(asked))
    return None


def _prompt_field(asked: str) -> str | None:
    match = _TEXT_FIELD.search(asked) if len(asked) <= _MAX_LITERAL else None
    if match is None:
        return None
    try:
        text = ast.literal_eval(match[1])
    except (ValueError, SyntaxError, MemoryError):
        return None
    return text if isinstance(text, str) else None


def _of_output(base: Record, out: Mapping[str, Any], prompt: Any) -> Record | None:
    """The record of what SGLang's engine gave out; `prompt` is the rendered one, if known."""
    text = out.get("text")
    if not isinstance(text, str):
        return None
    info = out.get("meta_info")
    info = info if isinstance(info, Mapping) else {}
    finish = info.get("finish_reason")
    record = {
        **base,
        "raw_text": text,
        "finish_reason": finish.get("type") if isinstance(finish, Mapping) else finish,
    }
    if isinstance(info.get("completion_tokens"), int):
        record["completion_tokens"] = info["completion_tokens"]
    if isinstance(prompt, str) and _USER in prompt:
        turn = prompt[prompt.rindex(_USER) + len(_USER) :]
        record["prompt"] = turn.partition(_ASSISTANT)[0]
        # The model goes on thinking where its prompt has opened it.
        if prompt.endswith(_THINK):
            record["raw_text"] = _THINK + text
    return record


def _vllm(line: str) -> Record | None:
    match = _GENERATED.search(line)
    if match is None or match[2] == "delta":
        return None
    try:
        text = ast.literal_eval(match[3])
    except (ValueError, SyntaxError, MemoryError):
        return None
    if _NO_TEXT.fullmatch(text):
        return None
    base = {**_when(line), "id": match[1]}
    if match[2] is not None:
        # The model's own text; the reason that the client got is not logged.
        return {**base, "raw_text": text, "finish_reason": "stop"}
    calls = _CALLS.fullmatch(text)
    reply = {
        "content": None if calls else text,
        "reasoning_content": None,
        "tool_calls": list(_calls_of(calls[1])) if calls else None,
        "finish_reason": None if match[4] == "None" else match[4],
    }
    return {**base, "response": reply}


def _calls_of(listed: str) -> Iterator[Record]:
    """The calls of `f({…}), g({…})`; the last one takes the rest where its braces do not close."""
    decoder = json.JSONDecoder()
    at = number = 0
    while (name := _CALL_NAME.match(listed, at)) is not None:
        start = name.end()
        try:
            at = decoder.raw_decode(listed, start)[1]
        except (ValueError, RecursionError):
            at = len(listed) - 1
        if listed[at : at + 1] != ")":
            at = len(listed) - 1
        function = {"name": name[1], "arguments": listed[start:at]}
        yield {"id": f"call_{number}", "type": "function", "index": number, "function": function}
        number, at = number + 1, at + 1


def _when(line: str) -> Record:
    match = _TIME.search(line[:80])
    return {"time": match[1].replace(",", ".")} if match else {}
