"""Every symptom there is, and the judgement over all of them. Adding one: write its module, add it
here."""

from __future__ import annotations

from collections.abc import Sequence

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
from dsv4doctor.detect.subject import Subject, look_at_all
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
_CLEAN = Judgement(primary=Label.CLEAN)


def symptoms(exchange: Exchange) -> list[Seen]:
    """Everything the detectors see in one exchange, the most primary first."""
    return _symptoms_of_all((exchange,))[0]


def judge(exchange: Exchange) -> Judgement:
    """What one response is. Pure: the same exchange gives the same judgement, and none raises."""
    return judge_all((exchange,))[0]


def judge_all(exchanges: Sequence[Exchange]) -> list[Judgement]:
    """What each of the responses is, in their order; each one's judgement is that of `judge`.

    Some dozens at a time cost a fifth less CPU than one by one.
    """
    return [_judgement(seen) if seen else _CLEAN for seen in _symptoms_of_all(exchanges)]


def _symptoms_of_all(exchanges: Sequence[Exchange]) -> list[list[Seen]]:
    subjects = [Subject(exchange) for exchange in exchanges]
    if len(subjects) > 1:
        look_at_all(subjects)
    every: list[list[Seen]] = [[] for _ in subjects]
    # Detector by detector, so that the code and the tables of one stay in the processor's caches.
    replies = [(s, s.hints, seen) for s, seen in zip(subjects, every, strict=True)]
    for detector in DETECTORS:
        detect, needed = detector.detect, detector.hints
        for subject, hints, seen in replies:
            if hints & needed:
                seen.extend(detect(subject))
    return [in_order(seen) if seen else seen for seen in every]


def _judgement(seen: list[Seen]) -> Judgement:
    labels = tuple(dict.fromkeys(item.label for item in seen))
    return Judgement(
        primary=labels[0],
        also=labels[1:],
        evidence=tuple(
            Evidence(where=item.where, what=f"{item.label.value}: {item.what}") for item in seen
        ),
        corrupted=any(item.corrupts for item in seen),
    )
