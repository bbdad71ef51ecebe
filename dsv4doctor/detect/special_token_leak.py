"""Control tokens of a chat template in the text.

Seen: begin- and end-of-sentence tokens, role and turn markers, fill-in-the-middle tokens, of
DeepSeek's or anybody else's template, whole or cut, outside code, in text or in arguments; the next
turns of the conversation, spelt out behind the answer.
Why: the server strips them; where they show, the model fell out of its template. A
begin-of-sentence token in mid-answer is the mark of a cache that answers with position zero.
Confirm: request `skip_special_tokens: false` at temperature 0 and look at what stands around it.
Source: https://github.com/vllm-project/vllm/pull/41834,
https://github.com/ggml-org/llama.cpp/issues/26694.
"""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterator

from dsv4doctor.detect.detector import Detector, Seen, span
from dsv4doctor.detect.hints import hint
from dsv4doctor.detect.invented_turns import TURNS, invented_turns
from dsv4doctor.detect.quoting import holds_template, quoted_spans
from dsv4doctor.detect.request import asks_about_markup
from dsv4doctor.detect.signs import holds_any
from dsv4doctor.detect.subject import Subject, Text
from dsv4doctor.label import Label

# DeepSeek's own: full-width bars around words joined by low blocks. DSML is `dsml_leak`'s.
_DEEPSEEK = r"<[｜]{1,2}(?!DSML|dsml)[A-Za-z▁][\w▁ ]{0,40}(?:[｜]{1,2}>|[｜|]>)|<(?!｜?DSML)(?:｜[A-Za-z][A-Za-z▁_]{1,40}|[A-Za-z][A-Za-z▁_]{1,40}｜)>|<｜(?:begin|end)▁[a-z▁]{0,24}(?=[\s,.;:!?])|<\[(?:[A-Za-z0-9]+▁|(?i:begin|end|start|bos|eos|pad|unk|mask|fim|im|tool|plhd\d*)_)[\w▁]{1,60}\]>|\][~!]b[\[\]]|\[e~\["
# The family `<|word|>`: ChatML, Llama 3, GLM, Phi, Kimi, harmony, Command R, made-up ones too.
# One plain word may be a nickname in a chat (`<|anna|>`): only those of known templates count.
_PLAIN_WORDS = (
    r"(?i:endoftext|endofprompt|startoftext|endofturn|user|human|assistant|bot|system|developer|environment|"
    r"ipython|python|tools?|function|observation|channel|message|constrain|return|call|start|end|begin|sep|"
    r"separator|context|prompt|answer|think|pad|bos|eos|eod|eot|eom|eop|sop|mask|image|audio|video|vision|"
    r"title|query|domain|authority|action|fim|empty|unk|(?:dummy|placeholder|reserved|unused|extra)\d+)"
)
_ASCII = (
    rf"<\|/?(?:[A-Za-z][A-Za-z0-9]*[_▁][A-Za-z0-9_▁]{{0,40}}|{_PLAIN_WORDS})"
    r"(?:[ /][A-Za-z0-9_]{1,20})?\|>"
    # Templates whose pairs open with `<|word>` and close with `<word|>`.
    r"|<\|(?:tool_(?:call|response|output|result)|channel|turn|think|message|start|end|system|user|assistant)>"
    r"|<(?:tool_(?:call|response|output|result)|channel|turn|think|message|im_start|im_end|eot_id)\|>"
)
_NAMED = (
    r"<\|\"\|>|<im_(?:start|end)>|<eot_id>|<latest_reminder>|</?start_of_turn>|<end_of_turn>|<start_of_image>|<start_function_call>|"
    r"\[/?INST\]|<</?SYS>>|\[gMASK\]|\[/?(?:TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|SYSTEM_PROMPT|IMG|BEGIN_OF_TEXT)\]|"
    r"<fim_(?:prefix|suffix|middle|pad)>|<(?:gh_stars|jupyter_(?:start|text|code|output)|"
    r"commit_(?:before|msg|after)|empty_output)>|<extra_id_\d{1,3}>|<reserved_\d{1,4}>|<unused\d{1,4}>|"
    # A byte; a device tree and a template have their numbers in the same brackets: `reg = <0x48>;`,
    # `blend<0xAA>(a, b)`.
    r"<0x(?<!= <0x)[0-9A-F]{2}>(?![;,()])|<(?:extra_)?[0-9]*(?:bos|eos)(?:_token)?>|<sop>|<eop>|<eod>|<eot>|"
    r"<(?:begin|end)_of_(?:sentence|text|turn|speech)>|<\| (?:begin|end)_of_[a-z]{3,12} \|>|"
    # The middle of DeepSeek's sentence tokens, its bars lost: low blocks join no words of prose.
    r"(?:begin|end)▁of▁(?:sentence|thinking)[｜|]?>?|"
    r"<SPECIAL_\d{1,4}>|<end_of_utterance>|<\|?end\|?of\|?text\|?>|<seed:(?:bos|eos|tool_call|pad)>"
)
_TOKEN = re.compile(f"{_DEEPSEEK}|{_ASCII}|{_NAMED}")
# A token cut at the start of the text.
_HALF_START = re.compile(
    r"\s*(?:[A-Za-z▁]{0,30}▁[a-z▁]{1,30}[｜|]|｜?[A-Za-z▁_]{0,30}｜)>"
    r"|\s*\|?(?:[a-z]{1,12}_)*(?:im_(?:start|end)|end|eot_id|header_id|of_text|of_turn)\|>"
    r"|\|?(?:[a-z]{0,6}_)?[a-z]{0,5}(?:end|start|id|text|turn)\|>(?=\s?[A-Z\u3400-\u9fff])"
    r"|\s*<s>(?=\s?[A-Z\u3400-\u9fff])(?![^<]{0,4000}</s>)"
    # Both around the whole text, with a blank behind the first: HTML has none there.
    r"|\s*<s> (?=[^\s<][^<]{0,4000}</s>\s*\Z)"
)
# A token cut at the end of the text.
_HALF = re.compile(
    r"<｜(?!D?S?M?L?｜?$)[A-Za-z][\w▁]{0,40}｜?$|<\|(?:im_(?:st|en|start|end)|end_?of|eot|begin_of|start_header)[\w]{0,20}\|?$|(?<=\S)<\|(?:im?_?[es]?|eo?|en(?:d\w{0,12})?)$"
)
# Sentence and padding tokens that also are ordinary tags or placeholders: only where nothing opened
# or explains them, at the very edge of the text or in a row.
_EDGE = re.compile(
    r"(?:</s>|<pad>|<unk>|<mask>|<EOS>|<BOS>|<PAD>|\[PAD\]|\[UNK\]|\[SEP\]|\[CLS\]|\[EOS\]|\[BOS\])\s*$"
)
_ROW = re.compile(r"(?:(?:</?s>|<pad>|<unk>|\[PAD\]|\[UNK\]|\[CLS\]|\[SEP\])\s?){3,}")
# The token for a word out of the vocabulary, where nothing speaks of vocabularies; a corpus is full
# of it.
_UNKNOWN = re.compile(r"(?<=\s)(?:<unk>)+(?=[\s,.;])")
_SPEAKS_OF_MODELS = re.compile(
    r"token|vocab|embed|corp(?:us|ora)|\boov\b|\bmodel|data ?set|perplex|unknown", re.IGNORECASE
)
_MOST_UNKNOWN = 3
# What a text says before it names a token, up to the blank in front of it.
_SPEAKS_OF_TOKENS = re.compile(
    r"(?:\btokeni[sz]er|\bspecial token|\bvocabulary|\bchat template|\btokens? (?:<[^<>\n]{1,40}>|\Z)).*(?<= )\Z",
    re.IGNORECASE | re.DOTALL,
)
_SPOKEN_REACH = 200
# One of these is in every token. By the character that they begin with, since a pattern that begins
# with one is searched for fastest.
_HINTS = {
    "<": re.compile(
        r"<(?:[｜|<\[]|/?(?:start_of|end_of|start_fun|fim_|gh_|jup|commit_|empty_|im_|eot_id|latest_|extra_id|reserved_|unused|0x|bos|eos|"
        r"\d*bos|\d*eos|sop>|eop>|eod>|eot>|begin_of|SPECIAL_|seed:|s>|pad>|unk>|mask>|EOS>|BOS>|PAD>|endof|end\|))"
    ),
    "[": re.compile(
        r"\[(?:/?(?:INST|gMASK|THINK|TOOL|AVAIL|SYS|IMG|BEGIN|PAD|UNK|SEP|CLS|EOS|BOS)|e?~)"
    ),
    "]": re.compile(r"\][~!]"),
    "|": re.compile(r"\|>(?<=[a-z]\|>)"),
    "▁": re.compile("▁of▁"),
    "｜": re.compile("｜>"),
}
_HINT_SIGNS = frozenset(_HINTS)
# The same for a search of all at once (see `hints.py`), nearer to the tokens themselves.
_ANY_TOKEN = hint(
    r"<｜|<[A-Za-z][A-Za-z▁_]{1,40}｜>|<(?:im_|eot_id|latest_)|<\[(?:[A-Za-z0-9]+▁|(?i:begin|end|start|bos|eos|pad|unk|mask|fim|im|tool|plhd\d*)_)|\][~!]b[\[\]]|\[e~\[",
    r"<\|/?[A-Za-z][A-Za-z0-9_▁ /]{0,64}\|?>|<[a-z_]{3,13}\|>|<\|\"\|>",
    r"</?start_of_turn>|<(?:end_of_|start_of_|start_function_)(?:turn|image|call|utterance)>|<</?SYS>>",
    r"\[/?(?:INST|IMG|gMASK|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|SYSTEM_PROMPT|BEGIN_OF_TEXT)\]",
    r"<fim_|<(?:gh_stars|jupyter_|commit_|empty_output|extra_id_\d|reserved_\d|unused\d|SPECIAL_\d|seed:)",
    r"<0x[0-9A-F]{2}>|<(?:extra_)?[0-9]*(?:bos|eos)(?:_token)?>|<(?:sop|eop|eod|eot)>",
    r"<(?:begin|end)_of_(?:sentence|text|turn|speech)>|<\| (?:begin|end)_of_[a-z]",
    r"(?:begin|end)▁of▁(?:sentence|thinking)|<\|?end\|?of\|?text\|?>",
    # Cut at the start of the text or at its end, alone at its edge, or in a row.
    r"\A[^!-~]*(?:[｜|]?[A-Za-z▁_]{0,61}[｜|]>|<s>)",
    r"<\|(?:im_(?:st|en)|end|eot|begin_of|start_header)|<\|(?:im?_?[es]?|eo?|en)[^!-~]*\z",
    r"(?:</s>|<(?:pad|unk|mask|EOS|BOS|PAD)>|\[(?:PAD|UNK|SEP|CLS|EOS|BOS)\])[^!-~]*\z|(?:</?s>|<pad>|<unk>|\[(?:PAD|UNK|CLS|SEP)\])[^!-~]?[<\[]",
    "<unk>",
)
# One of these is in every row.
_ROW_HINTS = ("s>", "<pad>", "<unk>", "[PAD]", "[UNK]", "[CLS]", "[SEP]")
_TAIL = 80


