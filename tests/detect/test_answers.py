"""What assistants write all day, in forty languages and many layouts, is clean: with its own
request, with another, without one, as content, in parts and as an argument of a call."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders_detect import call, labels, reply

# Blocks of a request and its answer.
_BLOCKS = re.split(r"(?m)^@@ ", (Path(__file__).parent / "answers.txt").read_text("utf-8"))[1:]
ANSWERS = {head: body.strip("\n") for head, _, body in (b.partition("\n") for b in _BLOCKS)}
OTHER = "Can you give me an example?"
# Lists of signs: sound where somebody asked for them.
ASKED_FOR = ("Which special characters can I use in the app's title?",)


@pytest.mark.parametrize("prompt", ANSWERS)
def test_an_answer_is_clean(prompt: str) -> None:
    answer = ANSWERS[prompt]
    parts = [part for part in answer.split("\n\n") if len(part) > 60]
    for text in {answer, *parts}:
        asked = [prompt] if prompt in ASKED_FOR else [prompt, OTHER, None]
        for other in asked:
            assert labels(reply(text, prompt=other)) == ["clean"], (other, text)
            written = reply(None, call("write_file", {"path": "a", "content": text}), prompt=other)
            assert labels(written) == ["clean"], (other, text)
