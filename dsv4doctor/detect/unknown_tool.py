"""A call to a tool that was not offered.

Seen: a name that is in none of the request's `tools`: a synonym, a piece of the right name, a
stray token before it, the word `function`, markup, nothing.
Why: the client cannot run it. A name that lost or gained a token is what a damaged cache entry
does to the one word that must be exact; another session's tool is foreign content.
Confirm: compare the name with `tools[].function.name`; a wholly foreign name is worth a look at
which other session offered it.
Source: https://github.com/sgl-project/sglang/issues/33397,
https://github.com/vllm-project/vllm/pull/41834.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsv4doctor.detect.detector import Detector, Seen
from dsv4doctor.detect.hints import CALLS
from dsv4doctor.detect.subject import Subject
from dsv4doctor.label import Label

_NAMES_SHOWN = 6


def detect(subject: Subject) -> Iterator[Seen]:
    offered = subject.tools
    for call in subject.calls:
        if call.name:
            if offered is None or call.name in offered:
                continue
            what = f"{call.name!r} is none of the offered tools ({_listing(offered)})"
        else:
            what = f"the call has no name: {call.call.name!r}"
        yield Seen(label=Label.UNKNOWN_TOOL, where=f"{call.where}.name", what=what)


def _listing(offered: dict[str, object] | object) -> str:
    names = list(offered) if isinstance(offered, dict) else []
    shown = ", ".join(names[:_NAMES_SHOWN])
    return f"{shown}, …" if len(names) > _NAMES_SHOWN else shown or "none"


DETECTOR = Detector(
    label=Label.UNKNOWN_TOOL,
    summary="a call to a tool that was not offered",
    detect=detect,
    hints=CALLS,
)
