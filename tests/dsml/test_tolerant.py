"""The tolerant reader finds markup in any state of damage, in order, and never invents any."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4doctor.dsml.generations import GENERATIONS, Generation
from dsv4doctor.dsml.tolerant import Form, fragments, may_hold_markup, written_calls


def _block(generation: Generation) -> str:
    invoke, parameter = generation.invoke, generation.parameter
    return (
        generation.opener(generation.block)
        + generation.opener(invoke, ' name="f"')
        + generation.opener(parameter, ' name="x" string="true"')
        + "1"
        + generation.closer(parameter)
        + generation.closer(invoke)
        + generation.closer(generation.block)
    )


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda g: g.name)
def test_reads_every_generation(generation: Generation) -> None:
    found = fragments(_block(generation))
    assert [f.element for f in found] == [
        "block", "invoke", "parameter", "parameter", "invoke", "block",
    ]  # fmt: skip
    assert [f.closing for f in found] == [False, False, False, True, True, True]
    assert {f.form for f in found} == {Form.TAG}
    (call,) = written_calls(_block(generation))
    assert (call.name, call.parameters) == ("f", (("x", "1"),))


@pytest.mark.parametrize("generation", GENERATIONS, ids=lambda g: g.name)
def test_every_cut_of_an_opener_is_seen(generation: Generation) -> None:
    opener = generation.opener(generation.block)
    for length in range(2, len(opener)):
        found = fragments("Well.\n" + opener[:length])
        assert found, opener[:length]
        assert found[0].start == 6


@pytest.mark.parametrize(
    "text",
    [
        "a｜b",
        "x < y | z",
        "<invoice>",
        "parameters",
        "call_tool()",
        "<b>invoke</b>",
        "||",
        "<|>",
        "",
    ],
)
def test_invents_nothing(text: str) -> None:
    assert fragments(text) == ()


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='<>/｜| DSMLdsmltoolcainvkepr▁_="\n', max_size=120))
def test_fragments_are_in_order_and_within(text: str) -> None:
    end = 0
    for fragment in fragments(text):
        assert end <= fragment.start < fragment.end <= len(text)
        end = fragment.end
    assert may_hold_markup(text) or not fragments(text)
