"""Faults put into clean texts, seeded: every kind of the contract, at several sizes and places."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from detect_pieces import MIXES, strung

Record = dict[str, Any]
_Make = Callable[[str, random.Random], Record]

TOOL = {
    "type": "function",
    "function": {
        "name": "write_file",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "content": {"type": "string"},
                "mode": {"type": "integer"},
            },
            "required": ["path", "content"],
        },
    },
}
BLOCK = (
    '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="write_file">\n'
    '<｜DSML｜parameter name="path" string="true">a.txt</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="mode" string="false">-12</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
)
WORDS = [
    "the",
    "log",
    "says",
    "that",
    "every",
    "open",
    "lease",
    "is",
    "held",
    "by",
    "one",
    "worker",
    "and",
    "the",
    "queue",
    "waits",
]
SCRIPTS = (
    "смотри лог очередь снова", "接続 設定 確認 再起動", "连接 检查 网络 设置", "서버 설정 확인 다시",
    "فتح الملف الخدمة أعد", "सर्वर पोर्ट फ़ाइल दोबारा", "เปิด ไฟล์ พอร์ต บริการ", "σειρά δίσκος αρχείο θύρα",
    "פתח קובץ שירות שוב", "சேவை கோப்பு மீண்டும் இணைப்பு",
)  # fmt: skip
# Pieces as a broken decoder strings them together within one script: function words of English and
# other languages, suffixes, stray marks.
PIECES = [
    "the",
    "of",
    "and",
    "to",
    "a",
    "which",
    "then",
    "was",
    "is",
    "by",
    "und",
    "mit",
    "nicht",
    "das",
    "les",
    "dans",
    "pour",
    "los",
    "una",
    "ing",
    "tion",
    "ization",
    "ment",
    ",-",
    ");",
    "}}",
    ")",
    "|",
    "--",
    ",,",
    "___",
    "=>",
    "half--",
    "then--",
    "un-",
    "lamp",
    "Wolke",
    "Suppe",
    "of)",
    "row",
]


def record(content: Any, *, finish: str | None = "stop", **more: Any) -> Record:
    reply = {"content": content, "reasoning_content": None, "tool_calls": None}
    return {"prompt": "Please go on.", **more, "response": {**reply, "finish_reason": finish}}


def called(
    arguments: Any, *, name: str = "write_file", finish: str = "tool_calls", **more: Any
) -> Record:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    made = record(None, finish=finish, tools=[TOOL], **more)
    function = {"name": name, "arguments": raw}
    made["response"]["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
    return made


def put(text: str, fault: str, rng: random.Random) -> str:
    """`fault` at the start, the end or a blank somewhere in the text; not in a line that has
    quotation marks, where it may be a quotation."""
    where = rng.random()
    if where < 0.15:
        return fault + " " + text
    if where < 0.5:
        return text + "\n" + fault
    at = text.find(" ", rng.randrange(len(text)))
    line = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
    if any(mark in line for mark in "\"'“”„«»‘’「」"):
        return text + "\n" + fault
    return text[:at] + " " + fault + " " + text[at + 1 :] if at >= 0 else text + " " + fault


@dataclass(frozen=True, slots=True)
class Injection:
    """One kind of fault: what it has to be labelled, how often of 1, how it is made, and which
    texts it is put into (any, or those written in one script)."""

    name: str
    label: str
    floor: float
    make: _Make
    takes: Callable[[str], bool] = lambda text: True


def _leak(piece: str) -> _Make:
    return lambda text, rng: record(put(text, piece, rng), tools=[TOOL])


def _surfaces() -> dict[str, str]:
    """What of a block surfaces, by the table of parser behaviours: whole, halves, orphans, bars."""
    tags = re.findall(r"<[^>]*>", BLOCK)
    spaced = BLOCK.replace("｜tool_calls", "｜ calls").replace("｜invoke", "｜ invoke")
    return {
        "whole block": BLOCK,
        "V4.1 block": spaced.replace("｜parameter", "｜ parameter"),
        "V3.2 block": BLOCK.replace("tool_calls", "function_calls"),
        "garbled wrapper": BLOCK.replace("tool_calls", "toolcalls"),
        "bare invoke": BLOCK.split("\n", 1)[1].rsplit("\n", 1)[0],
        "wrapper opener left": tags[0],
        "first bar lost": "<DSML｜tool_calls>",
        "ASCII bars": BLOCK.replace("｜", "|"),
        "escaped by a proxy": BLOCK.replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace('"', "&quot;"),
        "orphan closers": "\n".join(tags[-2:]),
        "one orphan closer": tags[-1],
        "cut block": BLOCK[: len(BLOCK) // 2],
        "block once per delta": "\n".join(BLOCK[: len(BLOCK) * n // 4] for n in range(1, 5)),
        "XML tags without the marker": re.sub(r"｜DSML｜", "", BLOCK),
        "invoke never closed": BLOCK.rsplit("\n", 2)[0],
        "bare markers": ">>｜DSML｜｜DSML｜/｜DSML｜//",
        "V3 tokens": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write_file",
        "V3 end token": "<｜tool▁calls▁end｜>",
    }


def _half_opener(text: str, rng: random.Random) -> Record:
    opener = "<｜DSML｜tool_calls>"
    return record(text + "\n" + opener[: rng.randint(2, len(opener) - 1)], tools=[TOOL])


def _in_value(text: str, rng: random.Random) -> Record:
    closer = "</｜DSML｜parameter>"
    return called({"path": "a", "content": text + closer[: rng.randint(3, len(closer))]})


def _beside_call(piece: str) -> _Make:
    """Markup left in the content while the call itself came out well."""

    def make(text: str, rng: random.Random) -> Record:
        made = called({"path": "a", "content": text})
        made["response"]["content"] = piece
        return made

    return make


def _thought(text: str) -> Record:
    made = record("Done.", tools=[TOOL])
    made["response"]["reasoning_content"] = text
    return made


def _cut_json(text: str, rng: random.Random) -> Record:
    raw = json.dumps({"path": "a", "content": text})
    return called(raw[: rng.randint(1, len(raw) - 1)])


def _dropped_bytes(text: str, rng: random.Random) -> Record:
    raw = json.dumps({"path": "a", "content": "x", "list": [text[:40], {"k": 1}]})
    marks = [at for at, char in enumerate(raw) if char in '{}[],:"']
    at = rng.choice(marks)
    return called(raw[:at] + raw[at + 1 :])


def _loop(unit: Callable[[random.Random], str], rounds: int, finish: str) -> _Make:
    return lambda text, rng: record(text[:1500] + " " + unit(rng) * rounds, finish=finish)


def _word(rng: random.Random) -> str:
    return rng.choice(WORDS) + " "


def _phrase(rng: random.Random) -> str:
    return " ".join(rng.sample(WORDS, 5)) + ". "


def _ideographs(rng: random.Random) -> str:
    return "".join(rng.sample("请检查网络连接并重试我先读取配置文件", rng.randint(3, 8))) + "，"


def _scripts(size: int) -> _Make:
    def make(text: str, rng: random.Random) -> Record:
        parts: list[str] = []
        while sum(map(len, parts)) < size:
            parts.append(rng.choice(rng.choice(SCRIPTS).split()) + " " + rng.choice(WORDS) + " ")
        return record(put(text, "".join(parts), rng))

    return make


def _pieces(size: int) -> _Make:
    def make(text: str, rng: random.Random) -> Record:
        parts: list[str] = []
        while sum(map(len, parts)) + len(parts) < size:
            parts.append(rng.choice(PIECES))
        return record(put(text, " ".join(parts), rng))

    return make


def _strung(pieces: list[str], size: int) -> _Make:
    return lambda text, rng: record(put(text, strung(pieces, size, rng), rng))


def _cuts(words: list[str], size: int, rng: random.Random) -> str:
    """Pieces cut at random from words, half of them glued to the one before."""
    made = ""
    while len(made) < size:
        word = rng.choice(words)[:14]
        at = rng.randrange(len(word))
        made += (" " if rng.random() < 0.55 else "") + word[at : at + rng.randint(1, 5)]
    return made


# Alphabets by the first and last of their small letters, and characters drawn from nothing.
_HARD_DRAWN, _HARD_AT = ("Hebrew", "Arabic"), 30
DRAWN = {
    "Latin": ("a", "z"),
    "Cyrillic": ("а", "я"),
    "Greek": ("α", "ω"),
    "Hebrew": ("א", "ת"),
    "Arabic": ("ب", "غ"),
    "Hangul": ("\uac00", "\ud7a3"),
    "Han": ("\u4e00", "\u9fa5"),
}


def _drawn(size: int, first: str, last: str) -> _Make:
    """Words of letters drawn evenly from one alphabet."""

    def make(text: str, rng: random.Random) -> Record:
        made: list[str] = []
        while sum(map(len, made)) + len(made) < size:
            letters = (chr(rng.randint(ord(first), ord(last))) for _ in range(rng.randint(2, 9)))
            made.append("".join(letters))
        return record(put(text, " ".join(made), rng))

    return make


def _disorder(size: int) -> _Make:
    """The text's own words with their letters in disorder."""

    def make(text: str, rng: random.Random) -> Record:
        words = re.findall(r"[^\W\d_]{2,14}", text) or ["nothing"]
        made: list[str] = []
        while sum(map(len, made)) + len(made) < size:
            word = rng.choice(words).lower()
            made.append("".join(rng.sample(word, len(word))))
        return record(put(text, " ".join(made), rng))

    return make


