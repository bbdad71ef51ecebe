"""What a text opens and does not close at its very end: a link, a formula, a table's row, a
quotation, a clause. Whoever asks for a piece gets one."""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re

# What a text of these rules ends on, beside letters and digits: no mark that ends anything.
_OPEN_ENDS = frozenset(" -+=^_{\\/&*")
# Files break addresses behind a stroke.
_HALF_LINK = re.compile(r"\[[^\]\n]{1,120}\]\((?:https?://|\.{0,2}/|#)[^()\s]{0,300}(?<!-)$")
_TEX = re.compile(
    r"\\(?:frac|sqrt|sum|int|prod|cdot|times|left|pm|leq?|geq?|neq|approx|alpha|beta|gamma|delta|theta|lambda|mu|pi|rho|sigma|omega|"
    r"infty|text|math\w+|partial|nabla|lim|log|ln|sin|cos|tan|begin|vec|hat|bar|to|in)(?![A-Za-z])"
)
# What stands before a formula in a text that is no list of TeX's names.
_WORDS = re.compile(r"[^\W\d_]{2,} [^\W\d_]+ [^\W\d_]{2,}")
_FORMULAS = (("\\[", "\\]"), ("\\(", "\\)"), ("$$", "$$"))
_SEPARATOR = re.compile(r"^\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$", re.MULTILINE)
# Code, and a bar that parts no cells.
_IN_CELL = re.compile(r"`[^`]*`|\\\|")
# A quotation after some words, of several, and no mark behind it.
_OPEN_QUOTATION = re.compile(
    r"(?:\S+ ){2}[^\"]*[\s(]\"[^\W\d][^\"\n]*\s[^\"\n]*\w$|(?:\S+ ){2}.*[\s(]“[^”\n]*\s[^”\n]*\w$|(?:\S+ ){2}.*[\s(]«[^»\n]*\s[^»\n]*\w$"
)
_OPEN_CLAUSE = re.compile(
    r"(?:\S+ ){4}\S*\w, (?:which|whose|where|whereas|although|while|because|since|and|but|unless|whether|if)$"
)
# Emphasis and inline code that open before words, and no end of them.
_OPEN_EMPHASIS = re.compile(r"(?:^|[\s(])\*\*[A-Z][a-z]+ [^*\n]*\w$")
_BARE_EMPHASIS = re.compile(r"(?:\S+ ){3}.*\w[,;:]? \*\*$")
# A compound's first half; none that is spoken of as one.
_HALF_COMPOUND = re.compile(r"(?:\S+ ){7,}(?:\w+-)*\w+-$")
_SPEAKS_OF_HALVES = re.compile(r"prefix|hyphen|\bdash|begin|start|stem", re.IGNORECASE)
_OPEN_TICK = re.compile(r"\w [(]?`[\w./$-][^`'\n]* [^`'\n]*\w$")
# A page or a list in HTML from its first character on.
_HTML_HEAD = re.compile(
    r"\s*<(ul|ol|dl|table|div|section|form|select|svg|html|body|nav|article)\b[^<>]*>"
)
# Words that end no sentence of their language, which strands none, and words that tell it.
_LAST_WORDS = {
    "spanish": "de del con para por en sin sobre y que el la los las un una al su sus",
    "french": "de du des le la les une ce cette et que pour avec dans sur aux au leur ses",
    "italian": "di del della dei con per e che il lo la gli un una nel nella alla al dal",
    "portuguese": "de do da dos com para por e que os as um uma no ao pela pelo",
    "german": "und oder weil dass eine einen einem einer der dem den des zur zum vom im beim für",
    "dutch": "de het een en van voor omdat dat naar",
    "russian": "и или что чтобы в на с для к от из по не",
}
# Beside them, words that tell the language in which a sentence stands.
_TELLING_WORDS = {
    "french": "est sont il elle qui ne pas en par davantage plus",
    "italian": "è sono non si come anche più",
    "spanish": "es son no se como más",
    "german": "ist sind ein nicht sich wird auf das die mit",
}
_TELLING = {language: frozenset(words.split()) for language, words in _TELLING_WORDS.items()}
_LAST = {language: frozenset(words.split()) for language, words in _LAST_WORDS.items()}
_EVERY_LAST = frozenset[str]().union(*_LAST.values())
# So many more of them make the language sure.
_MIN_GLUE = 2
_MIN_WORDS = 6
# How far back a formula or a quotation begins.
_REACH = 400
# Requests that a piece answers.
_ASKS_FOR_PIECE = re.compile(
    r"mid-?\s?(?:sentence|word)|unfinished|incomplete|half-finished|\bcuts? (?:it |me )?off|break(?:s|ing)? off|"
    r"first \d+ (?:char|word|token|byte|letter)|\bfill in\b|cliff-?hanger|trail(?:s|ing)? off|autocomplet|fragment|truncat|\bpartial|\babrupt|"
    # The answer may be the very word on which nothing ends.
    r"\b(?:which|what|quel(?:le)?|welche[rs]?|qué|cu[aá]l|quale) (?:article|artikel|artículo|articolo|prepos\w+|präposition|conjunction|pronoun|word|wort|mot|palabra|parola)\b",
    re.IGNORECASE,
)


