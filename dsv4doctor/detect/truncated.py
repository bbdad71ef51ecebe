"""A reply that ends before it is done.

Seen: `finish_reason` is `length`, `abort` or missing, or the reply says `stop` and breaks off in
the middle of a sentence, a link, a formula, a table's row, a quotation, JSON or code. A cut by the
request's own `max_tokens` or by an abort is named and is no corruption.
Why: a stream without a finish reason was cut by a dying worker or a proxy, and clients that do not
look take half an answer (or half a call) for a whole one.
Confirm: look for `finish_reason` and `data: [DONE]` at the end of the raw stream; compare
`usage.completion_tokens` with `max_tokens`.
Source: https://github.com/esengine/DeepSeek-Reasonix/pull/3957.
"""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from dsv4doctor.detect.detector import Detector, Seen, span
from dsv4doctor.detect.hints import hint
from dsv4doctor.detect.subject import Subject
from dsv4doctor.detect.unfinished import asks_for_piece, is_open_page, left_open
from dsv4doctor.label import Label

# Servers count a stop token or a speculative step more or less.
TOKEN_SLACK = 16
# An error of the path between server and client, glued to what had come through.
_PATH_ERROR = re.compile(
    r"\n\s*(?:upstream (?:error|connect|request)|stream error|proxy error|"
    r"(?:\w+ )?error: .{0,40}(?:ECONNRESET|EPIPE|timed? ?out|connection reset|broken pipe)|"
    r"50[234] (?:Bad Gateway|Service (?:Temporarily )?Unavailable|Gateway Time-?out))[^\n]{0,120}\s*$",
    re.IGNORECASE,
)
_ANY_ERROR = hint(
    r"(?i)upstream (?:error|connect|request)|stream error|proxy error|50[234] (?:bad|service|gateway)",
    r"(?i)ECONNRESET|EPIPE|timed? ?out|connection reset|broken pipe",
)
# Words that no English sentence ends on; `that` only where it opens a relative clause.
_DANGLING = re.compile(
    r"(?:\b(?:the|an?|because|whose|every|my|your|their|and|or|than|from|into|whether|and then|is an?|of the)"
    r"|\b(?:an?|the|one) [a-z]+ that|\b(?:the|an?) [a-z]+ of|\b(?:such|as well|so long) as|\b(?:in order|due|according) to"
    r"|(?:\S+ ){10}\S*\w,|\b(?:are|is|includes?|needs?|have|has|contains?) (?:\w+ ){0,2}\w+, (?:\w+, ){0,8}\w+,"
    r"|(?:^|[.!?] )(?:The|These|Those|Its) [^.!?]{12,80} (?:are|is|was|were)"
    r"|\b(?:best|only|first|last|next|main|simplest|easiest) [a-z]+ (?:is|was) to|\b(?:dass|weil|für|mit|von|durch) (?:der|die|das|den|dem)"
    r"|^(?:The (?:[A-Z]\w+ ){1,4}|(?:It|He|She) )(?:is|was) (?:first |originally )?(?:located|born|founded|released|built|based|invented|published) (?:in|on|by)"
    # A statement up to its verb; `was das Haus ist` has a comma before it.
    r"|^(?:Der|Die|Das) (?!.*\b(?:wie|was|wo|wer|als|so|dass)\b)[^,]{8,80} (?:ist|sind|war|waren|heißt)"
    r"|^(?:La|Le|Les) (?!.*\b(?:qu[ei]?|où|comme|dont|telle?s?)\b)[^,]{8,80} (?:est|sont|était)"
    r"|^(?:El|La|Los|Las) (?!.*\b(?:como|cual|que|quien|donde)\b)[^,]{8,80} (?:es|son)"
    r"|, \S+ [yo]"
    r"|\b(?:und|oder|weil|dass|eine[mnrs]?)|\b(?:et|ou|parce que|afin de|une|dans les?)|\b(?:porque|una|para el|de los)"
    r"|\b(?:и|или|потому что|чтобы))$"
)
# Words that end a sentence now and then, but none without its mark behind one that has it.
_UNMARKED = re.compile(
    r"[a-z)\"’`][.!?] [A-Z][a-z'’]*(?: [^\s.!?]+){2,30} (?:of|to|with|for|by|at|as|if|when|while|that|which|who|is|are|was|were|be|"
    r"has|have|can|will|would|should|must|may|its|our|this|these|each|every|between|without|until|per|via|but|into|onto|the|an?|and|or)$"
)
# Chinese that ends on a word which joins or opens, with no mark behind it.
_DANGLING_CHINESE = re.compile(
    r"\A[^，。？！；]{1,12}的[^，。？！；的]{0,7}(?:首都|[^，。？！；的也不但还总就可都正凡要算真便乃皆若确])是$|[\u4e00-\u9fff]{6}.*(?:以及|因为|并且|或者|而且|如果|但是|[把与将和])$"
    # A clause, and the word that opens the next one.
    r"|[\u4e00-\u9fff]{4}，(?:然后|首先|接着|例如|比如|从而|由于)$|[\u3040-\u30ff\u4e00-\u9fff]{4}、(?:まず|次に|そして|または|しかし|例えば)$"
)
# The same in Japanese and in Korean.
_DANGLING_JAPANESE = re.compile(
    r"[\u3040-\u30ff].{12,}(?:特に|例えば|たとえば|しかし|および|または|そして|ならびに|なぜなら)、?$"
)
_DANGLING_KOREAN = re.compile(r"(?:\S+ ){4,}\S*[\uac00-\ud7af]\S* (?:그리고|또는|및|하지만|특히)$")
# A sentence that opens a list or a block, and nothing behind it.
_OPEN_COLON = re.compile(
    r"\b(?:are|is|following|follows|these|below|this)(?: [a-z]+){0,3}:$", re.IGNORECASE
)
# Beside letters and digits, what a text ends on that one of these patterns matches.
_OPEN_MARKS = frozenset(":,")
_MIN_WORDS = 5
# Fewer words will do for one that nothing else ends on, a title neither.
_NEVER_LAST = re.compile(
    r"(?:\S+ \S+ (?:\S+ )?(?:because|whose|(?:in|of|to|from|and|is|are|because|that|with) the|is an?|(?:is|are):)"
    # A list up to the word before its last item.
    r"|[^\s,]+(?:, [^\s,]+){1,2},? (?:and|or|und|oder|et|ou|y|o|e|и|или))$"
)
# A bracket that opens a remark, and no end of anything behind it.
_OPEN_BRACKET = re.compile(r"(?:\S+ ){6}.*\w \([A-Za-z][^()]{8,}[a-z]$")
# A bracket that opens, and nothing in it: in a language that does not end its jokes with one.
_OPENED = re.compile(r"(?:\S+ ){4}[^\u0400-\u04ff]*\w \($")
# A line of prose up to a tick: several words, and none of the marks of code, whose templates and
# comments open with ticks too.
_CODE = re.compile(r"`[^`]*`")
_PROSE_TO_TICK = re.compile(
    r"(?=\W*(?:[^\W\d_]{2,}\W+){4}|.*[\u3040-\u30ff\u3400-\u9fff]{6})[^`=;{}#\\<>|$]+ \(?`"
)
# Requests and texts that name the mark itself.
_SPEAKS_OF_TICKS = re.compile(
    r"tick\b|ticks\b|grave|accent|quot|bracket|parenthes|character|symbol|key\b", re.IGNORECASE
)
# A list that goes on with a number and nothing behind it.
_EMPTY_ITEM = re.compile(r"\n[ \t]{0,8}(\d{1,2})([.)])$")
# Chinese that ends on a comma after a clause and more before it: no verse, no salutation.
_CHINESE_COMMA = re.compile(r"[\u4e00-\u9fff][，。；].{0,40}[\u4e00-\u9fff]{4}[，、]$")
_MIN_CHINESE = 16
# A list that goes on with its bullet and nothing behind it; and an item of some words that ends on
# an article, right below another one: files break their lines anywhere, further to the right, and
# comments and changelogs set their stars in.
_EMPTY_BULLET = re.compile(r"\n([ \t]{0,8}-|\*) [^\n]+\n\1\Z")
_OPEN_ITEM = re.compile(
    r"(?:\A|\n)(?:\d{1,2}[.)]|[-*•]) [^\n]*[.!?:;\w*`)]\n"
    r"(?:\d{1,2}[.)]|[-*•]) [A-Z][^\n]{0,50} (?:the|an|because|whose)\Z"
)
# How far back a sentence without an end is read.
_REACH = 140
# An object of JSON from its first key on, or a list of them; and a fence with its language.
_JSON_HEAD = re.compile(r"\s*(?:\[\s*)?\{\s*\"[^\"\n]{1,80}\"\s*:")
_TORN_END = re.compile(r"[=.+*/&|<>-]\Z|\w \Z|[(\[]\w+\Z")
# A line that says that it goes on: no line break of TeX.
_GOES_ON = re.compile(r"(?<!\\)\\\Z|\w &&\Z")
_OPEN_FENCE = re.compile(r"(?:^|\n)```[a-z+#]{1,16}\n(?:(?!```).)*\Z", re.DOTALL)
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"))
_ENDED_ON_REQUEST = frozenset(["abort", "aborted", "cancelled", "canceled"])