def _random_cuts(size: int) -> _Make:
    """Pieces of the text's own words: what no rule about words can tell well."""
    return lambda text, rng: record(put(text, _cuts(text.split(), size, rng), rng))


# Scripts by the first and last of their letters; recall of 0.95 is asked from which length on.
ONE_SCRIPT = {
    "Devanagari": ("\u0904", "\u097f", 120),
    "Bengali": ("\u0980", "\u09ff", 120),
    "Tamil": ("\u0b80", "\u0bff", 120),
    "Thai": ("\u0e00", "\u0e7f", 120),
    "Hebrew": ("\u05d0", "\u05ea", 300),
    "Arabic": ("\u0620", "\u06ff", None),
    "Greek": ("\u0386", "\u03ff", None),
    "Cyrillic": ("\u0400", "\u04ff", None),
    "Hangul": ("\uac00", "\ud7a3", None),
    "Han": ("\u4e00", "\u9fff", None),
}


def _written_in(first: str, last: str) -> Callable[[str], bool]:
    """Whether most letters of a text are of one script."""

    def takes(text: str) -> bool:
        letters = [char for char in text if char.isalpha()]
        return 2 * sum(first <= char <= last for char in letters) > len(letters)

    return takes


def _one_script(size: int, first: str, last: str) -> _Make:
    """Random cuts of a text's own words, less what is in them of other scripts and marks."""
    foreign = re.compile(f"[^{first}-{last}]+")
    return lambda text, rng: record(
        put(text, _cuts(foreign.sub(" ", text).split(), size, rng), rng)
    )


