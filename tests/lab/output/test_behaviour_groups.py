"""What SGLang's parser makes of odd DSML, per behaviour group, as measured on its wheels.

Each row is one input; per group what comes of it without streaming and with. Streaming is fed in
deltas of several sizes, with the server's flush at the end; where a size matters the row says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from dsv4doctor.lab.output.behaviour import Behaviour, behaviour_of
from dsv4doctor.lab.output.complete import parse_complete
from dsv4doctor.lab.output.streaming import stream_parser

TOOLS = ("lookup", "store")
BLOCK_OPEN, BLOCK_CLOSE = "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"
INVOKE_CLOSE, PARAMETER_CLOSE = "</｜DSML｜invoke>", "</｜DSML｜parameter>"
SIZES = (1, 2, 3, 4, 5, 7, 11, 23, 10_000)


def parameter(name: str, value: str, string: str = "true") -> str:
    return f'<｜DSML｜parameter name="{name}" string="{string}">{value}{PARAMETER_CLOSE}\n'


def invoke(name: str, body: str) -> str:
    return f'<｜DSML｜invoke name="{name}">\n{body}{INVOKE_CLOSE}\n'


def block(*invokes: str, prose: str = "") -> str:
    return f"{prose}{BLOCK_OPEN}\n{''.join(invokes)}{BLOCK_CLOSE}"


@dataclass
class Outcome:
    """Content, and the calls as (name, arguments text)."""

    content: str = ""
    calls: list[list[str]] = field(default_factory=list)


def complete(text: str, behaviour: Behaviour) -> Outcome:
    parsed = parse_complete(text, TOOLS, behaviour)
    return Outcome(parsed.text, [[str(c.name), c.arguments] for c in parsed.calls])


def fed(deltas: list[str], behaviour: Behaviour, *, flush: bool = True) -> Outcome:
    """What a client has after these deltas; `flush` adds what the server sends at the end."""
    parser = stream_parser(behaviour)
    outcome = Outcome()
    for parsed in [*map(parser.feed, deltas), parser.finish()]:
        outcome.content += parsed.text
        for piece in parsed.calls:
            if piece.name is not None:
                outcome.calls.append([piece.name, ""])
            outcome.calls[piece.index][1] += piece.arguments
    unsent = parser.unsent_arguments()
    if unsent is not None and flush:
        outcome.calls[unsent.index][1] += unsent.arguments
    return outcome


def streamed(text: str, behaviour: Behaviour, size: int, *, flush: bool = True) -> Outcome:
    deltas = [text[i : i + size] for i in range(0, len(text), size)]
    return fed(deltas, behaviour, flush=flush)


GOOD = invoke("lookup", parameter("code", "K7F3-QM2X-9DTW") + parameter("n", "12.5", "false"))
GOOD_CALL = ["lookup", '{"code": "K7F3-QM2X-9DTW", "n": 12.5}']
ALL = "ABC"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("group", ALL)
def test_good_call(group: str, size: int) -> None:
    behaviour = behaviour_of(group)
    text = block(GOOD)
    assert complete(text, behaviour) == Outcome("", [GOOD_CALL])
    outcome = streamed(text, behaviour, size)
    assert outcome.calls == [GOOD_CALL]
    assert outcome.content.strip() == ""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("group", ALL)
def test_two_calls_in_one_block(group: str, size: int) -> None:
    second = invoke("store", parameter("list", '[1, {"a": "é"}, null, true]', "false"))
    text = block(GOOD, second)
    calls = [GOOD_CALL, ["store", '{"list": [1, {"a": "é"}, null, true]}']]
    behaviour = behaviour_of(group)
    assert complete(text, behaviour).calls == calls
    assert streamed(text, behaviour, size).calls == calls


@pytest.mark.parametrize("size", SIZES)
def test_prose_before_a_call(size: int) -> None:
    text = block(GOOD, prose="hello\n\n")
    # Without streaming the blank line is trimmed everywhere.
    for group in ALL:
        assert complete(text, behaviour_of(group)) == Outcome("hello", [GOOD_CALL])
    assert streamed(text, behaviour_of("C"), size) == Outcome("hello", [GOOD_CALL])
    kept = streamed(text, behaviour_of("B"), size)
    assert kept.calls == [GOOD_CALL]
    assert kept.content.startswith("hello")


def test_prose_and_marker_in_one_delta_is_lost_in_a_only() -> None:
    text = block(GOOD, prose="hello\n\n")
    assert streamed(text, behaviour_of("A"), 10_000) == Outcome("", [GOOD_CALL])
    assert streamed(text, behaviour_of("A"), 1).content.startswith("hello\n")
    assert streamed(text, behaviour_of("B"), 10_000) == Outcome("hello", [GOOD_CALL])


def test_a_lone_minus_leaks_all_the_markup_in_a_and_the_call_is_made_all_the_same() -> None:
    text = block(invoke("lookup", parameter("n", "-12.75", "false")))
    assert complete(text, behaviour_of("A")) == Outcome("", [["lookup", '{"n": -12.75}']])
    at = text.index("-12.75")
    cut = [text[:at], "-", text[at + 1 :]]
    leak = fed(cut, behaviour_of("A"))
    assert leak == Outcome(text[: at + 1], [["lookup", '{"n": -12.75}']])
    assert streamed(text, behaviour_of("A"), 1).content.count("｜DSML｜invoke") >= 1
    for group in "BC":
        assert fed(cut, behaviour_of(group)) == Outcome("", [["lookup", '{"n": -12.75}']])


def test_the_fault_leaks_a_lone_minus_in_b_and_nothing_else_of_a() -> None:
    faulty = behaviour_of("B", leaks_negative_numbers=True)
    text = block(invoke("lookup", parameter("n", "-12.75", "false")), prose="hello\n\n")
    leaking = streamed(text, faulty, 1)
    assert "｜DSML｜invoke" in leaking.content
    assert leaking.calls == [["lookup", '{"n": -12.75}']]
    positive = block(GOOD, prose="hello\n\n")
    for size in SIZES:
        assert streamed(positive, faulty, size) == streamed(positive, behaviour_of("B"), size)
    # A delta that carries the minus together with a digit never leaked on any release.
    assert streamed(text, faulty, 10_000) == Outcome("hello", [["lookup", '{"n": -12.75}']])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_false_typed_value_that_is_no_json(size: int) -> None:
    text = block(invoke("lookup", parameter("n", "hello world", "false")))
    for group in ALL:
        assert complete(text, behaviour_of(group)).calls == [["lookup", '{"n": "hello world"}']]
    assert streamed(text, behaviour_of("A"), size).content.count(BLOCK_OPEN) > 1
    for group in "BC":
        outcome = streamed(text, behaviour_of(group), size)
        assert outcome.calls == [["lookup", '{"n": "hello world"}']]
        assert "DSML" not in outcome.content


@pytest.mark.parametrize(("group", "written"), [("A", "NaN"), ("B", "NaN"), ("C", '"NaN"')])
def test_nan(group: str, written: str) -> None:
    text = block(invoke("lookup", parameter("x", "NaN", "false")))
    assert complete(text, behaviour_of(group)).calls == [["lookup", f'{{"x": {written}}}']]
    assert streamed(text, behaviour_of(group), 10_000).calls == [["lookup", f'{{"x": {written}}}']]


@dataclass(frozen=True)
class Row:
    """One input; `ns` and `st` are (content leaks markup, calls) by group."""

    id: str
    text: str
    ns: dict[str, tuple[bool, list[list[str]]]]
    st: dict[str, tuple[bool, list[list[str]]]]
    sizes: tuple[int, ...] = SIZES


def same(value: tuple[bool, list[list[str]]], groups: str = ALL) -> dict[str, object]:
    return dict.fromkeys(groups, value)


CLEAN_CALL = (False, [GOOD_CALL])
NOTHING = (False, [])
LEAK = (True, [])
LEAK_AND_CALL = (True, [GOOD_CALL])
ROWS = [
    Row(
        "bare invoke",
        GOOD,
        {"A": LEAK, "B": LEAK, "C": CLEAN_CALL},
        same(CLEAN_CALL),
    ),
    Row(
        "wrong wrapper",
        block(GOOD).replace("tool_calls", "function_calls"),
        {"A": LEAK, "B": LEAK, "C": CLEAN_CALL},
        {"A": CLEAN_CALL, "B": LEAK_AND_CALL, "C": LEAK_AND_CALL},
    ),
    Row(
        "opener lost its first bar",
        block(GOOD).replace(BLOCK_OPEN, "<DSML｜tool_calls>"),
        {"A": LEAK, "B": LEAK, "C": LEAK_AND_CALL},
        same(LEAK_AND_CALL),
        sizes=(1, 2, 3),
    ),
    Row("ASCII bars", block(GOOD).replace("｜", "|"), same(LEAK), same(LEAK)),
    Row(
        "block never closed",
        block(GOOD).removesuffix(BLOCK_CLOSE),
        {"A": NOTHING, "B": NOTHING, "C": NOTHING},
        same(CLEAN_CALL),
    ),
    Row(
        "block closer cut",
        block(GOOD)[:-4],
        same(NOTHING),
        same(CLEAN_CALL),
    ),
    Row(
        "string attribute missing",
        block(invoke("lookup", parameter("x", "1").replace(' string="true"', ""))),
        {"A": (False, [["lookup", "{}"]]), "B": (False, [["lookup", "{}"]]), "C": NOTHING},
        {"A": (False, [["lookup", "{}"]]), "B": (False, [["lookup", "{}"]]), "C": NOTHING},
    ),
    Row(
        "string attribute damaged: read as JSON",
        block(invoke("lookup", parameter("x", "true", "tru"))),
        same((False, [["lookup", '{"x": true}']])),
        same((False, [["lookup", '{"x": true}']])),
    ),
    Row(
        "direct JSON body",
        block(invoke("lookup", '{"x": "y", "n": [1, 2]}\n')),
        same((False, [["lookup", '{"x": "y", "n": [1, 2]}']])),
        same((False, [["lookup", '{"x": "y", "n": [1, 2]}']])),
    ),
    Row(
        "broken JSON body, not closed",
        block(invoke("lookup", '{"x": "y"\n')),
        {"A": (False, [["lookup", "{}"]]), "B": (False, [["lookup", "{}"]]), "C": NOTHING},
        {"C": NOTHING},
    ),
    Row(
        "value holds the parameter closer: cut, or the invoke dropped",
        block(invoke("lookup", parameter("x", f"see {PARAMETER_CLOSE} more"))),
        {
            "A": (False, [["lookup", '{"x": "see"}']]),
            "B": (False, [["lookup", '{"x": "see"}']]),
            "C": NOTHING,
        },
        {
            "A": (False, [["lookup", '{"x": "see"}']]),
            "B": (False, [["lookup", '{"x": "see"}']]),
            "C": NOTHING,
        },
        sizes=(10_000,),
    ),
    Row(
        "outer blanks of a string are stripped",
        block(invoke("lookup", parameter("x", "  v \n"))),
        same((False, [["lookup", '{"x": "v"}']])),
        same((False, [["lookup", '{"x": "v"}']])),
    ),
    Row(
        "duplicate parameter: the last wins",
        block(invoke("lookup", parameter("x", "1") + parameter("x", "2"))),
        same((False, [["lookup", '{"x": "2"}']])),
        same((False, [["lookup", '{"x": "2"}']])),
        sizes=(10_000,),
    ),
    Row(
        "unknown tool: dropped without streaming, forwarded with it",
        block(invoke("nope", parameter("x", "1"))),
        same(NOTHING),
        same((False, [["nope", '{"x": "1"}']])),
    ),
    Row(
        "output ends inside an opener",
        "well <｜DSML｜tool_c",
        same(LEAK),
        same(NOTHING),
    ),
    Row(
        "prose that names the marker",
        "naming ｜DSML｜ here",
        same(LEAK),
        {},
    ),
    Row(
        "self-closing invoke",
        f'{BLOCK_OPEN}<｜DSML｜invoke name="lookup"/>{BLOCK_CLOSE}',
        same((False, [["lookup", "{}"]])),
        same((False, [["lookup", "{}"]])),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row_without_streaming(row: Row) -> None:
    for group, (leaks, calls) in row.ns.items():
        outcome = complete(row.text, behaviour_of(group))
        assert (("DSML" in outcome.content), outcome.calls) == (leaks, calls), group


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row_with_streaming(row: Row) -> None:
    for group, (leaks, calls) in row.st.items():
        for size in row.sizes:
            outcome = streamed(row.text, behaviour_of(group), size)
            assert (("DSML" in outcome.content), outcome.calls) == (leaks, calls), (group, size)


def test_an_invoke_that_never_closes() -> None:
    text = f'{BLOCK_OPEN}\n<｜DSML｜invoke name="lookup">\n' + parameter("x", "1")
    for group in "AB":
        assert complete(text, behaviour_of(group)) == Outcome()
        # The parser itself sends the name and `{`; the server's flush completes the arguments.
        assert streamed(text, behaviour_of(group), 1, flush=False).calls[0][0] == "lookup"
        assert not _is_json(streamed(text, behaviour_of(group), 1, flush=False).calls[0][1])
        assert streamed(text, behaviour_of(group), 1).calls == [["lookup", '{"x": "1"}']]
    assert complete(text, behaviour_of("C")) == Outcome()
    assert streamed(text, behaviour_of("C"), 1) == Outcome()


def test_a_parameter_that_never_closes() -> None:
    body = '<｜DSML｜parameter name="x" string="true">abc'
    text = f'{BLOCK_OPEN}\n<｜DSML｜invoke name="lookup">\n{body}{INVOKE_CLOSE}{BLOCK_CLOSE}'
    for group in "AB":
        assert complete(text, behaviour_of(group)).calls == [["lookup", "{}"]]
    markup_in_arguments = streamed(text, behaviour_of("B"), 3).calls[0][1]
    assert not _is_json(markup_in_arguments)
    for outcome in (complete(text, behaviour_of("C")), streamed(text, behaviour_of("C"), 3)):
        assert outcome == Outcome()


def test_a_body_that_looks_like_an_object_and_is_none_makes_everything_content_in_a_and_b() -> None:
    text = block(invoke("lookup", '{"x": }\n'))
    for group in "AB":
        assert complete(text, behaviour_of(group)) == Outcome(text)
    assert complete(text, behaviour_of("C")) == Outcome()


@pytest.mark.parametrize("group", "AB")
def test_prose_with_an_opening_bar_is_lost_while_streaming(group: str) -> None:
    behaviour = behaviour_of(group)
    assert complete("a <｜ b c", behaviour) == Outcome("a <｜ b c")
    assert streamed("a <｜ b c", behaviour, 1) == Outcome("a ")
    assert streamed("a <", behaviour, 1) == Outcome("a ")


def test_c_releases_at_the_end_what_it_held_back() -> None:
    behaviour = behaviour_of("C")
    assert streamed("a <｜ b c", behaviour, 1) == Outcome("a <｜ b c")
    assert streamed("a <", behaviour, 1) == Outcome("a <")
    assert streamed("a b \n", behaviour, 1) == Outcome("a b \n")


@pytest.mark.parametrize("group", ALL)
def test_prose_after_the_block_is_dropped(group: str) -> None:
    text = f"{block(GOOD)} and more"
    assert complete(text, behaviour_of(group)) == Outcome("", [GOOD_CALL])
    # Only a delta that brings the end of the invoke and the closer together can be told apart.
    assert streamed(text, behaviour_of(group), 10_000) == Outcome("", [GOOD_CALL])


@pytest.mark.parametrize("group", ALL)
def test_a_stray_end_of_thinking_is_content(group: str) -> None:
    assert complete("</think>hello", behaviour_of(group)).content == "</think>hello"
    assert streamed("</think>hello", behaviour_of(group), 1).content == "</think>hello"


def test_only_the_first_block_counts_in_a_without_streaming() -> None:
    text = block(GOOD) + "\n" + block(GOOD)
    assert complete(text, behaviour_of("A")).calls == [GOOD_CALL]
    assert complete(text, behaviour_of("B")).calls == [GOOD_CALL, GOOD_CALL]


def test_the_name_comes_first_and_alone_in_b_and_with_all_arguments_in_c() -> None:
    text = block(GOOD)
    pieces = {}
    for group in "BC":
        parser = stream_parser(behaviour_of(group))
        pieces[group] = [call for char in text for call in parser.feed(char).calls]
    assert (pieces["B"][0].name, pieces["B"][0].arguments) == ("lookup", "")
    assert len(pieces["B"]) > 10
    assert [(p.name, p.arguments) for p in pieces["C"]] == [tuple(GOOD_CALL)]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