def asks_for_piece(prompt: str) -> bool:
    """True when the request wants a text that is not whole."""
    return _ASKS_FOR_PIECE.search(prompt) is not None


def left_open(text: str) -> str | None:
    """What the text opened last and did not close, named; None where it may be whole."""
    end = text[-1:]
    if end == "|" and _is_short_row(text, text.rpartition("\n")[2]):
        return "a row that the table above does not have so short"
    if not (end.isalnum() or end in _OPEN_ENDS):
        return None
    tail = text[-_REACH:]
    line = tail.rpartition("\n")[2]
    if _HALF_LINK.search(line) and text.count("```") % 2 == 0:
        return "half a link"
    if _is_in_formula(tail):
        return "a formula that is not closed"
    opened = line.count("**") % 2 == 1
    if opened and (_OPEN_EMPHASIS.search(line) or _BARE_EMPHASIS.search(line)):
        return "emphasis that is not closed"
    if line.startswith("|") and _is_short_row(text, line):
        return "a row that the table above does not have so short"
    if "\n" in text or not text[:1].isupper():
        return None
    if _is_in_quotation(tail):
        return "a quotation that is not closed"
    # In one paragraph only: in reStructuredText it may go on in the next line.
    if line.count("`") % 2 == 1 and _OPEN_TICK.search(line):
        return "inline code that is not closed"
    if end == "-" and _HALF_COMPOUND.match(line) and not _SPEAKS_OF_HALVES.search(text):
        return "half a compound"
    if _OPEN_CLAUSE.search(line) or _stops_on_glue(line):
        return "a clause that only begins"
    return None


def is_open_page(text: str) -> bool:
    """True for HTML that begins with an element, does not close it and ends in words."""
    if not text[-1:].isalnum():
        return False
    head = _HTML_HEAD.match(text)
    return head is not None and f"</{head[1]}" not in text


def _stops_on_glue(line: str) -> bool:
    """True for a sentence that ends on a word which no sentence of its language ends on."""
    words = line.lower().split()
    if len(words) < _MIN_WORDS or words[-1] not in _EVERY_LAST:
        return False
    # `da` ends Basque sentences and stands in them too: other words tell Portuguese.
    others = {*words[:-1]} - {words[-1]}
    return any(
        words[-1] in last
        and not others.isdisjoint(last)
        and sum(word in last or word in _TELLING.get(language, ()) for word in words[:-1])
        >= _MIN_GLUE
        for language, last in _LAST.items()
    )


def _is_in_formula(tail: str) -> bool:
    if "\\" not in tail:
        return False
    paragraph = tail.rpartition("\n\n")[2]
    if "$$" not in paragraph and paragraph.count("$") % 2 == 1:
        inside = paragraph[paragraph.rfind("$") :]
        return "\n" not in inside and _TEX.search(inside) is not None
    for opener, closer in _FORMULAS:
        at = tail.rfind(opener)
        opened = tail.count("$$") % 2 == 1 if opener == closer else at > tail.rfind(closer)
        if at >= 0 and opened and _WORDS.search(tail, 0, at) and _TEX.search(tail, at):
            return True
    return False


def _is_short_row(text: str, line: str) -> bool:
    above = text[: -len(line) - 1].rpartition("\n")[2].rstrip()
    whole = above.startswith("|") and above.endswith("|")
    return whole and _bars(line) < _bars(above) and _SEPARATOR.search(text) is not None


def _bars(row: str) -> int:
    """The bars of a table's row, those in its code and those escaped left out."""
    return _IN_CELL.sub("", row).count("|")


def _is_in_quotation(tail: str) -> bool:
    opened = (
        tail.count('"') % 2 == 1
        or tail.count("“") > tail.count("”")
        or tail.count("«") > tail.count("»")
    )
    return opened and _OPEN_QUOTATION.search(tail) is not None
