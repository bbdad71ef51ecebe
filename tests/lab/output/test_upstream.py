"""The lab's parser against SGLang's own, from released wheels: the same on thousands of texts.

Healthy calls and damaged ones (characters lost, doubled, the end cut off), in deltas of any size.
Groups B and C must agree everywhere. Group A may differ where a nested value is damaged: which of
two errors upstream's JSON completer raises there decides whether it leaks.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dsv4doctor.lab.output.behaviour import behaviour_of
from dsv4doctor.lab.output.complete import parse_complete
from dsv4doctor.lab.output.markup import Parsed
from dsv4doctor.lab.output.streaming import stream_parser

pytestmark = pytest.mark.upstream

TOOLS = ["lookup", "store"]
CASES = 6000
OPEN, CLOSE = "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"


def _parameter(name: str, value: str, string: str = "true") -> str:
    return f'<｜DSML｜parameter name="{name}" string="{string}">{value}</｜DSML｜parameter>\n'


def _invoke(name: str, body: str) -> str:
    return f'<｜DSML｜invoke name="{name}">\n{body}</｜DSML｜invoke>\n'


GOOD = _invoke("lookup", _parameter("code", "K7F3-QM2X") + _parameter("n", "-12.75", "false"))
NESTED = _invoke("store", _parameter("l", '[1, {"a": "b", "c": [true]}]', "false"))
TEXTS = [
    "hello world",
    f"hello\n\n{OPEN}\n{GOOD}{CLOSE}",
    OPEN + GOOD + _invoke("store", _parameter("x", "apple parameter invoke")) + CLOSE,
    OPEN + NESTED + CLOSE,
    "hi\n\n" + OPEN + _invoke("lookup", _parameter("x", "hello world", "false")) + CLOSE,
    OPEN + _invoke("lookup", _parameter("x", "NaN", "false")) + CLOSE,
    f"p {GOOD} after",
    f"z <DSML｜tool_calls>\n{GOOD}{CLOSE}",
    OPEN + _invoke("lookup", '{"x": "y", "n": [1, 2, -3]}') + CLOSE,
    OPEN + _invoke("lookup", '{"x": }') + CLOSE,
    OPEN + _invoke("nope", _parameter("x", "  v ")) + CLOSE + OPEN + GOOD + CLOSE + " trailing",
    f'{OPEN}<｜DSML｜invoke name="lookup"/>{CLOSE}',
    "prose <｜ and more <",
]


def _damaged(text: str, dice: random.Random) -> str:
    for _ in range(dice.choice((0, 0, 1, 2, 3))):
        at = dice.randrange(len(text) + 1)
        what = dice.randrange(3)
        if what == 0:
            text = text[:at] + text[at + dice.randint(1, 6) :]
        elif what == 1:
            text = text[:at] + text[max(0, at - 8) :]
        else:
            text = text[: max(at, 1)]
    return text


def _cut(text: str, dice: random.Random) -> list[str]:
    deltas = []
    size = dice.choice((1, 2, 3, 5, 8, 20, 0, len(text)))
    while text:
        take = size or dice.randint(1, 9)
        deltas.append(text[:take])
        text = text[take:]
    return deltas


def _ours(deltas: list[str], group: str) -> dict[str, Any]:
    behaviour = behaviour_of(group)
    parser = stream_parser(behaviour)
    streamed = [_items(parser.feed(delta)) for delta in deltas]
    streamed.append(_items(parser.finish()))
    return {
        "complete": _items(parse_complete("".join(deltas), TOOLS, behaviour)),
        "streamed": streamed,
    }


def _items(parsed: Parsed) -> list[Any]:
    return [parsed.text, [[call.index, call.name, call.arguments] for call in parsed.calls]]


@pytest.fixture(scope="module")
def partial_json_parser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("partial-json-parser")
    _pip("install", "--no-deps", "--target", str(folder), "partial-json-parser")
    return folder


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "-q", *arguments], check=True, timeout=300)


@pytest.mark.parametrize(
    ("group", "version", "may_differ"),
    [("A", "0.5.17", CASES // 200), ("B", "0.5.20", 0), ("C", "0.5.22", 0)],
)
def test_agrees_with_sglang(
    group: str, version: str, may_differ: int, partial_json_parser: Path, tmp_path: Path
) -> None:
    _pip("download", "--no-deps", "--dest", str(tmp_path), f"sglang=={version}")
    with zipfile.ZipFile(next(tmp_path.glob("sglang-*.whl"))) as wheel:
        names = [name for name in wheel.namelist() if name.startswith("sglang/srt/function_call/")]
        wheel.extractall(tmp_path, names)
    dice = random.Random(17)
    cases = [_cut(_damaged(dice.choice(TEXTS), dice) or "x", dice) for _ in range(CASES)]
    ran = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("upstream_detector.py")),
            str(tmp_path),
            str(partial_json_parser),
        ],
        input=json.dumps({"tools": TOOLS, "cases": cases}),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    theirs = json.loads(ran.stdout)
    differing = [
        deltas
        for deltas, expected in zip(cases, theirs, strict=True)
        if json.loads(json.dumps(_ours(deltas, group))) != expected
    ]
    assert len(differing) <= may_differ, differing[:2]
