"""Writes docs/rules.md from the docstrings of the detectors: `python docs/generate_rules.py`.

The text is the modules' own; nothing is said twice. A test compares the file with what this makes.
"""

# Long lines: patterns and prose that breaks would tear.
# ruff: noqa: E501

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from dsv4doctor.detect import DETECTORS, primary  # noqa: E402
from dsv4doctor.detect.detector import Detector  # noqa: E402

_PARTS = ("Seen", "Why", "Confirm", "Source")
_INTRODUCTION = """\
# Rules

Generated from the detectors' docstrings by `python docs/generate_rules.py`; do not edit.

A response gets one primary label and any number of further ones (`also`). `repro` and `scan` use exactly
these detectors. They read the reply and, where a record holds them, the request's last user message,
tools, tool choice, limit and canaries; nothing is sent anywhere. The rule id of a finding is the label in
upper case.

Corrupted is every response with a label, except where the label is named and no corruption: a call that
nothing forced (`missing_tool_call` under `auto`), and what the request's own `max_tokens` cut.
"""


def rendered() -> str:
    """The whole of docs/rules.md."""
    parts = [_INTRODUCTION, _order()]
    parts += [_section(detector) for detector in sorted(DETECTORS, key=lambda d: d.label.value)]
    return "\n".join(parts)


def _order() -> str:
    lines = ["## Which label is primary", "", str(primary.__doc__).split("\n\n", 1)[1].strip(), ""]
    lines += ["| | label | where it leads only | because |", "|---|---|---|---|"]
    for place, (label, leads, why) in enumerate(primary.ORDER, 1):
        lines.append(f"| {place} | `{label.value}` | {'yes' if leads else ''} | {why} |")
    return "\n".join(lines) + "\n"


def _section(detector: Detector) -> str:
    text = (sys.modules[detector.detect.__module__].__doc__ or "").strip()
    title, _, body = text.partition("\n\n")
    lines = [f"## {detector.label.rule}", "", title.replace("\n", " "), ""]
    for paragraph in _split(body):
        name, _, rest = paragraph.partition(": ")
        lines += [f"**{name}.** {' '.join(rest.split())}", ""]
    return "\n".join(lines)


def _split(body: str) -> list[str]:
    paragraphs: list[str] = []
    for line in body.splitlines():
        if line.startswith(tuple(f"{part}:" for part in _PARTS)):
            paragraphs.append(line)
        elif paragraphs:
            paragraphs[-1] += f" {line}"
    return paragraphs


if __name__ == "__main__":
    (ROOT / "docs" / "rules.md").write_text(rendered(), encoding="utf-8")
