"""`repro` and `scan` against SGLang 0.5.23 itself, with its own V4 encoding, grammar and parser.

The model is random, so nothing that it writes is right; but the forms are the engine's: calls by
its grammar, markup that its parser leaves behind, its way to cut and to abort.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.cli_runs import Done
from realserver.driving import drive, finishes, scan
from realserver.environments import FOLDER
from realserver.reading import Reply, reply_of_stream
from realserver.serving import Serving
from realserver.sglang_cpu import KEY, VERSION, sglang, token_ids

pytestmark = pytest.mark.realserver

CODE, COUNT = "K7F3-QM2X-9DTW", -12
RIGHT = {"ticket": CODE, "count": COUNT}
# About one reply in ten is right: a hundred without one are a chance of 3 in 100,000.
ASK_AT_LEAST, ASK_AT_MOST = 6, 100
# Multiplies a token's odds by e to the power of it: a value ends within some 30 tokens.
LIKELY = 9
END = "<｜end▁of▁sentence｜>"
NEVER = -100
NAMED = {"type": "function", "function": {"name": "file_report"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with sglang(tmp_path_factory.mktemp("sglang") / "server.log") as it:
        yield it


@pytest.fixture(scope="module")
def vocabulary(server: Serving) -> dict[str, int]:
    return token_ids(FOLDER / "tiny-qwen2")


def driven(output_dir: Path, server: Serving, scenario: str, **body: Any) -> Done:
    done = drive(
        output_dir, server.url, scenario, "--api-key", KEY,
        "--extra-request-body", json.dumps(body),
    )  # fmt: skip
    target = done.body["target"]
    assert (target["engine"], target["version"]) == ("sglang", VERSION)
    assert target["server_args"]["tool_call_parser"] == "deepseekv4"
    assert done.document["verdict"] == "corrupted"
    assert done.code == 1
    assert server.answers("/health")
    return done


def ending_calls(vocabulary: dict[str, int]) -> dict[str, int]:
    """A bias under which calls end: towards what closes a DSML parameter and the reply."""
    blanks = {str(i): NEVER for token, i in vocabulary.items() if token[0] in "ĠĊĉč"}
    closing = ("<", "/", "｜DSML｜", END)
    return blanks | {str(vocabulary[token]): LIKELY for token in closing}


def test_required_calls_cut_by_max_tokens(
    server: Serving, vocabulary: dict[str, int], tmp_path: Path
) -> None:
    done = driven(tmp_path, server, "forced", logit_bias={str(vocabulary[END]): NEVER})
    assert finishes(done)["length"] == done.body["responses"]
    assert done.body["aborted_by_us"] == 4
    labels = {**done.body["also_label"], **done.body["by_label"]}
    assert {"truncated", "malformed_arguments"} <= labels.keys()


def test_required_calls_full_of_markup(
    server: Serving, vocabulary: dict[str, int], tmp_path: Path
) -> None:
    """The parser ends a value at any marker, the grammar only at a closer: what is left shows."""
    done = driven(tmp_path, server, "forced", logit_bias=ending_calls(vocabulary))
    labels = {**done.body["also_label"], **done.body["by_label"]}
    assert {"dsml_leak", "truncated"} <= labels.keys()


def test_named_calls(server: Serving, vocabulary: dict[str, int], tmp_path: Path) -> None:
    """The body's own tool_choice outranks the scenario's, in text turns too."""
    done = driven(
        tmp_path, server, "forced", logit_bias=ending_calls(vocabulary), tool_choice=NAMED
    )
    records = [record for record in done.records() if not record["aborted"]]
    names = {c["function"]["name"] for r in records for c in r["response"]["tool_calls"] or ()}
    assert names == {"file_report"}
    named = [{**record, "tool_choice": NAMED} for record in records]
    verdicts = scan(tmp_path / "named.jsonl", named)
    assert all(verdict["primary"] != "clean" for verdict in verdicts)


def test_calls_left_to_the_model(
    server: Serving, vocabulary: dict[str, int], tmp_path: Path
) -> None:
    """Nothing forces a form: salad, with stray markup in it and an end of its own."""
    bias = {str(vocabulary[END]): 4, str(vocabulary["｜DSML｜"]): 3}
    done = driven(tmp_path, server, "free", logit_bias=bias)
    ends = finishes(done)
    assert ends["stop"] > 0, ends
    assert "dsml_leak" in {**done.body["also_label"], **done.body["by_label"]}


def test_secrets_of_the_server_stay_there(server: Serving, tmp_path: Path) -> None:
    done = drive(tmp_path, server.url, "free", "--api-key", KEY, sessions=1, turns=1)
    assert done.body["target"]["server_args"]["api_key"] == "[redacted]"
    assert KEY not in done.stdout + done.stderr
    for path in done.run_dir.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_calls_that_a_schema_makes_right(
    server: Serving, vocabulary: dict[str, int], tmp_path: Path, choice: Any, stream: bool
) -> None:
    """Where a schema allows one value even this model is right now and then, and then clean.

    The grammar leaves it the choice of quoting a value as text or as JSON, and of further calls.
    """
    bias = ending_calls(vocabulary)
    records: list[dict[str, Any]] = []
    while len(records) < ASK_AT_LEAST or not any(map(_is_right, records)):
        assert len(records) < ASK_AT_MOST, "not one right call among them"
        records.append(_record(server, len(records), choice=choice, stream=stream, bias=bias))
    verdicts = scan(tmp_path / "enumerated.jsonl", records)
    for record, verdict in zip(records, verdicts, strict=True):
        labels = {verdict["primary"], *verdict["also"]}
        assert (labels == {"clean"}) is _is_right(record), (labels, record["response"])
        assert _expected(record) <= labels, (labels, record["response"])
    print(f"\n{len(records)} asked, {sum(map(_is_right, records))} right and clean")


def _is_right(record: dict[str, Any]) -> bool:
    reply = _reply(record)
    made = [_parsed(arguments) for _, arguments in reply.calls.values()]
    return made == [RIGHT] and not reply.content and reply.finish == "tool_calls"


def _expected(record: dict[str, Any]) -> set[str]:
    reply = _reply(record)
    made = [_parsed(arguments) for _, arguments in reply.calls.values()]
    return {
        label
        for label, holds in {
            "truncated": reply.finish == "length",
            "dsml_leak": "｜DSML｜" in reply.content,
            "malformed_arguments": any(value is None for value in made),
            "schema_violation": any(value not in (None, RIGHT) for value in made),
            "missing_tool_call": not made,
        }.items()
        if holds
    }


def _record(
    server: Serving, number: int, *, choice: Any, stream: bool, bias: dict[str, int]
) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {
            "ticket": {"type": "string", "enum": [CODE]},
            "count": {"type": "integer", "enum": [COUNT]},
        },
        "required": ["ticket", "count"],
        "additionalProperties": False,
    }
    tools = [
        {"type": "function", "function": {"name": name, "parameters": parameters}}
        for name in ("file_report", "move_stock")
    ]
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": f"File report {number}."}],
        "tools": tools,
        "tool_choice": choice,
        "max_tokens": 160,
        "stream": stream,
        "logit_bias": bias,
    }
    asked = urllib.request.Request(
        f"{server.url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"},
    )
    with urllib.request.urlopen(asked, timeout=300) as answer:
        text = answer.read().decode()
    reply = reply_of_stream(text) if stream else _whole(text)
    response = {
        "content": reply.content or None,
        "reasoning_content": reply.reasoning or None,
        "tool_calls": [
            {"id": f"call_{i}", "type": "function", "function": {"name": name, "arguments": text}}
            for i, (name, text) in reply.calls.items()
        ]
        or None,
        "finish_reason": reply.finish,
    }
    return {"id": f"r{number}", "tools": tools, "tool_choice": choice, "response": response}


def _whole(text: str) -> Reply:
    choice = json.loads(text)["choices"][0]
    reply = Reply(finish=choice["finish_reason"])
    reply.add(choice["message"])
    return reply


def _reply(record: dict[str, Any]) -> Reply:
    reply = Reply(finish=record["response"]["finish_reason"])
    reply.add(record["response"])
    return reply


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return None
