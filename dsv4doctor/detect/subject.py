"""One exchange as detectors read it: texts with their places, calls with decoded arguments.

Everything that several detectors need is worked out once here and lazily, so that a healthy reply
costs little.
"""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dsv4doctor.detect.arguments import Arguments, decode_arguments
from dsv4doctor.detect.characters import families_among, kinds_of
from dsv4doctor.detect.clashes import Stretch, lines_around
from dsv4doctor.detect.hints import (
    ALWAYS,
    ANY,
    CALLS,
    PLANTED,
    REASONING,
    hint,
    hints_of,
)
from dsv4doctor.detect.many_codes import WIDE_BLANKS, Words, words_of, words_of_all
from dsv4doctor.detect.many_letters import latin_suspects
from dsv4doctor.detect.quoting import NOWHERE, Spans, code_spans
from dsv4doctor.detect.signs import signs_of
from dsv4doctor.dsml.tolerant import MARKUP_PATTERNS, MARKUP_SIGNS, Fragment, fragments
from dsv4doctor.exchange import Exchange, ToolCall

S = TypeVar("S")
T = TypeVar("T")
# A reply may nest values as deep as it likes; nobody reads past this.
MAX_DEPTH = 64
# Invisible in every font: a reply of nothing else is an empty reply.
INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff\u00ad\u180e\u034f\u061c\u115f\u1160\u3164\uffa0\u2800"
# Finish reasons of a reply that somebody or something else ended: the limit, an abort by the server
# (SGLang, vLLM), an error behind a gateway.
_CUT_REASONS = frozenset(
    ["length", "abort", "aborted", "error", "cancelled", "canceled", "timeout"]
)
_STRIP_INVISIBLE = dict.fromkeys(map(ord, INVISIBLE))
_CODE = hint("`", "~~~")
MARKUP = hint(*MARKUP_PATTERNS)
_WIDE_BLANK = hint(f"[{''.join(sorted(WIDE_BLANKS))}]")


class lazy(Generic[S, T]):
    """A property worked out on first use; `functools.cached_property` without 3.11's lock."""

    def __init__(self, work_out: Callable[[S], T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: S, owner: type) -> T:
        value = self._work_out(instance)
        instance.__dict__[self._name] = value
        return value


class Text:
    """A text of the reply and where it stands: `content`, `reasoning_content`,
    `tool_calls[0].…`.

    `hints` are those of the text, `prose_hints` those of its prose (see `hints.py`).
    """

    hints = ANY
    prose_hints = ANY

    def __init__(self, where: str, text: str, *, in_call: bool = False) -> None:
        self.where = where
        self.text = text
        self.in_call = in_call
        if not text:
            self.hints = self.prose_hints = ALWAYS

    @lazy
    def code(self) -> Spans:
        """The fenced and inline code of the text."""
        return code_spans(self.text) if self.hints & _CODE else NOWHERE

    @lazy
    def signs(self) -> frozenset[str]:
        """The distinct characters that are no ASCII letter, digit, blank or line break."""
        return signs_of(self.text)

    @lazy
    def markup(self) -> tuple[Fragment, ...]:
        """What of tool-call markup is in the text."""
        if not self.hints & MARKUP or self.signs.isdisjoint(MARKUP_SIGNS):
            return ()
        return fragments(self.text)

    @lazy
    def prose(self) -> str:
        """The text without its code."""
        return self.code.cut_from(self.text) if self.code else self.text

    @lazy
    def words(self) -> Words:
        """What the small words of the prose say: see `many_codes.Words`."""
        return words_of(self.prose)

    @lazy
    def codes(self) -> bytes:
        """One byte for every word of the prose: see `neighbours.codes_of`."""
        return self.words.codes

    @lazy
    def clashes(self) -> tuple[Stretch, ...]:
        """The lines in which the prose may change its language: see `clashes.py`."""
        rows = self.words.clashes
        return tuple(lines_around(self.prose, rows)) if rows else ()

    @lazy
    def kinds(self) -> int:
        """The kinds of characters that the text has: see `characters.py`."""
        return kinds_of(self.text)

    @lazy
    def prose_kinds(self) -> int:
        """Those that the prose has."""
        return kinds_of(self.prose) if self.code else self.kinds

    @lazy
    def families(self) -> frozenset[str]:
        """The families of scripts in which the text is written."""
        return families_among(self.kinds)

    @lazy
    def prose_families(self) -> frozenset[str]:
        """The families of the prose alone."""
        return families_among(self.prose_kinds)

    @lazy
    def odd_places(self) -> list[int]:
        """Where Latin letters of the prose may be unlikely: see `many_letters.latin_suspects`."""
        return latin_suspects([self.prose], [self.prose.encode("utf-8", "surrogatepass")])[0]

    @lazy
    def prose_signs(self) -> frozenset[str]:
        """The signs of the prose alone."""
        return signs_of(self.prose) if self.code else self.signs


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of the reply with its arguments decoded."""

    where: str
    call: ToolCall
    arguments: Arguments

    @property
    def name(self) -> str | None:
        return self.call.name if isinstance(self.call.name, str) else None


@dataclass
class Subject:
    """What the detectors look at; `hints` are those of its texts and of its kind."""

    exchange: Exchange
    # No field: every subject has it.
    hints = ANY

    def __post_init__(self) -> None:
        response = self.exchange.response
        self.content = Text("content", text_of(response.content))
        self.reasoning = Text("reasoning_content", text_of(response.reasoning_content))
        self.prompt = self.exchange.prompt or ""
        self.finish = response.finish_reason
        # The reply did not end by itself: no finish reason, or one that says so.
        self.is_cut = self.finish is None or self.finish in _CUT_REASONS

    @lazy
    def calls(self) -> tuple[Call, ...]:
        calls = self.exchange.response.tool_calls
        if not calls:
            return ()
        return tuple(
            Call(
                where=f"tool_calls[{number}]",
                call=call,
                arguments=decode_arguments(call.arguments),
            )
            for number, call in enumerate(calls)
        )

    @lazy
    def texts(self) -> tuple[Text, ...]:
        """Content, reasoning and every string inside the calls' arguments (the raw text where they
        cannot be decoded), the empty ones left out."""
        texts = [text for text in (self.content, self.reasoning) if text.text]
        for call in self.calls:
            texts.extend(
                Text(f"{call.where}.arguments{path}", value, in_call=True)
                for path, value in strings_in(call.arguments.value)
                if value
            )
            raw = call.call.arguments
            if call.arguments.value is None and isinstance(raw, str) and raw:
                texts.append(Text(f"{call.where}.arguments", raw, in_call=True))
        return tuple(texts)

    @lazy
    def free_texts(self) -> tuple[Text, ...]:
        """The texts less the argument values that the prompt holds word for word: asked for."""
        if not self.prompt or not self.calls:
            return self.texts
        return tuple(t for t in self.texts if not (t.in_call and t.text in self.prompt))

    @lazy
    def tools(self) -> dict[str, Mapping[str, Any]] | None:
        """The offered tools' parameter schemas by name; None where the record does not say."""
        if self.exchange.tools is None:
            return None
        offered: dict[str, Mapping[str, Any]] = {}
        for tool in self.exchange.tools:
            function = tool.get("function")
            body = function if isinstance(function, Mapping) else tool
            name = body.get("name")
            schema = body.get("parameters", body.get("input_schema"))
            if isinstance(name, str):
                offered[name] = schema if isinstance(schema, Mapping) else {}
        return offered

    @lazy
    def forced_tool(self) -> str | None:
        """The tool that the request named, if it named one."""
        choice = self.exchange.tool_choice
        if isinstance(choice, Mapping):
            function = choice.get("function")
            body = function if isinstance(function, Mapping) else choice
            name = body.get("name")
            return name if isinstance(name, str) else None
        return None

    @lazy
    def choice(self) -> str:
        """`none`, `auto`, or `required` (also for a named tool); `auto` where nothing was said."""
        choice = self.exchange.tool_choice
        if isinstance(choice, Mapping):
            mode = choice.get("mode", choice.get("type"))
            if mode in ("auto", "none"):
                return str(mode)
            if mode == "allowed_tools":
                return "required" if _allowed_mode(choice) == "required" else "auto"
            return "required"
        if choice in ("required", "any"):
            return "required"
        return "none" if choice == "none" else "auto"

    @lazy
    def is_forced(self) -> bool:
        """True when the reply had to hold a call: by tool choice or by what the canaries expect."""
        return self.choice == "required" or any(c.tool for c in self.exchange.canaries)

    @lazy
    def has_visible_content(self) -> bool:
        return is_visible(self.content.text)