def _mojibake(text: str, rng: random.Random) -> Record:
    fault = "Die Tür schließt über Nacht, süß wie Käse".encode().decode("latin-1")
    return record(put(text, fault, rng))


def _constant(fault: str) -> _Make:
    return lambda text, rng: record(put(text, fault, rng))


def injections() -> tuple[Injection, ...]:
    """Every kind of fault with the recall that it has to reach."""
    made = [
        Injection(f"DSML: {name}", "dsml_leak", 0.98, _leak(piece))
        for name, piece in _surfaces().items()
    ]
    made += [
        Injection("DSML: half opener at the end", "dsml_leak", 0.98, _half_opener),
        Injection("DSML: closer in a value", "dsml_leak", 0.98, _in_value),
        Injection(
            "DSML: markup in raw arguments",
            "malformed_arguments",
            0.98,
            lambda t, r: called(
                f'{{"path": <｜DSML｜parameter name="content">{json.dumps(t[:200])}'
            ),
        ),
        Injection(
            "DSML: bare markers in a value",
            "dsml_leak",
            0.98,
            lambda t, r: called({"path": ">>｜DSML｜｜DSML｜/｜DSML｜//", "content": t}),
        ),
        Injection(
            "DSML: call inside the thinking",
            "dsml_leak",
            0.98,
            lambda t, r: _thought(t + "\n" + BLOCK),
        ),
        Injection(
            "arguments: a value that is no JSON",
            "malformed_arguments",
            0.98,
            lambda t, r: called('{"path": "a", "content": "b", "mode": hello world}'),
        ),
        Injection(
            "arguments: a value cut off",
            "malformed_arguments",
            0.98,
            lambda t, r: called('{"path": "a", "mode": '),
        ),
        Injection(
            "arguments: a key twice",
            "malformed_arguments",
            0.98,
            lambda t, r: called(f'{{"path": "a", "content": {json.dumps(t)}, "path": "b"}}'),
        ),
        Injection("arguments: cut", "malformed_arguments", 0.98, _cut_json),
        Injection("arguments: a mark dropped", "malformed_arguments", 0.9, _dropped_bytes),
        Injection(
            "arguments: NaN",
            "malformed_arguments",
            0.98,
            lambda t, r: called('{"path": "a", "content": "b", "mode": NaN}'),
        ),
        Injection(
            "arguments: encoded twice",
            "malformed_arguments",
            0.98,
            lambda t, r: called(json.dumps(json.dumps({"path": "a", "content": t}))),
        ),
        Injection(
            "arguments: an opening brace alone",
            "malformed_arguments",
            0.98,
            lambda t, r: called("{"),
        ),
        Injection(
            "arguments: cut with markup inside",
            "malformed_arguments",
            0.98,
            lambda t, r: called(
                json.dumps({"path": "a", "content": t[:300] + "</｜DSML｜inv"})[:-2]
            ),
        ),
        Injection(
            "schema: NaN as a string",
            "schema_violation",
            0.98,
            lambda t, r: called({"path": "a", "content": t, "mode": "NaN"}),
        ),
        Injection("DSML: whole block beside the call", "dsml_leak", 0.98, _beside_call(BLOCK)),
        Injection(
            "DSML: half opener beside the call",
            "dsml_leak",
            0.98,
            _beside_call("<DSML｜tool_calls>"),
        ),
        Injection(
            "DSML: opener beside the call",
            "dsml_leak",
            0.98,
            _beside_call("<｜DSML｜function_calls>"),
        ),
        Injection(
            "forced call dropped, nothing left",
            "missing_tool_call",
            0.98,
            lambda t, r: record("", tools=[TOOL], tool_choice="required"),
        ),
        Injection("schema: empty", "schema_violation", 0.98, lambda t, r: called("{}")),
        Injection(
            "schema: wrong type",
            "schema_violation",
            0.98,
            lambda t, r: called({"path": "a", "content": t, "mode": "-12"}),
        ),
        Injection(
            "schema: key missing", "schema_violation", 0.98, lambda t, r: called({"content": t})
        ),
        Injection(
            "name: a token lost",
            "unknown_tool",
            0.98,
            lambda t, r: called({"path": "a", "content": t}, name="write_file"[: r.randint(1, 9)]),
        ),
        Injection(
            "forced call missing",
            "missing_tool_call",
            0.98,
            lambda t, r: record(t, tools=[TOOL], tool_choice="required"),
        ),
        Injection(
            "nothing", "empty", 0.98, lambda t, r: record(r.choice(["", " ", "\n\n", "\u200b"]))
        ),
        Injection(
            "no finish reason",
            "truncated",
            0.98,
            lambda t, r: record(t[: len(t) // 2], finish=None),
        ),
        Injection(
            "thinking tag",
            "misplaced_reasoning",
            0.98,
            lambda t, r: record(put(t, r.choice(["</think>", "<think>"]), r)),
        ),
    ]
    made += [
        Injection(f"token: {token}", "special_token_leak", 0.98, _constant(token))
        for token in (
            "<｜begin▁of▁sentence｜>",
            "<｜end▁of▁sentence｜>",
            "<｜User｜>",
            "<|im_end|>",
            "<|endoftext|>",
            "<|eot_id|>",
        )
    ]
    for rounds in (8, 20, 80):
        for name, unit in (("word", _word), ("phrase", _phrase), ("ideographs", _ideographs)):
            for finish in ("stop", "length"):
                made.append(
                    Injection(
                        f"loop: {name} x {rounds}, {finish}",
                        "repetition_loop",
                        0.95,
                        _loop(unit, rounds, finish),
                    )
                )
    made.append(
        Injection(
            "loop: one mark x 200, length",
            "repetition_loop",
            0.95,
            _loop(lambda r: r.choice("!?M的"), 200, "length"),
        )
    )
    for size in (30, 45, 60, 120, 300):
        made.append(Injection(f"salad: scripts, {size}", "token_salad", 0.95, _scripts(size)))
        made.append(
            Injection(
                f"salad: word pieces, {size}",
                "token_salad",
                0.95,
                _pieces(size),
            )
        )
        made.append(
            Injection(f"salad: random cuts, {size}", "token_salad", 0.0, _random_cuts(size))
        )
    for size in (30, 45, 60, 120, 300):
        for script, (first, last) in DRAWN.items():
            floor = 0.95 if size > _HARD_AT or script not in _HARD_DRAWN else 0.0
            name = f"salad: drawn letters of {script}, {size}"
            made.append(Injection(name, "token_salad", floor, _drawn(size, first, last)))
        name = f"salad: letters in disorder, {size}"
        made.append(Injection(name, "token_salad", 0.0, _disorder(size)))
        for mix, pieces, told_from in MIXES:
            floor = 0.95 if told_from and size >= told_from else 0.0
            name = f"salad: other word pieces, {mix}, {size}"
            made.append(Injection(name, "token_salad", floor, _strung(pieces, size)))
    for script, (first, last, told_from) in ONE_SCRIPT.items():
        for size in (30, 60, 120, 300):
            made.append(
                Injection(
                    f"salad: cuts in {script}, {size}",
                    "token_salad",
                    0.95 if told_from and size >= told_from else 0.0,
                    _one_script(size, first, last),
                    _written_in(first, last),
                )
            )
    made += [
        Injection(
            "salad: U+FFFD",
            "token_salad",
            0.95,
            _constant("请检查��务是否��动，然后看日志里的��息，谢谢你的帮助和耐心等待"),
        ),
        Injection("salad: mojibake", "token_salad", 0.95, _mojibake),
        Injection(
            "salad: symbols",
            "token_salad",
            0.95,
            _constant("°°ﬁ¶ ⌂⌂ ✱ §§ ⌐ ‡ ﬂ ◊◊ ¬ ⌂ µ ¦¨¯ ºª ‰ ƒ"),
        ),
    ]
    return tuple(made)  # fmt: skip