def detect(subject: Subject) -> Iterator[Seen]:
    # Of a call that was cut, some of the arguments or none may have come.
    cut_call = bool(subject.calls) and any(
        call.arguments.is_cut or call.arguments.is_empty for call in subject.calls
    )
    if subject.finish == "length":
        corrupts = _below_own_limit(subject)
        what = "finish_reason is length"
        if corrupts:
            what += (
                f" after {subject.exchange.completion_tokens} tokens"
                f" of {subject.exchange.max_tokens} asked for"
            )
        yield _seen("finish_reason", what, corrupts=corrupts, leads=cut_call)
    elif subject.finish is None:
        yield _seen("finish_reason", "the reply has no finish_reason", leads=cut_call)
    elif subject.is_cut:
        # Somebody had it ended: mostly the client that went away.
        asked = subject.finish in _ENDED_ON_REQUEST
        what = f"finish_reason is {subject.finish}"
        yield _seen("finish_reason", what, corrupts=not asked, leads=cut_call)
    elif not subject.calls:
        yield from _broken_off(subject)


def _below_own_limit(subject: Subject) -> bool:
    limit, used = subject.exchange.max_tokens, subject.exchange.completion_tokens
    return limit is not None and used is not None and used + TOKEN_SLACK < limit


def _broken_off(subject: Subject) -> Iterator[Seen]:
    text = subject.content.text
    tail = text[-400:]
    if subject.content.hints & _ANY_ERROR and (error := _PATH_ERROR.search(tail)):
        yield _seen("content", f"an error line follows the text, {span(tail, *error.span())}")
    elif (what := _how_broken(subject, text, tail)) and not asks_for_piece(subject.prompt):
        yield _seen("content", what)


