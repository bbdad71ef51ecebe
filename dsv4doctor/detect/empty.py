"""Nothing that could be seen: no text and no call.

Seen: `content` null, empty, blank or made of zero-width characters, and no tool call.
Why: a client shows a blank bubble and an agent stops. Newer parsers drop a damaged block silently,
so that this is all that is left of it.
Confirm: count `usage.completion_tokens`: many tokens and no text means that the server threw them
away; then look for "Dropping malformed DeepSeek invoke" in its log.
Source: https://github.com/ROCm/ATOM/issues/1417, https://github.com/sgl-project/sglang/pull/39435.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsv4doctor.detect.detector import Detector, Seen, span
from dsv4doctor.detect.subject import Subject
from dsv4doctor.label import Label


def detect(subject: Subject) -> Iterator[Seen]:
    if subject.calls or subject.has_visible_content:
        return
    text = subject.content.text
    what = f"only invisible characters, {span(text, 0, len(text))}" if text else "no text, no call"
    own_budget = subject.finish == "length" and bool(subject.reasoning.text)
    yield Seen(label=Label.EMPTY, where="content", what=what, corrupts=not own_budget)


DETECTOR = Detector(label=Label.EMPTY, summary="neither visible text nor a call", detect=detect)
