"""Every symptom there is, and the judgement over all of them. Adding one: write its module, add it
here."""

from __future__ import annotations

from dsv4doctor.detect import (
    canary_mismatch,
    dsml_leak,
    empty,
    foreign_content,
    malformed_arguments,
    misplaced_reasoning,
    missing_tool_call,
    repetition_loop,
    schema_violation,
    special_token_leak,
    token_salad,
    truncated,
    unknown_tool,
)
from dsv4doctor.detect.detector import Detector, Seen
from dsv4doctor.detect.primary import in_order
from dsv4doctor.detect.subject import Subject
from dsv4doctor.exchange import Exchange
from dsv4doctor.finding import Evidence
from dsv4doctor.label import Judgement, Label

DETECTORS: tuple[Detector, ...] = (
    unknown_tool.DETECTOR,
    dsml_leak.DETECTOR,
    special_token_leak.DETECTOR,
    malformed_arguments.DETECTOR,
    repetition_loop.DETECTOR,
    foreign_content.DETECTOR,
    schema_violation.DETECTOR,
    token_salad.DETECTOR,
    canary_mismatch.DETECTOR,
    missing_tool_call.DETECTOR,
    misplaced_reasoning.DETECTOR,
    truncated.DETECTOR,
    empty.DETECTOR,
)


def symptoms(exchange: Exchange) -> list[Seen]:
    """Everything the detectors see in one exchange, the most primary first."""
    subject = Subject(exchange)
    return in_order(seen for detector in DETECTORS for seen in detector.detect(subject))


def judge(exchange: Exchange) -> Judgement:
    """What one response is. Pure: the same exchange gives the same judgement, and none raises."""
    seen = symptoms(exchange)
    if not seen:
        return Judgement(primary=Label.CLEAN)
    labels = tuple(dict.fromkeys(item.label for item in seen))
    return Judgement(
        primary=labels[0],
        also=labels[1:],
        evidence=tuple(
            Evidence(where=item.where, what=f"{item.label.value}: {item.what}") for item in seen
        ),
        corrupted=any(item.corrupts for item in seen),
    )
