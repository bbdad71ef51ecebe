"""Lines judged in batches: the same outcomes in the same order, however the lines are cut."""

from __future__ import annotations

import json

import pytest

from dsv4doctor.artifacts.logfiles import Line
from dsv4doctor.flows.scan_records import LineReader, Outcome, Unreadable, batches, judge_lines


def reply(content: str, **more: object) -> str:
    return json.dumps({**more, "response": {"content": content, "finish_reason": "stop"}})


def chunk(number: int, content: str, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return json.dumps({"id": f"s{number}", "object": "chat.completion.chunk", "choices": [choice]})


def choice(content: str) -> dict[str, object]:
    return {"message": {"content": content}, "finish_reason": "stop"}


TEXTS = [
    reply("The worker waits.", id="a", time=5),
    '{"torn": ',
    reply('<｜DSML｜invoke name="f">', id="b"),
    "",
    json.dumps({"response": None, "failure": {"kind": "timeout"}, "id": "c"}),
    chunk(1, "Half of "),
    reply("Between two pieces of a stream.", id="d", aborted=True),
    chunk(1, "a stream.", "stop"),
    "data: [DONE]",
    json.dumps({"choices": [choice("One."), choice("Two.")]}),
    '{"no": "reply"}',
]
LINES = [Line(number=at, raw=text.encode()) for at, text in enumerate(TEXTS, 1)]
LINES.append(Line(number=len(LINES) + 1, raw=b"", problem="longer than 16 MiB"))


def judged(size: int) -> list[Outcome]:
    reader = LineReader("log", ("id",))
    found = [o for at in range(0, len(LINES), size) for o in reader.judge(LINES[at : at + size])]
    return found + reader.finish(len(LINES))


@pytest.mark.parametrize("size", [1, 2, 3, 5, len(LINES)])
def test_the_cut_of_the_batches_changes_nothing(size: int) -> None:
    outcomes = judged(size)
    assert outcomes == judge_lines("log", LINES, ("id",))
    told = [
        (o.line, "unreadable" if isinstance(o, Unreadable) else o.judgement.primary.value)
        for o in outcomes
    ]
    assert told == [
        (1, "clean"), (2, "unreadable"), (3, "dsml_leak"), (5, "timeout"), (7, "clean"),
        (9, "clean"), (10, "clean"), (10, "clean"), (11, "unreadable"), (12, "unreadable"),
    ]  # fmt: skip
    assert [o.id for o in outcomes if not isinstance(o, Unreadable)][:4] == ["a", "b", "c", "d"]


def test_batches_hold_so_many_bytes_and_lines() -> None:
    lines = [Line(number=at, raw=b"x" * 10) for at in range(10)]
    assert [len(batch) for batch in batches(lines, 1000, 4)] == [4, 4, 2]
    assert [len(batch) for batch in batches(lines, 25, 100)] == [3, 3, 3, 1]
    assert [line.number for batch in batches(lines, 25, 4) for line in batch] == [*range(10)]