def detect(subject: Subject) -> Iterator[Seen]:
    for text in subject.free_texts:
        if _may_hold_token(text) and (found := _first(text, subject.prompt)):
            if asks_about_markup(subject):
                return
            yield Seen(
                label=Label.SPECIAL_TOKEN_LEAK,
                where=text.where,
                what=f"a control token of a chat template, {span(text.text, *found)}",
            )
            return
    if subject.content.hints & TURNS and (turns := invented_turns(subject)):
        yield Seen(
            label=Label.SPECIAL_TOKEN_LEAK,
            where="content",
            what=f"turns that nobody had, {span(subject.content.text, *turns)}",
        )


def _may_hold_token(text: Text) -> bool:
    """The cheap test: every token has an angle or square bracket, and one of the hints."""
    return text.hints & _ANY_TOKEN != 0 and any(
        _HINTS[sign].search(text.text) for sign in text.signs & _HINT_SIGNS
    )


def _first(text: Text, prompt: str) -> tuple[int, int] | None:
    body = text.text
    if holds_template(body):
        return None
    quoted = None
    for match in _TOKEN.finditer(body):
        if text.code.covers(match.start()) or _is_word_of(prompt, match.group()):
            continue
        if _is_spoken_of(body, *match.span()):
            continue
        quoted = quoted if quoted is not None else quoted_spans(body)
        if not quoted.covers(match.start()) and not _is_item(body, *match.span()):
            return match.span()
    if started := _HALF_START.match(body):
        return started.span()
    edge = body.rstrip()
    for pattern, source, start in (
        (_HALF, edge, max(0, len(edge) - _TAIL)),
        (_EDGE, edge, max(0, len(edge) - _TAIL)),
        (_ROW, body if holds_any(body, _ROW_HINTS) else "", 0),
    ):
        found = pattern.search(source, start)
        if found and not text.code.covers(found.start()) and not _closes_html(body, found.group()):
            return found.span()
    return _unknown_word(text) if "<unk>" in body else None


