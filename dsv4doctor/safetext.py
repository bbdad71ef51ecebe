"""Text from a model, a server or a file, made harmless to show: the only place that decides how.

A corrupted reply may hold terminal escapes, controls that reverse or hide text, lone surrogates,
a megabyte on one line, or markup of whatever will show it. Everything that is not plainly visible
is spelt out (`\\x1b`, `\\u202e`), long text keeps its head and its tail, and Markdown is fenced so
that nothing in it acts. Stored text is never touched; this is for showing.
"""

from __future__ import annotations

import re
import unicodedata

from dsv4doctor.units import many

# Unicode's own classes: control, format (bidi, zero width), surrogate, line and paragraph
# separators, unassigned.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Cn"})
# Letters and marks that show nothing all the same (Hangul fillers, joiners, Mongolian selectors).
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0\u2800")
_PRINTABLE_ASCII = re.compile(r"[ -~]*\Z")
# More marks than any script stacks on one letter: they climb over the lines around.
_MARK_RUN = 3
_HEAD_SHARE = 2 / 3
_ELLIPSIS = " … [{count} characters left out] … "

ONE_LINE_CHARS = 240
BLOCK_LINES = 24
BLOCK_LINE_CHARS = 600
MARKDOWN_FENCE = 3


def bounded(text: str, limit: int) -> str:
    """`text`, or its head and tail with a note between of how much is missing."""
    if len(text) <= limit:
        return text
    head = int(limit * _HEAD_SHARE)
    tail = limit - head
    return text[:head] + _ELLIPSIS.format(count=len(text) - limit) + text[len(text) - tail :]


def one_line(value: object, limit: int = ONE_LINE_CHARS) -> str:
    """`value` as one harmless line of at most about `limit` characters of it."""
    return _escape(bounded(_as_text(value), limit))


def block(value: object, lines: int = BLOCK_LINES, line_chars: int = BLOCK_LINE_CHARS) -> str:
    """`value` as harmless lines: newlines stay, long lines and long texts lose their middle."""
    rows = _as_text(value).replace("\r\n", "\n").split("\n")
    if len(rows) > lines:
        head = int(lines * _HEAD_SHARE)
        tail = lines - head
        note = f"… [{many(len(rows) - lines, 'line')} left out] …"
        rows = [*rows[:head], note, *rows[len(rows) - tail :]]
    return "\n".join(_escape(bounded(row, line_chars)) for row in rows)


def markdown_code(value: object, limit: int = ONE_LINE_CHARS) -> str:
    """`value` as a Markdown code span that nothing in it can end; safe in a table's cell too."""
    text = one_line(value, limit).replace("|", "\\|")
    if not text:
        return "` `"
    fence = "`" * (_longest_backticks(text) + 1)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def markdown_text(value: object, limit: int = 4 * ONE_LINE_CHARS) -> str:
    """`value` as Markdown prose that formats nothing, links nothing and mentions nobody."""
    text = one_line(value, limit)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"[\\`*\[\]|~!]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text)
    # A bare URL, @name or #number would become a link on the pages that reports are pasted to.
    text = re.sub(r"(?<!\w)(#+)(?=\d|\s|$)", lambda found: "&#35;" * len(found[1]), text)
    text = re.sub(r"(?<!\w)@(?=\w)", "&#64;", text)
    text = text.replace("://", "&#58;//")
    text = re.sub(r"\b(www)\.", r"\1&#46;", text, flags=re.IGNORECASE)
    text = re.sub(r"^(\s*\d+)([.)])", r"\1\\\2", text)
    return re.sub(r"^(\s*)([-+=])", r"\1\\\2", text)


def markdown_block(value: object, lines: int = BLOCK_LINES) -> str:
    """`value` as a fenced code block whose fence is longer than any inside it."""
    text = block(value, lines)
    fence = "`" * max(MARKDOWN_FENCE, _longest_backticks(text) + 1)
    return f"{fence}text\n{text}\n{fence}"


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _longest_backticks(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)


def _escape(text: str) -> str:
    if _PRINTABLE_ASCII.match(text):
        return text
    shown: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        hidden = category in _HIDDEN_CATEGORIES or character in _BLANK or marks > _MARK_RUN
        shown.append(_spell(character) if hidden else character)
    return "".join(shown)


def _spell(character: str) -> str:
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\x1b"}
    if character in named:
        return named[character]
    point = ord(character)
    if point <= 0xFF:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
