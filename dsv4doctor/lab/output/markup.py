"""The DSML markup of DeepSeek-V4 as patterns, and what a parser hands on.

The bar is U+FF5C, never ASCII `|`. Three elements nest in a fixed order: the block `tool_calls`
holds `invoke`s, an invoke holds `parameter`s or one JSON object. `string="true"` means the value is
text without any escaping, any other value of the attribute means JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BAR = "｜"
MARKER = f"{BAR}DSML{BAR}"
BLOCK_OPEN = f"<{MARKER}tool_calls>"
BLOCK_CLOSE = f"</{MARKER}tool_calls>"
INVOKE_OPEN = f"<{MARKER}invoke"
INVOKE_CLOSE = f"</{MARKER}invoke>"
PARAMETER_CLOSE = f"</{MARKER}parameter>"

# The blank line that the chat template puts between prose and a block: not part of the prose.
BLANK_LINE = "\n\n"

# Text ends so: the rest of a marker may follow in the next delta.
_OPENING_TAILS = ("<", f"<{BAR}", "</", f"</{BAR}")
_MARKER_SIGNS = (MARKER, f"<{BAR}", f"</{BAR}")

BLOCK = re.compile(f"{BLOCK_OPEN}(?P<body>.*?){BLOCK_CLOSE}", re.DOTALL)
# `close` is empty when the text ends before the invoke does.
INVOKE = re.compile(
    rf'{INVOKE_OPEN}\s+name="(?P<name>[^"]+)"\s*'
    rf"(?:(?P<empty>/>)|>(?P<body>.*?)(?P<close>{INVOKE_CLOSE}|$))",
    re.DOTALL,
)
_PARAMETER_OPEN = rf'<{MARKER}parameter\s+name="(?P<key>[^"]+)"\s+string="(?P<string>[^"]+)"\s*>'
PARAMETER = re.compile(f"{_PARAMETER_OPEN}(?P<value>.*?){PARAMETER_CLOSE}", re.DOTALL)
UNCLOSED_PARAMETER = re.compile(f"{_PARAMETER_OPEN}(?P<value>.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A part of one tool call: `name` on its first piece only, `arguments` to be appended."""

    index: int
    name: str | None
    arguments: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a parser hands on: text for `content`, then pieces of calls."""

    text: str = ""
    calls: tuple[CallPiece, ...] = ()


NOTHING = Parsed()


@dataclass(frozen=True, slots=True)
class Invoke:
    """One invoke as found in a text; `end` is where the text behind it starts."""

    name: str
    body: str
    closed: bool
    start: int
    end: int


def may_hold_markup(text: str) -> bool:
    """True when `text` holds a piece of a marker, or ends as one could begin."""
    return any(sign in text for sign in _MARKER_SIGNS) or text.rstrip().endswith(_OPENING_TAILS)


def find_invoke(text: str, start: int = 0) -> Invoke | None:
    """The first invoke in `text` from `start` on, closed or not."""
    match = INVOKE.search(text, start)
    if match is None:
        return None
    empty = match["empty"] is not None
    return Invoke(
        name=match["name"].strip(),
        body="" if empty else match["body"],
        closed=empty or bool(match["close"]),
        start=match.start(),
        end=match.end(),
    )


def invokes(text: str) -> list[Invoke]:
    """All invokes in `text`, in order."""
    found: list[Invoke] = []
    invoke = find_invoke(text)
    while invoke is not None:
        found.append(invoke)
        invoke = find_invoke(text, invoke.end)
    return found


def prose_before(text: str, invoke: Invoke) -> str:
    """The text ahead of `invoke` and of the block opener that belongs to it."""
    opener = text.rfind(BLOCK_OPEN, 0, invoke.start)
    return text[: invoke.start if opener == -1 else opener].removesuffix(BLANK_LINE)
