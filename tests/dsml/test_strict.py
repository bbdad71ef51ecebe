"""The strict reader against DeepSeek's own package, as encoder and as parser, and what it
refuses."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4doctor.dsml.generations import V4, V41, Generation
from dsv4doctor.dsml.strict import DsmlError, StrictCall, read_strict

recipe = pytest.importorskip("deepseek_recipe")

# The oracle treats its own markers inside values as markup, as every parser does.
_TEXT = st.text(
    st.characters(exclude_characters="｜▁", exclude_categories=("Cs",)), min_size=1, max_size=40
)
_KEY = st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEY, inner, max_size=3),
    max_leaves=6,
)
_CALLS = st.lists(
    st.tuples(_KEY, st.dictionaries(_KEY, _VALUE, max_size=4)), min_size=1, max_size=3
)
_GENERATIONS = [
    pytest.param(V4, "DeepseekV4Encoding", "DeepSeek-V4-Pro", id="V4"),
    pytest.param(V41, "DeepseekV41Encoding", "DeepSeek-V4.1-Flash", id="V4.1"),
]


def _encoded(encoding: str, content: str, calls: list[tuple[str, dict[str, Any]]]) -> str:
    made = [
        recipe.ToolCall(f"c{n}", name, json.dumps(arguments, ensure_ascii=False))
        for n, (name, arguments) in enumerate(calls)
    ]
    conversation = recipe.Conversation(
        [recipe.UserMessage("u"), recipe.AssistantMessage(content, tool_calls=made)],
        thinking_mode=False,
    )
    prompt = getattr(recipe, encoding)().render_conversation(conversation).prompt
    return str(prompt).split("</think>", 1)[1].split("<｜Assistant｜>")[0]


def _parsed(model: str, text: str) -> tuple[str, list[tuple[str, str]]]:
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "u"}],
        "tools": [
            {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        ],
    }
    options = recipe.ConversionOptions(default_thinking_mode=False)
    request = recipe.ChatCompletionRequest(body).convert(options)
    generator = recipe.ChatCompletionRequest.chunk_generator(request, "id", model)
    processor = recipe.StreamProcessor(generator, recipe.ParsingOptions())
    content: list[str] = []
    calls: dict[int, list[str]] = {}
    finish = recipe.InferenceChunk.finish(recipe.InferenceFinishReason.Stop)
    for chunk in (recipe.InferenceChunk.ready(), recipe.InferenceChunk.text(text, 1), finish):
        for event in processor.push(chunk):
            for choice in json.loads(event.to_json())["choices"]:
                content.append(choice["delta"].get("content") or "")
                for piece in choice["delta"].get("tool_calls", ()):
                    call = calls.setdefault(piece["index"], ["", ""])
                    call[0] += piece["function"].get("name") or ""
                    call[1] += piece["function"].get("arguments") or ""
    return "".join(content), [(name, arguments) for name, arguments in calls.values()]


@pytest.mark.parametrize(("generation", "encoding", "model"), _GENERATIONS)
@settings(max_examples=60, deadline=None)
@given(calls=_CALLS)
def test_reads_what_the_encoder_writes(
    generation: Generation, encoding: str, model: str, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    text = _encoded(encoding, "Let me see.", calls)
    read = read_strict(text, generation)
    assert read.content == "Let me see."
    assert read.calls == tuple(StrictCall(name=n, arguments=a) for n, a in calls)
    assert read_strict(text) == read


@pytest.mark.parametrize(("generation", "encoding", "model"), _GENERATIONS)
@settings(max_examples=40, deadline=None)
@given(calls=_CALLS)
def test_agrees_with_the_parser(
    generation: Generation, encoding: str, model: str, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    text = _encoded(encoding, "Let me see.", calls).removesuffix("<｜end▁of▁sentence｜>")
    content, parsed = _parsed(model, text)
    read = read_strict(text, generation)
    assert content == read.content
    assert [(n, json.loads(a)) for n, a in parsed] == [(c.name, c.arguments) for c in read.calls]


GOOD = (
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n'
    '<｜DSML｜parameter name="x" string="true">1</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="n" string="false">-2</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
)
REFUSED = {
    "never closed": GOOD.removesuffix("</｜DSML｜tool_calls>"),
    "closer cut": GOOD[:-4],
    "invoke never closed": GOOD.replace("</｜DSML｜invoke>\n", ""),
    "parameter never closed": GOOD.replace("1</｜DSML｜parameter>", "1", 1),
    "string attribute missing": GOOD.replace(' string="true"', ""),
    "string attribute odd": GOOD.replace('"true"', '"tru"'),
    "value no JSON": GOOD.replace("-2", "hello world"),
    "value NaN": GOOD.replace("-2", "NaN"),
    "twice the same parameter": GOOD.replace('name="n"', 'name="x"'),
    "json body": GOOD.replace('<｜DSML｜parameter name="x" string="true">1</｜DSML｜parameter>', '{"x": 1}'),
    "bare invoke": GOOD.split("\n", 1)[1].rsplit("\n", 1)[0],
    "wrong wrapper": GOOD.replace("tool_calls", "toolcalls"),
    "wrapper closed as another": GOOD.replace("</｜DSML｜tool_calls", "</｜DSML｜function_calls"),
    "bar lost": GOOD.replace("<｜DSML｜tool_calls", "<DSML｜tool_calls", 1),
    "text after the block": GOOD + "\nAnd so on.",
    "markup before the block": "</｜DSML｜invoke>\n" + GOOD,
    "two blocks": GOOD + "\n" + GOOD,
    "empty block": "<｜DSML｜tool_calls>\n</｜DSML｜tool_calls>",
    "orphan": "All is well.\n</｜DSML｜tool_calls>",
    "v3 unclosed": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}",
    "v3 no separator": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_refuses(text: str) -> None:
    with pytest.raises(DsmlError) as error:
        read_strict(text)
    assert 0 <= error.value.offset <= len(text)


def test_reads_the_old_tokens() -> None:
    v31 = '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    v3 = v31.replace("｜>f<", "｜>function<").replace('{"a": 1}', 'f\n```json\n{"a": 1}\n```')
    for text in (v31, v3):
        assert read_strict("Hm." + text).calls == (StrictCall(name="f", arguments={"a": 1}),)


def test_prose_has_no_calls() -> None:
    assert read_strict("Nothing to call.").calls == ()


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, 12), st.text(max_size=4))
def test_any_damage_is_read_or_refused(at: int, cut: int, put: str) -> None:
    # Anything but a DsmlError would escape.
    with contextlib.suppress(DsmlError):
        read_strict(GOOD[:at] + put + GOOD[at + cut :])