def _is_item(text: str, start: int, end: int) -> bool:
    """True for an item of a list that goes on: a stop word in YAML."""
    before = text[text.rfind("\n", 0, start) + 1 : start].strip()
    return before == "-" and text.startswith("\n", end) and bool(text[end:].strip())


def _is_spoken_of(text: str, start: int, end: int) -> bool:
    """True in the middle of a sentence about tokens: `The tokenizer maps <s> to 1.`"""
    if not text.startswith((" ", ",", ".", ";", ":", ")"), end):
        return False
    return _SPEAKS_OF_TOKENS.search(text, max(0, start - _SPOKEN_REACH), start) is not None


def _unknown_word(text: Text) -> tuple[int, int] | None:
    found = [m.span() for m in _UNKNOWN.finditer(text.text) if not text.code.covers(m.start())]
    few = 0 < len(found) <= _MOST_UNKNOWN
    return found[0] if few and not _SPEAKS_OF_MODELS.search(text.text) else None


def _is_word_of(prompt: str, token: str) -> bool:
    """True for capitals in square brackets that the request asks about as a word: the mark of a
    list (`[INST]`, `[IMG]`), no token."""
    word = token.strip("[]")
    bracketed = token.startswith("[") and word.isalpha() and word.isupper()
    return bracketed and re.search(rf"(?<!\w){word}(?!\w)", prompt) is not None


def _closes_html(text: str, token: str) -> bool:
    """`</s>` closes HTML's strike-through where one was opened."""
    return "</s>" in token and "<s>" in text


DETECTOR = Detector(
    label=Label.SPECIAL_TOKEN_LEAK,
    summary="control tokens of a chat template in text or arguments",
    detect=detect,
    hints=_ANY_TOKEN | TURNS,
)
