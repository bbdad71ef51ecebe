"""Which parts of a text are quoted code: fences, indented fences and inline code.

Markup inside them is talked about, not leaked. A fence that is never closed runs to the end, as
every Markdown renderer draws it.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_FENCE = re.compile(r"^[ \t>]{0,12}(`{3,}|~{3,})[^\n]*$", re.MULTILINE)
# A row of tildes no longer than this opens a fence whatever stands above it.
_FENCE_TICKS = 3
# Inline code of one to three ticks, on one line, closed by as many ticks as opened it.
# Both begin with a literal, which is searched for at memory speed; what stands before is looked at
# after it.
_INLINE = re.compile(r"(`(?<!``)`{0,2})(?!`)[^`\n]{1,4000}(?<!`)\1(?!`)")
_INLINE_DOUBLE = re.compile(r"``(?<!```)(?!`)[^\n]{1,400}?(?<!`)``(?!`)")
# Quotation marks of many languages around a short span: "…", “…”, «…», 「…」, '…'. Straight ones
# only where one opens (no word before but the `f` of a string in code, no blank after) and one
# closes: any two are no quotation.
_QUOTED = re.compile(
    r"\"(?:(?<![A-Za-z0-9]\")|(?<![\w'’][fbr]\")(?<=[fbr]\"))(?!\s)[^\"\n]{1,200}(?<!\s)\"(?![A-Za-z0-9])|“[^”\n]{1,200}”|«[^»\n]{1,200}»|「[^」\n]{1,200}」|『[^』\n]{1,200}』|„[^“”\n]{1,200}[“”]|(?<![\w'])''(?!')|'(?:(?<!\w')|(?<![\w'’][fbr]')(?<=[fbr]'))[^'\n]{1,200}'(?!\w)|‘[^’\n]{1,200}’|‹[^›\n]{1,200}›"
)


class Spans:
    """Sorted, disjoint intervals; `covers` answers in logarithmic time."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, intervals: list[tuple[int, int]]) -> None:
        intervals.sort()
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in intervals:
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def covers(self, position: int) -> bool:
        index = bisect_right(self._starts, position) - 1
        return index >= 0 and position < self._ends[index]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def cut_from(self, text: str, filler: str = " ") -> str:
        """`text` with every interval replaced by `filler`, line breaks of the interval kept
        once."""
        parts: list[str] = []
        last = 0
        for start, end in zip(self._starts, self._ends, strict=True):
            parts.append(text[last:start])
            parts.append("\n" if "\n" in text[start:end] else filler)
            last = end
        parts.append(text[last:])
        return "".join(parts)


NOWHERE = Spans([])
# What a template fills in: a name or an expression between double braces. One alone may be a slip.
_SLOT = re.compile(r"\{\{-?\s*[.$\w][^{}\n]{0,80}\}\}")
_MIN_SLOTS = 2
# Statements of a template's language from which a text is the source of one.
_MIN_STATEMENTS = 3


def code_spans(text: str) -> Spans:
    """Fenced blocks and inline code of a Markdown text."""
    if "`" not in text and "~~~" not in text:
        return NOWHERE
    fences = _fences(text)
    inline = [m.span() for m in _INLINE.finditer(text)]
    if "``" in text:
        inline += [m.span() for m in _INLINE_DOUBLE.finditer(text)]
    return Spans(fences + inline)


def quoted_spans(text: str) -> Spans:
    """Short quotations in any language's quotation marks, on one line."""
    return Spans([m.span() for m in _QUOTED.finditer(text)])


def holds_template(text: str) -> bool:
    """True for the source of a template (Jinja, Go, Django, Twig): what stands in it is what it
    writes, chat templates' tokens too."""
    if text.count("{%") >= _MIN_STATEMENTS and text.count("%}") >= _MIN_STATEMENTS:
        return True
    return "{{" in text and sum(1 for _ in _SLOT.finditer(text)) >= _MIN_SLOTS


def _underlines(text: str, fence: re.Match[str]) -> bool:
    """True for a row of tildes below a line of text of its length: a heading's underline."""
    row = fence.group().strip()
    if row.strip("~"):
        return False
    heading = text[text.rfind("\n", 0, max(0, fence.start() - 1)) + 1 : fence.start()].strip()
    return len(row) > _FENCE_TICKS and 0 < len(heading) <= len(row)


def _fences(text: str) -> list[tuple[int, int]]:
    if "```" not in text and "~~~" not in text:
        return []
    found: list[tuple[int, int]] = []
    opener: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opener is None:
            if not _underlines(text, fence):
                opener = fence
        elif fence.group(1).startswith(opener.group(1)[0] * len(opener.group(1))):
            # What is glued to the closing marks is no code: a token behind the last line.
            found.append((opener.start(), fence.end(1)))
            opener = None
    if opener is not None:
        found.append((opener.start(), len(text)))
    return found
