"""Laws of the output path, whatever a healthy model writes and however it is cut into deltas."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4doctor.lab.output.behaviour import behaviour_of
from dsv4doctor.lab.output.complete import parse_complete
from dsv4doctor.lab.output.partial_json import BrokenJson, NotJson, read_partial
from dsv4doctor.lab.output.streaming import stream_parser

WORDS = st.text("abc xyz-09.,:{}[]\"'é漢", min_size=1, max_size=12).map(str.strip).filter(bool)
VALUES = st.one_of(
    WORDS,
    st.integers(-(10**6), 10**6),
    st.booleans(),
    st.none(),
    st.lists(st.integers(), max_size=3),
)
CALL = st.tuples(
    st.sampled_from(["lookup", "store"]), st.dictionaries(st.sampled_from("abcd"), VALUES)
)


def written(calls: list[tuple[str, dict[str, Any]]]) -> str:
    invokes = ""
    for name, arguments in calls:
        parameters = ""
        for key, value in arguments.items():
            is_text = isinstance(value, str)
            text = value if is_text else json.dumps(value)
            marker = "true" if is_text else "false"
            parameters += (
                f'<｜DSML｜parameter name="{key}" string="{marker}">{text}</｜DSML｜parameter>\n'
            )
        invokes += f'<｜DSML｜invoke name="{name}">\n{parameters}</｜DSML｜invoke>\n'
    return f"<｜DSML｜tool_calls>\n{invokes}</｜DSML｜tool_calls>"


@pytest.mark.parametrize("group", "BC")
@settings(max_examples=60, deadline=None)
@given(
    calls=st.lists(CALL, min_size=1, max_size=3),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=8),
)
def test_a_healthy_reply_arrives_whole_and_clean(
    group: str, calls: list[tuple[str, dict[str, Any]]], sizes: list[int]
) -> None:
    behaviour = behaviour_of(group)
    text = "Well.\n\n" + written(calls)
    parser = stream_parser(behaviour)
    content, got = "", []
    at = 0
    for size in itertools.cycle(sizes):
        parsed = parser.feed(text[at : at + size])
        at += size
        content += parsed.text
        for piece in parsed.calls:
            if piece.name is not None:
                got.append([piece.name, ""])
            got[piece.index][1] += piece.arguments
        if at >= len(text):
            break
    content += parser.finish().text
    assert parser.unsent_arguments() is None
    assert content.strip() == "Well."
    assert [(name, json.loads(arguments)) for name, arguments in got] == calls
    whole = parse_complete(text, ["lookup", "store"], behaviour)
    assert whole.text == "Well."
    assert [(c.name, json.loads(c.arguments)) for c in whole.calls] == calls


@settings(max_examples=60, deadline=None)
@given(value=st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3), max_leaves=6))
def test_every_beginning_of_json_reads_or_is_refused_as_too_short(value: object) -> None:
    text = json.dumps(value)
    assert read_partial(text) == value
    for end in range(1, len(text)):
        try:
            read_partial(text[:end])
        except NotJson:
            assert text[:end] == "-"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("12.", 12),
        ("-0.5e", -0.5),
        ("tru", True),
        ('"half', "half"),
        ('{"a": 1, "b', {"a": 1}),
        ('[1, {"a": "x', [1, {"a": "x"}]),
        ("3 and more", 3),
    ],
)
def test_what_a_beginning_says(text: str, value: object) -> None:
    assert read_partial(text) == value


@pytest.mark.parametrize("text", ["-", "hello", "+1", "</", "'x'"])
def test_refused_beginnings(text: str) -> None:
    with pytest.raises(NotJson):
        read_partial(text)


@pytest.mark.parametrize("text", ['{"a": hello', "[1 2", '{"a" 1', '["\n"'])
def test_broken_inside(text: str) -> None:
    with pytest.raises(BrokenJson):
        read_partial(text)
