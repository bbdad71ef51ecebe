"""Which of several labels is the primary one: the cause before its consequences.

The order is written once, here, and documented in docs/rules.md. It follows two thoughts: what
says most about where the damage arose comes first, and a symptom that another one explains comes
after it.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsv4doctor.detect.detector import Seen
from dsv4doctor.label import Label

# (label, only where it leads, why it stands here)
ORDER: tuple[tuple[Label, bool, str], ...] = (
    (
        Label.REPETITION_LOOP,
        True,
        "a flood that fills the reply: whatever it repeats is only its stuff",
    ),
    (Label.UNKNOWN_TOOL, False, "the name is the one word of a call that must be exact"),
    (Label.DSML_LEAK, False, "leaked markup explains a missing call, bad arguments and odd text"),
    (Label.SPECIAL_TOKEN_LEAK, False, "a control token explains what follows it"),
    (Label.TRUNCATED, True, "a cut in the middle of a call explains its broken arguments"),
    (Label.MALFORMED_ARGUMENTS, False, "a broken object explains any odd text inside it"),
    (Label.REPETITION_LOOP, False, "a loop explains the cut and the missing rest"),
    (
        Label.FOREIGN_CONTENT,
        False,
        "somebody else's text is the gravest thing a sound form can hold",
    ),
    (Label.SCHEMA_VIOLATION, False, "the form is wrong, so its values need no look"),
    (Label.TOKEN_SALAD, False, "salad explains the cut, the emptiness and the wrong value"),
    (Label.CANARY_MISMATCH, False, "right form, wrong value"),
    (Label.MISSING_TOOL_CALL, True, "a call demanded, promised or written as text, and not made"),
    (Label.MISPLACED_REASONING, False, "explains an empty content"),
    (Label.TRUNCATED, False, "explains an empty content"),
    (Label.EMPTY, False, "nothing to be seen"),
    (Label.MISSING_TOOL_CALL, False, "a call that was only announced"),
)


def rank(seen: Seen) -> int:
    """The place of a symptom in the order; lower is more primary."""
    for place, (label, only_leading, _why) in enumerate(ORDER):
        if seen.label is label and (seen.leads or not only_leading):
            return place
    return len(ORDER)


def in_order(seen: Iterable[Seen]) -> list[Seen]:
    """The symptoms, the most primary first; equal ones stay as they came."""
    return sorted(seen, key=rank)
