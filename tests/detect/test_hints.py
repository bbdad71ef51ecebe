"""The first pass clears texts of rules; whatever a rule finds, it finds after the first pass too."""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_variants import VARIANTS

from dsv4doctor.detect import hints, judge, judge_all
from dsv4doctor.detect.hints import ALWAYS, ANY, hints_of
from dsv4doctor.exchange import Exchange, Response, ToolCall, exchange_from_record

# Pieces that rules begin with, ordinary ones among them.
PIECES = (
    "<｜DSML｜invoke name=\"f\">", "</｜DSML｜", "<invoke name='f'>", 'string="true">', "<｜tool▁calls▁begin｜>", "&lt;|DSML",
    "tool_calls>", "<|im_end|>", "<|im_st", "</s>", "<unk>", "[INST]", "<0x0A>", "]~b]", "</think>", "<thinking>", "nk>\n",
    "assistantfinal", "The user wants ", "Let me ", "用户想", "пользователь хочет ", "\x07", "\ufffd", "\ue000", "Ã©", "РџСЂРёРІРµС‚",
    "ΓÇö", "锟斤拷", "Ġthe", "`code`", "```\n", "~~~", "of );", "word))]then ", " ,- and ", "}} the ", "tion ", "the the ", "| and | ", "--\n",
    "# # x", "9$ a", "sеrvеr ", "然后 ", "ничего ", "καλός ", "שלום ", "한국어 ", "สวัสดี ", "नमस्ते ", "😀", "†‡¶¤¦", "\u3000", "\u00a0",
    "\u2028", "error: connection reset", "\nUser: a\nAssistant: b", "You are Bot, ", "all rights reserved ", "Hello there. ", "x = 1\n",
    "a,b;c ", "Thelockis,heldby.The", "\u200b", "\ud800", "for for ", "10 , ) ; ", " {\n", "ok ok ",
)  # fmt: skip

WORDS = "the value of a key is read once and kept until its file changes"


def _same_in_a_batch(exchanges: list[Exchange]) -> None:
    assert judge_all(exchanges) == [judge(exchange) for exchange in exchanges]


def test_variants_are_judged_in_a_batch_as_each_by_itself() -> None:
    exchanges = [
        exchange_from_record({k: v for k, v in variant.items() if k not in ("name", "label")})
        for variant in VARIANTS
    ]
    for at in range(0, len(exchanges), 48):
        _same_in_a_batch(exchanges[at : at + 48])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14), min_size=2, max_size=8))
def test_texts_of_odd_pieces_too(texts: list[list[str]]) -> None:
    _same_in_a_batch(
        [
            Exchange(
                response=Response(content="".join(pieces), finish_reason="stop"), prompt="Go on."
            )
            for pieces in texts
        ]
    )


CALLS: tuple[tuple[ToolCall, ...] | None, ...] = (
    None,
    (),
    (ToolCall(name="f", arguments="{}"),),
    (ToolCall(name="f", arguments=None),),
    (ToolCall(name=None, arguments='{"n": 1}'),),
    (ToolCall(name="f", arguments='{"s": "a </think> b"}'), ToolCall(name="f", arguments="{")),
)
REPLIES = st.builds(
    Response,
    content=st.sampled_from(
        (None, "", " ", [], 7, {"a": 1}, "Done.", "\ud800", [{"text": "<｜DSML｜"}])
    ),
    reasoning_content=st.sampled_from((None, "", "The user wants it.", 3)),
    tool_calls=st.sampled_from(CALLS),
    finish_reason=st.sampled_from((None, "stop", "length", "tool_calls", "abort")),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(REPLIES, min_size=2, max_size=5), st.sampled_from((None, "", "Go on.")))
def test_replies_of_any_shape_too(replies: list[Response], prompt: str | None) -> None:
    _same_in_a_batch([Exchange(response=reply, prompt=prompt) for reply in replies])


def test_replies_without_any_text_too() -> None:
    for calls in CALLS[:4]:
        _same_in_a_batch([Exchange(response=Response(tool_calls=calls))] * 2)


def test_pieces_in_running_text_too() -> None:
    rng = random.Random(5)
    words = WORDS.split()
    texts = list[str]()
    for piece in PIECES:
        around = " ".join(rng.choices(words, k=60))
        texts += [f"{around} {piece} {around}", piece + around, around + piece]
    exchanges = [Exchange(response=Response(content=text, finish_reason="stop")) for text in texts]
    for at in range(0, len(exchanges), 40):
        _same_in_a_batch(exchanges[at : at + 40])


def test_a_plain_sentence_has_no_hint() -> None:
    assert hints_of(b"The lock is held by the writer until the last reader has gone.") == ALWAYS


def test_what_cannot_be_encoded_is_looked_at_by_every_rule() -> None:
    assert hints_of("a lone \ud800 surrogate".encode("utf-8", "surrogatepass")) == ANY


def test_without_hyperscan_every_rule_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "_scanner", lambda: None)
    assert hints_of(b"The lock is held.") == ANY
    replies = ["Fine.", "<｜DSML｜tool_calls>", "The lock is held."]
    _same_in_a_batch(
        [Exchange(response=Response(content=r, finish_reason="stop")) for r in replies]
    )


def test_each_pattern_matches_something() -> None:
    """A pattern that no text of the tests has would clear its rule without anybody noticing."""
    texts = [str(text) for v in VARIANTS for text in _strings(v["response"])] + list(PIECES)
    found = 0
    for text in texts:
        bits = hints_of(text.encode("utf-8", "surrogatepass"))
        found |= bits if bits != ANY else 0
    every = {1 << bit for _, bit in hints._patterns}
    assert not {bit for bit in every if not found & bit}


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for item in value for text in _strings(item)] if isinstance(value, list) else []
