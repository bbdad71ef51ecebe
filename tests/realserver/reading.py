"""What a person would call each reply: few plain rules against which the labels are held.

The reply is read from the bytes that the run kept (`raw/`) by a merge of five lines, and from the
record where no bytes were kept. Nothing of dsv4doctor is imported: a fault of its readers must not
hide here. Rules are one-sided where people would differ: `must` lists labels that have to be named.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARKER = "｜DSML｜"
_FENCE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd]")
_WRONG_VALUE = {"canary_mismatch", "foreign_content", "token_salad", "repetition_loop"}


@dataclass(slots=True)
class Reply:
    """A reply as its bytes say."""

    content: str = ""
    reasoning: str = ""
    calls: dict[int, list[str]] = field(default_factory=dict)  # index: [name, arguments]
    finish: str | None = None

    def add(self, message: dict[str, Any]) -> None:
        """Take in one message or delta."""
        self.content += message.get("content") or ""
        self.reasoning += message.get("reasoning_content") or message.get("reasoning") or ""
        for position, piece in enumerate(message.get("tool_calls") or ()):
            call = self.calls.setdefault(piece.get("index", position), ["", ""])
            call[0] += (piece.get("function") or {}).get("name") or ""
            call[1] += (piece.get("function") or {}).get("arguments") or ""


@dataclass(slots=True)
class Opinion:
    """What must and must not be said of one reply; `why` is told when it was not."""

    must: set[str] = field(default_factory=set)
    any_of: set[str] = field(default_factory=set)
    corrupted: bool | None = None  # None: people would differ
    why: list[str] = field(default_factory=list)


def reply_of_stream(raw: str) -> Reply:
    """Merge the frames of a chat stream, and nothing clever."""
    reply = Reply()
    for line in raw.splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:]).get("choices") or ():
            reply.add(choice.get("delta") or {})
            reply.finish = choice.get("finish_reason") or reply.finish
    return reply


def reply_of_record(record: dict[str, Any]) -> Reply:
    response = record["response"]
    reply = Reply(finish=response["finish_reason"])
    reply.add(response)
    return reply


def opinion(record: dict[str, Any], reply: Reply) -> Opinion:
    """What a person who knows what was asked for says of `reply`."""
    said = Opinion()
    if reply.finish == "length":
        said.must.add("truncated")
        said.why.append("cut by max_tokens")
    if MARKER in _FENCE.sub("", reply.content):
        said.must.add("dsml_leak")
        said.corrupted = True
        said.why.append("markup in the content")
    choice, is_call_turn = record["tool_choice"], record["kind"] == "tool_call"
    if reply.calls:
        _of_calls(record, reply, said)
    elif is_call_turn or choice == "required" or isinstance(choice, dict):
        said.any_of |= {"missing_tool_call", "dsml_leak", "truncated"}
        said.corrupted = True
        said.why.append("no call, though one was to be made")
    elif not (reply.content.strip() or reply.reasoning.strip()):
        said.must.add("empty")
        said.corrupted = True
        said.why.append("nothing to be seen")
    elif _is_the_passage(record, reply.content):
        said.corrupted = False
        said.why.append("the passage, word for word")
    elif reply.finish == "length" and _begins_the_passage(record, reply.content):
        said.corrupted = False
        said.why.append("the passage's beginning, cut by our own max_tokens")
    else:
        # A marker of the chat template, salad, a loop, or at least: not the passage.
        said.corrupted = True
        said.why.append("not the passage")
    return said


def _of_calls(record: dict[str, Any], reply: Reply, said: Opinion) -> None:
    wanted: dict[int, dict[str, Any]] = {}
    tools: dict[int, str] = {}
    for canary in record["canaries"]:
        if canary["tool"]:
            wanted.setdefault(canary["call_index"], {})[canary["argument"]] = canary["value"]
            tools[canary["call_index"]] = canary["tool"]
    made = [(name, _strict(arguments)) for _, (name, arguments) in sorted(reply.calls.items())]
    offered = {tool["function"]["name"]: tool["function"]["parameters"] for tool in record["tools"]}
    if made == [(tools[i], wanted[i]) for i in sorted(wanted)] and not reply.content.strip():
        said.corrupted = said.corrupted or False
        said.why.append("exactly the calls that were asked for")
        return
    said.corrupted = True
    for name, arguments in made:
        if name not in offered:
            said.must.add("unknown_tool")
            said.why.append(f"no tool {name!r} was offered")
        elif arguments is None:
            said.must.add("malformed_arguments")
            said.why.append("arguments that are no JSON object")
        elif problem := _misfit(offered[name], arguments):
            said.must.add("schema_violation")
            said.why.append(problem)
        else:
            said.any_of |= _WRONG_VALUE | {"dsml_leak", "schema_violation", "special_token_leak"}
            said.why.append("a sound call with other values")


def _strict(arguments: str) -> dict[str, Any] | None:
    def refuse(word: str) -> Any:
        raise ValueError(word)

    try:
        value = json.loads(arguments, parse_constant=refuse)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _misfit(schema: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    """The tools of these scenarios take strings alone: all of them, and no others."""
    expected = set(schema["required"])
    if set(arguments) != expected:
        return f"arguments {sorted(arguments)} where {sorted(expected)} are declared"
    odd = [name for name, value in arguments.items() if not isinstance(value, str)]
    return f"{odd} are no strings" if odd else None


def _is_the_passage(record: dict[str, Any], content: str) -> bool:
    passages = [c["value"] for c in record["canaries"] if c["tool"] is None]
    return " ".join(content.split()) in {" ".join(str(p).split()) for p in passages}


def _begins_the_passage(record: dict[str, Any], content: str) -> bool:
    begun = " ".join(content.split())
    passages = [" ".join(str(c["value"]).split()) for c in record["canaries"] if c["tool"] is None]
    return any(passage.startswith(begun) for passage in passages)


def disagreements(run_dir: Path, records: list[dict[str, Any]]) -> list[str]:
    """Where the run's labels are not what `opinion` says, one line each; aborted ones aside."""
    found: list[str] = []
    for record in records:
        if record["failure"] or record["aborted"]:
            continue
        labels = {record["primary"], *record["also"]}
        reply = reply_of_record(record)
        if record["raw"]:
            raw = (run_dir / record["raw"]).read_bytes().decode("utf-8", errors="replace")
            if reply_of_stream(raw) != reply:
                found.append(f"{record['id']}: the record is not what the bytes say")
        said = opinion(record, reply)
        missed = sorted(said.must - labels)
        if said.any_of and not said.any_of & labels:
            missed.append(f"one of {sorted(said.any_of)}")
        if missed:
            found.append(f"{record['id']}: {', '.join(missed)} not in {sorted(labels)}: {said.why}")
        if said.corrupted is not None and said.corrupted != record["corrupted"]:
            found.append(f"{record['id']}: corrupted is {record['corrupted']}: {said.why}")
        if labels == {"clean"} and _UNPRINTABLE.search(reply.content):
            found.append(f"{record['id']}: unprintable characters called clean")
    return found
