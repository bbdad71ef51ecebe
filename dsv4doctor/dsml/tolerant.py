"""Reads what is left of tool-call markup in a text, however damaged: tags, halves, orphans,
remnants.

Nothing is required to match anything: bars may be full-width, ASCII, doubled or HTML-escaped,
names may carry V4.1's blank, tags may be cut at the end of the text or torn in the middle. The
reader says what stands where; whether that is a leak or a quotation is for the detector to decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Form(StrEnum):
    """What a fragment is."""

    TAG = "tag"  # a whole DSML tag: `<｜DSML｜invoke name="f">`
    HALF = "half"  # a tag cut short: `<｜DSML`, `<｜DSML｜tool_c`
    TORN = "torn"  # pieces of a marker with something else between or a bar lost
    BARE = "bare"  # the marker token with no tag around it: `｜DSML｜`
    PLAIN = "plain"  # the elements without the marker: `<invoke name="f">`
    ATTRIBUTE = "attribute"  # the tail of an opener: `string="true">`
    TOKEN = "token"  # V3 and V3.1 special tokens: `<｜tool▁call▁begin｜>`


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """One piece of markup: `text[start:end]`. `element` is `block`, `invoke`, `parameter`,
    `results` (what a prompt wraps a tool's answer in) or None."""

    form: Form
    start: int
    end: int
    element: str | None = None
    closing: bool = False
    name: str | None = None


_LT = r"(?:<|&lt;|&#60;|&#x3c;|＜|\\u003c|%3C)"
_GT = r"(?:>|&gt;|&#62;|&#x3e;|＞|\\u003e|%3E)"
# Beside the real bar and its escapes, the look-alikes that models and clients write for it.
_BAR = (
    r"(?:｜|\||‖|│|∣|❘|丨|ǀ|┃|¦|∥|︱|⏐|￨|&#65372;|&#xff5c;|&#124;|&vert;|"
    r"\\uff5c|%EF%BD%9C|ï½(?:œ|\x9c))"
)
# What a broken decoder or a poor character set makes of it, between a bracket and the marker.
_LOST = r"(?:\ufffd{1,3}|\?{1,3})"
# A bar that no table and no pipe is drawn with.
_WIDE_BAR = r"(?:｜|‖|￨|&#65372;|&#xff5c;|\\uff5c)"
_NAME = r"(?:tool_calls?|function_calls?|calls|invoke|parameter)"
_QUOTE = r"(?:\\?[\"']|&quot;|&#34;)"
_ATTRIBUTES = r"[^<>&]{0,80}(?:&quot;[^<>&]{0,200}){0,6}"

# Head of a DSML tag: the bracket, bars, marker; then what follows it.
_TAG = re.compile(
    rf"{_LT}\s?(?P<slash>/)?\s?(?:{_BAR}{{1,3}}|{_LOST})\s?DSML(?P<bar>\s?(?:{_BAR}{{1,3}}|{_LOST}))?"
    rf"(?P<rest>\s?/?\s?(?P<element>[a-z_]{{0,16}})(?P<attributes>{_ATTRIBUTES})(?P<close>{_GT})?)",
    re.IGNORECASE,
)
# A bar lost on one side, or letters torn out of the marker before an element's name; behind a bar
# that tables have too (`| XML | parameter |`) only where the tag goes on.
_LOST_BAR = re.compile(
    rf"{_LT}\s?/?\s?DSML\s?(?:{_BAR}|[:_.-]?\s?{_NAME}\b)|{_WIDE_BAR}\s?{_NAME}\b\s?(?:{_GT}|name=)|"
    rf"(?<![A-Za-z])(?:DS|S)?ML\s?{_WIDE_BAR}{{1,3}}\s?{_NAME}\b|"
    rf"(?<![A-Za-z])(?:DS|S)?ML{_BAR}{{1,3}}\s?{_NAME}\b\s?(?:{_GT}|name=)|"
    rf"{_LT}\s?/?\s?{_BAR}{{1,3}}\s?{_NAME}\b\s?(?:{_GT}|name=)|"
    rf"{_LT}/?｜DS?M?(?![A-Z▁｜|])",
    re.IGNORECASE,
)
# Text that ends inside an opener or closer; only the full-width bar, since `<|` ends F# lines.
_CUT_END = re.compile(
    r"(?<=\s)</?(?:invoke|parameter|tool_calls|function_calls)$|(?<=\n)</$|</?｜{1,2}(?:D(?:S(?:M(?:L｜{0,2})?)?)?)?$|</?\|D(?:S(?:M(?:L\|{0,2})?)?)?$"
)
_BARE = re.compile(
    rf"{_BAR}{{1,3}}DSML{_BAR}{{1,3}}|{_WIDE_BAR}\s?DSML\b|\bDSML\s?{_WIDE_BAR}", re.IGNORECASE
)
_PLAIN = re.compile(
    rf"{_LT}(?P<slash>/)?(?P<blank> )?(?:(?P<block>function_calls|tool_calls|(?<= )calls)\s?{_GT}|"
    rf"(?P<results>function_results|tool_results?)\s?{_GT}|"
    rf"(?:antml:)?(?P<element>invoke|parameter)(?:\s+name={_QUOTE}(?P<name>[^\"'<>&\\]{{1,100}}){_QUOTE}"
    rf"(?:\s+string={_QUOTE}\w{{1,5}}{_QUOTE})?)?\s?{_GT})"
)
# The rest of an opener with which a text begins: `invoke name="f">`, `name="f">`, `"true">x` or
# `">x`.
_HEAD = re.compile(
    rf"\s*(?:(?:(?:invoke|parameter)\s+)?name={_QUOTE}[^\"'<>&\n]{{1,100}}{_QUOTE}(?:\s+string={_QUOTE}\w{{1,5}}{_QUOTE})?\s?>"
    rf"|[a-z]{{1,8}}\s+name={_QUOTE}[^\"'<>&\n]{{1,100}}{_QUOTE}\s+string={_QUOTE}\w{{1,5}}{_QUOTE}\s?>"
    r"|(?:tring|ring|ing|ng|g)?=?[\"']?(?:true|false)[\"']>|[\"']>(?=[^\s<>\"'/=]))"
)
# The tail of a tag on a line of its own.
_TAG_TAIL = re.compile(
    r"^/?(?:tool_calls|function_calls|invoke|parameter)>$|^(?:SML|ML|L)?[｜|]\s?(?:tool_calls|function_calls)>",
    re.MULTILINE,
)
# The same, cut in its name, where the text ends; and an opener that lost its bracket alone.
_CUT_TAIL = re.compile(
    r"^/?(?:(?:[a-z]{0,8}_)?calls|(?:n?v)?oke|(?:a?r)?ameter)>\s*\Z", re.MULTILINE
)
_ENDS_OF_TAILS = ("calls>", "oke>", "ameter>")
_NO_BRACKET = re.compile(
    rf"^(?:invoke|parameter)\s+name={_QUOTE}[^\"'<>&\n]{{1,100}}{_QUOTE}(?:\s+string={_QUOTE}\w{{1,5}}{_QUOTE})?\s?>",
    re.MULTILINE,
)
_ATTRIBUTE = re.compile(rf"string={_QUOTE}(?:true|false){_QUOTE}\s?{_GT}")
_TOKEN = re.compile(
    rf"{_LT}?{_BAR}{{1,2}}\s?(?:tool[▁_ ](?:calls?|outputs?)[▁_ ](?:begin|end|first)|tool[▁_ ]sep)"
    rf"(?:\s?{_BAR}{{1,2}}\s?{_GT}?)?"
)
_TOKEN_CUT = re.compile(r"<｜tool(?:▁[a-z▁]{0,20})?$|<｜too?$")
_NAME_ATTRIBUTE = re.compile(rf"name\s?=\s?{_QUOTE}?([^\"'<>&\\\s]{{1,128}})")

_ELEMENT = {
    "tool_calls": "block",
    "tool_call": "block",
    "function_calls": "block",
    "function_call": "block",
    "calls": "block",
    "invoke": "invoke",
    "parameter": "parameter",
}
# Every fragment holds one of these characters: a bracket, a bar, or what an escape begins with.
MARKUP_SIGNS = frozenset("<>＜＞&\\|｜￨‖│∣❘%")
# The same for a search of all at once (see `detect/hints.py`): every fragment has one of them.
MARKUP_PATTERNS = (
    "(?i)dsml",
    rf"(?i)(?:{_WIDE_BAR}|ML{_BAR}{{1,3}}|{_LT}[^!-~]?/?[^!-~]?{_BAR}{{1,3}})[^!-~]?{_NAME}",
    rf"(?i){_LT}/?｜D",
    rf"{_LT}/? ?(?:function_|tool_call|tool_result|(?:antml:)?(?:invoke|parameter))|{_LT}/? calls",
    rf"string={_QUOTE}(?:true|false)",
    rf"{_BAR}[^!-~]?tool[▁_ ](?:call|output|sep)",
    r"\A[^!-~]*(?:(?:[a-z]{1,9}[^!-~]+)?name=|[a-z]{0,5}=?[\"']?(?:true|false)[\"']>|[\"']>)",
    r"(?m)^/?(?:tool_calls|function_calls|invoke|parameter)>",
    r"[｜|][^!-~]?(?:tool_calls|function_calls)>",
    r"</?(?:｜{1,2}|\|)[A-Za-z]{0,4}[｜|]{0,2}[^!-~]*\z",
    "<｜too",
    r"\n</\z|(?:calls|oke|ameter)>[^!-~]*\z|(?m)^(?:invoke|parameter)[^!-~]+name=",
)
# What stands for a bar, plainly or as the beginning of its escape.
_BAR_SIGNS = "|｜￨‖│∣❘丨ǀ┃¦∥︱⏐&\\%ï"
# No fragment exists without one of these; finding them is a memchr-speed search.
_HINTS = (
    "DSML",
    "dsml",
    "｜",
    "invoke",
    "parameter",
    "function_",
    "tool_call",
    "tool_result",
    "string=",
    "Dsml",
    "calls>",
)
# A plain element is its name right behind the bracket, or behind an escape of it.
_PLAIN_HINTS = (
    "<invoke", "</invoke", "<parameter", "</parameter", "<tool_calls", "</tool_calls",
    "<function_", "</function_", "<tool_result", "</tool_result",
    # V4.1 has a blank there.
    "< calls>", "</ calls>", "< invoke", "</ invoke", "< parameter", "</ parameter",
    "antml:", "lt;", "#60;", "#x3c;", "＜", "u003c",
)  # fmt: skip
# What a bar stands behind in every torn marker: a bracket or its escape, or the marker's end.
_BEFORE_BAR = re.compile(r"(?:[<＜;]|3[cC]|[mM][lL])[\s/]{0,4}[|｜￨‖│∣❘丨ǀ┃¦∥︱⏐&\\%ï]|｜\s?[a-z]")
_TORN_HINTS = ("DSML", "ML｜", "ML|", "invoke", "parameter", "call", "<｜D", "</｜D")
_TAIL = 64


def may_hold_markup(text: str) -> bool:
    """False when no fragment can be in `text`: the cheap test before `fragments`."""
    return (
        _holds_any(text, _HINTS)
        or "tool▁" in text
        or text.endswith(("<|D", "<|DS", "<|DSM", "\n</", *_ENDS_OF_TAILS))
        or _HEAD.match(text) is not None
    )


def _holds_any(text: str, hints: Iterable[str]) -> bool:
    # A loop, since `any` over a generator costs more than the searches themselves.
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False


def fragments(text: str) -> tuple[Fragment, ...]:
    """Every piece of tool-call markup in `text`, in order, none overlapping another."""
    if not may_hold_markup(text):
        return ()
    found: list[Fragment] = []
    for fragment in sorted(_all(text), key=lambda f: (f.start, -f.end)):
        if not found or fragment.start >= found[-1].end:
            found.append(fragment)
    return tuple(found)


def _all(text: str) -> Iterator[Fragment]:
    folded = "dsml" in text.lower() if len(text) < 1 << 20 else True
    if folded:
        yield from _tags(text)
        for match in _BARE.finditer(text):
            yield Fragment(form=Form.BARE, start=match.start(), end=match.end())
    barred = _holds_any(text, _BAR_SIGNS)
    if folded or (barred and _holds_any(text, _TORN_HINTS) and _BEFORE_BAR.search(text)):
        for match in _LOST_BAR.finditer(text):
            yield Fragment(form=Form.TORN, start=match.start(), end=match.end())
    for match in _PLAIN.finditer(text) if _holds_any(text, _PLAIN_HINTS) else ():
        # No XML has the blank behind its bracket that V4.1 leaves there without its marker.
        blank = match["blank"] and (match["slash"] or match["name"])
        yield Fragment(
            form=Form.TORN if blank else Form.PLAIN,
            start=match.start(),
            end=match.end(),
            element=_plain_element(match),
            closing=bool(match["slash"]),
            name=match["name"],
        )
    for pattern, form, possible in (
        (_ATTRIBUTE, Form.ATTRIBUTE, "string=" in text),
        (_TOKEN, Form.TOKEN, barred and "tool" in text),
    ):
        if possible:
            for match in pattern.finditer(text):
                yield Fragment(form=form, start=match.start(), end=match.end())
    if head := _HEAD.match(text):
        yield Fragment(
            form=Form.ATTRIBUTE, start=head.end() - len(head.group().lstrip()), end=head.end()
        )
    yield from _without_heads(text)
    yield from _cut_ends(text)


def _without_heads(text: str) -> Iterator[Fragment]:
    """Tags on a line of their own whose beginnings are gone."""
    if "calls>" in text or "invoke>" in text or "parameter>" in text:
        for match in _TAG_TAIL.finditer(text):
            yield Fragment(form=Form.TORN, start=match.start(), end=match.end())
    end = max(0, len(text) - _TAIL)
    if text.rstrip().endswith(_ENDS_OF_TAILS) and (tail := _CUT_TAIL.search(text, end)):
        yield Fragment(form=Form.TORN, start=tail.start(), end=tail.end())
    if "name=" in text:
        for match in _NO_BRACKET.finditer(text):
            yield Fragment(form=Form.TORN, start=match.start(), end=match.end())


def _plain_element(match: re.Match[str]) -> str | None:
    if match["block"]:
        return "block"
    return "results" if match["results"] else match["element"]


def _tags(text: str) -> Iterator[Fragment]:
    for match in _TAG.finditer(text):
        word = (match["element"] or "").lower()
        element = _ELEMENT.get(word)
        whole = element is not None and match["close"] is not None
        name = _NAME_ATTRIBUTE.search(match["attributes"] or "")
        # A half tag ends with what is still recognisably markup.
        end = match.end() if whole else match.start("rest") + len(match["rest"].split("\n")[0][:32])
        yield Fragment(
            form=Form.TAG if whole else Form.HALF,
            start=match.start(),
            end=max(end, match.start("rest")),
            element=element,
            closing=match["slash"] is not None,
            name=name.group(1) if name else None,
        )


def _cut_ends(text: str) -> Iterator[Fragment]:
    tail = max(0, len(text) - _TAIL)
    for pattern, form in ((_CUT_END, Form.HALF), (_TOKEN_CUT, Form.TOKEN)):
        match = pattern.search(text.rstrip(), tail)
        if match:
            yield Fragment(form=form, start=match.start(), end=match.end())


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCall:
    """A call written out in a text: its name, and the raw text of its parameters by name."""

    name: str
    start: int
    parameters: tuple[tuple[str, str], ...]


def written_calls(text: str, pieces: tuple[Fragment, ...] | None = None) -> tuple[FoundCall, ...]:
    """The calls whose openers are still readable in `text`, in order."""
    pieces = fragments(text) if pieces is None else pieces
    calls: list[FoundCall] = []
    name, start, parameters = None, 0, list[tuple[str, str]]()
    for number, piece in enumerate(pieces):
        if piece.element == "invoke" and not piece.closing and piece.name:
            if name is not None:
                calls.append(FoundCall(name=name, start=start, parameters=tuple(parameters)))
            name, start, parameters = piece.name, piece.start, []
        elif piece.element == "parameter" and not piece.closing and piece.name:
            stop = pieces[number + 1].start if number + 1 < len(pieces) else len(text)
            parameters.append((piece.name, text[piece.end : stop]))
    if name is not None:
        calls.append(FoundCall(name=name, start=start, parameters=tuple(parameters)))
    return tuple(calls)