def look_at_all(subjects: Sequence[Subject]) -> None:
    """Look at many replies at once, which costs less than one by one: their `hints`, and the
    `words` and `odd_places` of their texts."""
    texts = [text for subject in subjects for text in subject.texts]
    proses, raws, wide = [], [], []
    for text in texts:
        known, whole = text.__dict__, text.text
        raw = whole.encode("utf-8", "surrogatepass")
        known["hints"] = hints = hints_of(raw)
        prose = whole
        if hints & _CODE and text.code:
            prose = text.prose
            raw = prose.encode("utf-8", "surrogatepass")
            hints = hints_of(raw)
        else:
            known["code"], known["prose"] = NOWHERE, whole
        known["prose_hints"] = hints
        proses.append(prose)
        raws.append(raw)
        wide.append(hints & _WIDE_BLANK != 0)
    every, odd = words_of_all(proses, raws, wide), latin_suspects(proses, raws)
    for text, words, places in zip(texts, every, odd, strict=True):
        text.__dict__.update(words=words, odd_places=places)
    for subject in subjects:
        subject.hints = _hints_of_reply(subject)


def _hints_of_reply(subject: Subject) -> int:
    found = ALWAYS
    for text in subject.texts:
        found |= text.hints
    if subject.calls:
        found |= CALLS
    if subject.reasoning.text:
        found |= REASONING
    if subject.exchange.canaries or subject.exchange.canary_key is not None:
        found |= PLANTED
    return found


def _allowed_mode(choice: Mapping[str, Any]) -> Any:
    allowed = choice.get("allowed_tools")
    return allowed.get("mode") if isinstance(allowed, Mapping) else choice.get("mode")


def is_visible(text: str) -> bool:
    """True when something of the text can be seen."""
    bare = text.strip()
    if bare and bare[0] not in INVISIBLE:
        return True
    return bool(bare) and bool(bare.translate(_STRIP_INVISIBLE).strip())


def text_of(value: Any) -> str:
    """The text of a content member: a string, or a list of parts, or whatever else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return "".join(_part_text(part) for part in value)
    return _part_text(value)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return str(part["text"])
    try:
        return json.dumps(part, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""


def strings_in(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every string in a JSON value with its path (`.items[0].text`), keys not included."""
    if isinstance(value, str):
        yield path, value
    elif depth >= MAX_DEPTH:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, str):
                yield f"{path}.{key}", item
            else:
                yield from strings_in(item, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from strings_in(item, f"{path}[{number}]", depth + 1)
