"""Loops to the very end, exact, drifting, interleaved, without blanks; never songs, tables or
dumps."""

# Long lines: tables of cases, a row each.
# ruff: noqa: E501

from __future__ import annotations

import random

import pytest
from builders_detect import call, labels, reply

from dsv4doctor.exchange import Exchange

GOOD_START = "The restart is slow because the cache is cold. First the index is read, then the log."
_NOUNS = ["cache", "queue", "index", "buffer", "lease", "shard", "token", "page", "stream", "clock"]
_RNG = random.Random(3)


def _interleaved() -> str:
    two = ("I will check the log file for errors. ", "Then I will look at the queue again. ")
    return GOOD_START + " " + "".join(_RNG.choice(two) for _ in range(60))


def _drifting(count: int) -> str:
    return "\n".join(
        f"{n}. It may be that the {_RNG.choice(_NOUNS)} is stale, so I will check the"
        f" {_RNG.choice(_NOUNS)} before I go on with it."
        for n in range(1, count)
    )


FIRES = {
    "a word, cut": reply(f"{GOOD_START} and" + " the" * 40, finish="length"),
    "a word, stopped": reply(f"{GOOD_START} It is slow" + " very" * 30),
    "eight rounds of a word": reply(GOOD_START + " again" * 8),
    "two words": reply(GOOD_START + " so then" * 20, finish="length"),
    "one mark": reply("Sure" + "!" * 300, finish="length"),
    "one mark, stopped": reply("Sure" + "!" * 300),
    "one letter": reply("The answer is " + "M" * 400, finish="length"),
    "a subword": reply("Paris" + "izing" * 60, finish="length"),
    "a phrase": reply(GOOD_START + " I will now open the file." * 12),
    "a paragraph": reply((GOOD_START + "\n\n") * 5),
    "lines": reply("Run it.\n" * 40, finish="length"),
    "heading and a piece of a table": reply("## Options\n| Key | Value |\n" * 12),
    "a pair of numbers": reply("North." + " (1,0)/(0,1)" * 60, finish="length"),
    "chinese": reply("建议如下：" + "请检查网络连接并重试，" * 20, finish="length"),
    "chinese, stopped": reply("好的。" + "我先读取配置文件。" * 12),
    "one ideograph": reply("答案是" + "的" * 200, finish="length"),
    "japanese": reply("手順：" + "再起動してください。" * 15),
    "thai": reply("วิธีแก้ " + "รีสตาร์ตบริการ" * 20),
    "arabic": reply("الحل هو" + " أعد تشغيل الخدمة" * 15),
    "russian": reply("Ответ:" + " попробуйте ещё" * 20),
    "cut in the middle of a round": reply(GOOD_START + " I will now open the file." * 12 + " I wi"),
    "last word out of step": reply(GOOD_START + " check the log" * 20 + " che lo"),
    "counter in the template, cut": reply(
        "\n".join(
            f"Attempt {n}: I will open the file, read it, and decide about it." for n in range(40)
        ),
        finish="length",
    ),
    "drifting nouns, cut": reply(_drifting(50), finish="length"),
    "drifting nouns in the reasoning": reply(None, reasoning=_drifting(50), finish="length"),
    "two sentences in turns": reply(_interleaved(), finish="length"),
    "in an argument": reply(
        None,
        call(
            "write_file", {"path": "n.md", "content": "# Notes\n" + "- check the log file\n" * 60}
        ),
    ),
    "in cut arguments": reply(
        None,
        call("write_file", '{"path": "n.md", "content": "' + "check the log " * 60),
        finish="length",
    ),
    "one call many times": reply(None, *(call("read_file", {"path": "a"}, n) for n in range(7))),
    "marker flood": reply("<｜tool▁calls▁begin｜>" * 60, finish="length"),
    "emoji flood": reply("Great " + "🚀🎉" * 100, finish="length"),
}

