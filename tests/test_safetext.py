"""Nothing that a model wrote acts where it is shown, and what it wrote can still be read."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from dsv4doctor.safetext import (
    block,
    bounded,
    markdown_block,
    markdown_code,
    markdown_text,
    one_line,
)
from tests.report.sample import HOSTILE_TEXTS

# Lone surrogates included: a broken server sends them. Half of the texts are made of what Markdown
# gives a meaning to.
MARKUP = "`*_[]()<>#+-=|~!\\:&;.@ \t\n01aAw/\"'"
ANY_TEXT = st.one_of(
    st.text(st.characters(codec=None, exclude_categories=()), max_size=60),
    st.text(st.sampled_from(MARKUP), max_size=25),
)
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


def inline_tokens(source: str) -> list[Token]:
    return [child for token in MARKDOWN.parse(source) for child in token.children or []]


def text_of(tokens: list[Token]) -> str:
    return "".join(token.content for token in tokens)


@given(ANY_TEXT)
def test_one_line_is_one_visible_line_that_encodes(text: str) -> None:
    shown = one_line(text)
    assert all(unicodedata.category(c) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in shown)
    shown.encode("utf-8")


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_ascii_is_shown_as_it_is(text: str) -> None:
    assert one_line(text, limit=1000) == text


@pytest.mark.parametrize(
    "text", ["日本語 é ü ß", "e\u0301 ñ", "🌊🦩", "｜DSML｜", "Ελλάδα שלום नमस्ते"]
)
def test_text_of_any_script_is_shown_as_it_is(text: str) -> None:
    assert one_line(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("a\r\nb\tc", "a\\r\\nb\\tc"),
        ("\u202eabc\u2069", "\\u202eabc\\u2069"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("\ud83d!", "\\ud83d!"),
        ("\U000e0041", "\\U000e0041"),
        ("\u3164", "\\u3164"),
        ("\u2028", "\\u2028"),
    ],
)
def test_hidden_characters_are_spelt_out(text: str, shown: str) -> None:
    assert one_line(text) == shown


@given(st.text(max_size=300), st.integers(10, 50))
def test_bounds_keep_head_and_tail(text: str, limit: int) -> None:
    shown = bounded(text, limit)
    if len(text) <= limit:
        assert shown == text
    else:
        assert shown.startswith(text[: limit // 2])
        assert shown.endswith(text[-(limit // 4) :])
        assert f"[{len(text) - limit} characters left out]" in shown


def test_a_block_keeps_its_lines_and_bounds_both_ways() -> None:
    assert block("a\n\x1bb\r\nc") == "a\n\\x1bb\nc"
    tall = block("\n".join(map(str, range(1000))), lines=9)
    assert tall.splitlines()[0] == "0"
    assert tall.splitlines()[-1] == "999"
    assert "[991 lines left out]" in tall
    assert len(block(HOSTILE_TEXTS["long"])) < 1000


@given(ANY_TEXT)
def test_markdown_code_is_one_code_span_also_in_a_cell(text: str) -> None:
    cell = f"| x |\n| --- |\n| {markdown_code(text)} |"
    children = inline_tokens(cell)
    assert [token.type for token in children] == ["text", "code_inline"]
    said = one_line(text)
    assert children[1].content.strip(" ") == said.strip(" ")


@given(ANY_TEXT)
def test_markdown_text_is_text_alone(text: str) -> None:
    tokens = MARKDOWN.parse(markdown_text(text))
    assert {token.type for token in tokens} <= {"paragraph_open", "paragraph_close", "inline"}
    children = [child for token in tokens for child in token.children or []]
    assert {child.type for child in children} <= {"text", "text_special"}
    assert text_of(children).split() == one_line(text).split()


@given(ANY_TEXT)
def test_a_markdown_block_is_one_fence(text: str) -> None:
    tokens = MARKDOWN.parse(markdown_block(text))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content == block(text) + "\n"


@pytest.mark.parametrize("text", ["@maintainer", "see @a/b", "#12", "GH #12", "www.evil.example"])
def test_pages_find_nobody_to_notify_and_nothing_to_link(text: str) -> None:
    shown = markdown_text(text)
    assert "@" not in shown
    assert "#1" not in shown
    assert "www." not in shown


@pytest.mark.parametrize("value", [None, 3, ["x"], {"a": "\x1b"}])
def test_what_is_no_text_is_shown_too(value: object) -> None:
    assert "\x1b" not in one_line(value)
