"""What of a turn is judged: the request as it was really sent."""

from __future__ import annotations

from dsv4doctor.flows.driving import as_sent
from dsv4doctor.scenario import TurnKind
from dsv4doctor.session import Turn

TURN = Turn(
    turn=0,
    kind=TurnKind.TOOL_CALL,
    new_messages=(),
    expected_reply={},
    canaries=(),
    prompt="p",
    max_tokens=512,
    tool_choice="required",
)


def test_an_extra_body_that_replaces_limits_is_what_was_asked() -> None:
    sent = as_sent(TURN, {"max_tokens": 8, "tool_choice": "auto", "top_k": 1})
    assert (sent.max_tokens, sent.tool_choice) == (8, "auto")


def test_other_extras_leave_the_turn_alone() -> None:
    assert as_sent(TURN, {"top_k": 1}) is TURN
