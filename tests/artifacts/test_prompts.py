"""Prompts from files, in the forms people have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsv4doctor.artifacts.prompts import read_prompts
from dsv4doctor.errors import UsageError

USER = {"role": "user", "content": "hello"}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {}}}


def written(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("hello", id="string"),
        pytest.param({"prompt": "hello"}, id="vllm-custom"),
        pytest.param({"messages": [USER]}, id="openai-body"),
        pytest.param(
            {"conversations": [{"from": "gpt", "value": "x"}, {"from": "human", "value": "hello"}]},
            id="sharegpt",
        ),
        pytest.param({"conversations": [{"role": "user", "content": "hello"}]}, id="roles"),
    ],
)
def test_forms(tmp_path: Path, line: object) -> None:
    (prompt,) = read_prompts(written(tmp_path, line), most=10)
    assert prompt.messages == (USER,)
    assert (prompt.tools, prompt.max_tokens) == ((), None)


def test_what_a_request_body_asks_for_is_kept(tmp_path: Path) -> None:
    body = {"messages": [{"role": "system", "content": "s"}, USER], "tools": [TOOL],
            "tool_choice": "required", "max_tokens": 7}  # fmt: skip
    (prompt,) = read_prompts(written(tmp_path, body), most=10)
    assert prompt.tools == (TOOL,)
    assert (prompt.tool_choice, prompt.max_tokens) == ("required", 7)
    assert len(prompt.messages) == 2


def test_sharegpt_is_a_list_and_only_as_many_are_read_as_are_sent(tmp_path: Path) -> None:
    path = tmp_path / "sharegpt.json"
    entries = [{"conversations": [{"from": "human", "value": f"q{n}"}]} for n in range(5)]
    path.write_text(" \n" + json.dumps(entries, indent=1), encoding="utf-8")
    prompts = read_prompts(path, most=3)
    assert [prompt.messages[0]["content"] for prompt in prompts] == ["q0", "q1", "q2"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("", "holds no prompt", id="empty"),
        pytest.param("\n\n", "holds no prompt", id="blank"),
        pytest.param('{"prompt": "a"}\n{"prompt": \n', "prompts.jsonl:2 is no JSON", id="cut"),
        pytest.param('{"text": "a"}\n', "prompts.jsonl:1 has no prompt", id="other-keys"),
        pytest.param("7\n", "a JSON int", id="number"),
        pytest.param('{"messages": ["hello"]}\n', "has no prompt", id="messages-of-strings"),
        pytest.param('[{"conversations": []}]', "entry 1 has no prompt", id="no-turns"),
        pytest.param("{" * 5000, "no JSON", id="deep"),
    ],
)
def test_what_is_no_prompt_is_named(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "prompts.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=problem):
        read_prompts(path, most=10)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_prompts(tmp_path / "none.jsonl", most=1)
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="UTF-8"):
        read_prompts(binary, most=1)