def _how_broken(subject: Subject, text: str, tail: str) -> str | None:
    """What the text stops in; None where it may be whole."""
    if what := _open_code(subject, text) or left_open(text):
        return f"{what}, {span(tail, *_last(tail))}"
    last_line = tail.rsplit("\n", 1)[-1]
    if _opens_nothing(text) and not _SPEAKS_OF_TICKS.search(f"{subject.prompt}\n{tail}"):
        return f"opens what it does not fill, {span(tail, *_last(tail))}"
    # One paragraph of prose only: titles, verses and code may end on any word.
    end = last_line[-1:]
    if "\n" not in text and not end.isascii() and (match := _dangling_chinese(last_line[-_REACH:])):
        return f"stops in mid-sentence, {span(last_line[-_REACH:], *match.span())}"
    if end.isalnum() and "\n" in text and (match := _OPEN_ITEM.search(tail)):
        return f"stops in an item, {span(tail, *match.span())}"
    # What ends with a mark of its own is whole: no pattern below matches it.
    if not (end.isalnum() or end in _OPEN_MARKS) or not text[:1].isupper():
        return None
    if "\n" in text.strip():
        return None
    if len(last_line.split()) < _MIN_WORDS and not _NEVER_LAST.fullmatch(last_line):
        return None
    if end == ":" and _OPEN_COLON.search(last_line):
        return f"stops at a colon, {span(last_line, 0, len(last_line))}"
    opened = last_line.rfind("(") > last_line.rfind(")")
    if opened and (match := _OPEN_BRACKET.search(last_line)):
        return f"stops in a bracket, {span(last_line, *match.span())}"
    if match := _UNMARKED.search(last_line):
        return f"stops in mid-sentence, {span(last_line, *match.span())}"
    if match := _DANGLING.search(last_line[-_REACH:]):
        return f"stops in mid-sentence, {span(last_line[-_REACH:], *match.span())}"
    return None