STAYS_QUIET = {
    "asked to repeat": reply("hello " * 50, prompt="Repeat the word hello 50 times"),
    "asked to repeat in german": reply("Ich soll leise sein.\n" * 20, prompt="Wiederhole es 20 mal"),
    "song with a refrain": reply(
        "\n".join(f"We pass the {n},\nhey ho, the river's wide." for n in _NOUNS)
    ),
    "counting song": reply(
        "\n".join(f"{n} green crates on the shelf; take one down, {n - 1} are left." for n in range(20, 1, -1))
    ),
    "laughter": reply('"Ha ha ha ha ha ha ha ha!" laughed the giant.'),
    "laughter at the end": reply("And he laughed: ha ha ha ha ha ha ha ha ha ha"),
    "chinese laughter": reply("太好笑了" + "哈" * 30),
    "zeros": reply("```\n" + "00 " * 400 + "\n```"),
    "zeros without a fence": reply("00000000  " + "00 " * 200),
    "rule": reply("Title\n" + "=" * 200),
    "table rule": reply("| a | b |\n|" + "-" * 80 + "|" + "-" * 80 + "|"),
    "dots of a contents page": reply("Introduction " + "." * 90 + " 7"),
    "progress bar": reply("[" + "#" * 70 + "-" * 70 + "] 50%"),
    "array of zeros": reply('{"mask": [' + "0, " * 300 + "0]}"),
    "base64 of zeros": reply("```\n" + "A" * 400 + "==\n```"),
    "repeated csv cells": reply("a,b,c\n1" + ",NA" * 60),
    "identity matrix": reply("\n".join(" ".join("1" if i == j else "0" for j in range(20)) for i in range(20))),
    "board": reply("#....#....#....\n" * 20),
    "log lines": reply("\n".join(f"10:00:{n:02} INFO job {1000 + n} done in {n * 7} ms" for n in range(50))),
    "test report": reply("\n".join(f"tests/a.py::test_{n} PASSED" for n in range(60))),
    "sql": reply("\n".join(f"INSERT INTO rooms VALUES ({n}, {n % 7});" for n in range(60))),
    "sql, cut": reply("\n".join(f"INSERT INTO rooms VALUES ({n}, {n % 7});" for n in range(60)), finish="length"),
    "csv, cut": reply("\n".join(f"{n},part-{n:03},{n * 3}.50" for n in range(80)), finish="length"),
    "nops": reply("```asm\n" + "nop\n" * 30 + "ret\n```"),
    "list of one verb": reply("\n".join(f"- [ ] Check the {n}" for n in _NOUNS)),
    "todo argument": reply(
        None,
        call("write_file", {"path": "t", "content": "\n".join(f"- [ ] step {n}" for n in range(40))}),
    ),
    "many different calls": reply(None, *(call("read_file", {"path": f"m{n}"}, n) for n in range(12))),
    "frames of a stack, the last ones alike": reply(
        "The report ends so:\n==15==    at 0x9: main (app.cc:3)"
        + "\n==15==    by 0x12F68A3: ??? (in /home/user/valgrind/node-v12.14.1-linux-x64/bin/node)" * 5
    ),
    "an option that several programs have": reply(
        "Options:\n-a                      everything"
        + "\n-v, --version           tell what release of the program this is, and stop there" * 4
    ),
    "cells of a web page": reply(
        "<table><tr>" + "<td title='5.02' class='pair'>÷</td><td title='5.02' class='pair'>÷</td>" * 12
    ),
    "badges": reply('<p><a href="https://example.org/a"><img src="https://example.org/badge/licence-mit.svg"></a></p>\n' * 3),
    "white in a dump of colours": reply("The last rows:\n1a1a23 0d0d43 474772 ededef" + " ffffff" * 30),
    "ones in a dump of bytes": reply("00000010: 0d0a 1b2c ededef" + " ffff" * 16),
    "names of no sign": reply("/A /B /C /fi /fl" + " /.notdef" * 16),
    "a message that a catalogue has four times": reply(
        "Install the package.\n" + "\n".join(["Do not do this before you are sure that it is safe to do, and never as root."] * 4)
    ),
    "a row of one constant": reply("a = 1, 2, 3, 4\nfixed = 0, 0, 0, 0\nvalidate TRUE, FALSE" + ", TRUE" * 15),
    "a call tried again": reply(None, *(call("read_file", {"path": "a"}, n) for n in range(3))),
    "said thrice": reply("Location, location, location."),
    "dna": reply("```\n" + "ACGT" * 100 + "\n```"),
    "indentation": reply("a:\n" + " " * 200 + "b"),
    "closing tags": reply("<div>" * 30 + "x" + "</div>" * 30),
    "closing brackets": reply("f(" * 40 + "x" + ")" * 40),
    "loop that recovers": reply("na " * 30 + "Batman is the hero of the town, and of this answer."),
    "long honest answer": reply(
        " ".join(f"Step {n}: the {_NOUNS[n % 10]} of part {n} holds {n * n} items." for n in range(30))
    ),
}  # fmt: skip


@pytest.mark.parametrize("exchange", FIRES.values(), ids=FIRES)
def test_fires(exchange: Exchange) -> None:
    assert "repetition_loop" in labels(exchange)


@pytest.mark.parametrize("exchange", STAYS_QUIET.values(), ids=STAYS_QUIET)
def test_stays_quiet(exchange: Exchange) -> None:
    assert "repetition_loop" not in labels(exchange)