def _last(tail: str) -> tuple[int, int]:
    return max(0, len(tail) - 60), len(tail)


def _opens_nothing(text: str) -> bool:
    """True for a text that ends right behind what opens inline code, a remark or an item of its
    list."""
    end = text[-1:]
    if end == "`":
        line = text[text.rfind("\n") + 1 :]
        return (
            line.count("`") % 2 == 1 and _PROSE_TO_TICK.fullmatch(_CODE.sub("x", line)) is not None
        )
    if end == "(":
        return "\n" not in text and text[0].isupper() and _OPENED.match(text) is not None
    if end in "-*":
        return _EMPTY_BULLET.search(text[-_REACH:]) is not None
    if end not in (".", ")") or not (item := _EMPTY_ITEM.search(text, max(0, len(text) - 16))):
        return False
    # The item before it has its words.
    number = int(item[1]) - 1
    before = re.compile(rf"^[ \t]{{0,8}}{number}{re.escape(item[2])} [^\n]*\w", re.MULTILINE)
    return number > 0 and before.search(text) is not None


def _dangling_chinese(line: str) -> re.Match[str] | None:
    if len(line) < _MIN_CHINESE or not line.endswith(("，", "、")):
        return (
            _DANGLING_CHINESE.search(line)
            or _DANGLING_JAPANESE.search(line)
            or _DANGLING_KOREAN.search(line)
        )
    return _CHINESE_COMMA.search(line)


def _open_code(subject: Subject, text: str) -> str | None:
    """What of code or JSON was begun and not ended; None where the text may be whole."""
    # A piece of a file may end anywhere; what was asked for as JSON may not.
    wanted = "\n" not in text or "json" in subject.prompt.lower()
    if wanted and _JSON_HEAD.match(text):
        return "JSON that is not closed" if _is_open(text) and _breaks_off(text) else None
    if "html" in subject.prompt.lower() and is_open_page(text):
        return "a page that is not closed"
    if text.count("```") % 2 == 0 or not _OPEN_FENCE.search(text):
        return None
    # A piece of a manual ends with a whole line; what broke off mostly does not.
    line = text.rstrip("\n").rpartition("\n")[2]
    if _GOES_ON.search(line):
        return "a fence whose last line goes on"
    torn = line.count('"') % 2 == 1 or _TORN_END.search(line) or _stops_in_arguments(line)
    if torn and _is_open(text[text.rfind("```") :]):
        return "a fence and brackets that are not closed"
    return None


def _stops_in_arguments(line: str) -> bool:
    """True for a line that ends on a comma, its own bracket open."""
    return line.endswith(",") and _is_open(line)


def _is_open(code: str) -> bool:
    return any(code.count(opener) > code.count(closer) for opener, closer in _PAIRS)


def _breaks_off(text: str) -> bool:
    """True for JSON whose only fault is that it ends."""
    try:
        json.JSONDecoder().raw_decode(text.lstrip())
    except json.JSONDecodeError as error:
        opened = error.msg.startswith("Unterminated string")
        return opened or error.pos >= len(text.strip()) - 1
    except RecursionError:
        return False
    return False


def _seen(where: str, what: str, *, corrupts: bool = True, leads: bool = False) -> Seen:
    return Seen(label=Label.TRUNCATED, where=where, what=what, corrupts=corrupts, leads=leads)


DETECTOR = Detector(
    label=Label.TRUNCATED, summary="a reply that ends before it is done", detect=detect
)
