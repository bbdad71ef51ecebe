"""Canaries: the right value, the own earlier one, another session's, nobody's, none at all."""

from __future__ import annotations

from typing import Any

import pytest
from builders_detect import call, reply, shown, tool

from dsv4doctor.canary import CanaryOwner, encode_canary
from dsv4doctor.detect import judge
from dsv4doctor.label import Label

KEY = 977
SESSION, TURN = 5, 3
TICKET = tool("open_ticket", ["code"], code="string", weight="number")
PASSAGE = "The ferry left the north pier at nine, and nobody on deck had seen the light. " * 2


def _code(session: int, turn: int, slot: int = 0) -> str:
    return encode_canary(KEY, CanaryOwner(session=session, turn=turn, slot=slot))


OWN = _code(SESSION, TURN)


def _driven(content: Any, *calls: Any, canaries: list[dict[str, Any]], **more: Any) -> Any:
    return judge(
        reply(
            content,
            *calls,
            tools=[TICKET],
            tool_choice="required" if canaries and canaries[0].get("tool") else "auto",
            canaries=canaries,
            canary_key=KEY,
            session=SESSION,
            turn=TURN,
            **more,
        )
    )


def _wants(value: Any, argument: str = "code") -> list[dict[str, Any]]:
    place = {"tool": "open_ticket", "call_index": 0, "argument": argument}
    return [{"label": "amber-heron-3", "value": value, "planted_turn": 1, **place}]


def _asks(arguments: Any) -> Any:
    return _driven(None, call("open_ticket", arguments), canaries=_wants(OWN))


def test_the_right_value_is_clean() -> None:
    assert _asks({"code": OWN}).primary is Label.CLEAN


def test_the_sessions_own_earlier_value_is_a_stale_read() -> None:
    judgement = _asks({"code": _code(SESSION, 1)})
    assert judgement.primary is Label.CANARY_MISMATCH
    assert "stale read" in shown(judgement)
    assert "turn 1" in shown(judgement)
    assert judgement.corrupted


def test_another_sessions_value_is_foreign() -> None:
    judgement = _asks({"code": _code(41, 2)})
    assert judgement.primary is Label.FOREIGN_CONTENT
    assert "session 41" in shown(judgement)
    assert Label.CANARY_MISMATCH in judgement.also


@pytest.mark.parametrize("wrong", ["K7F3-QM2X-9DTW", OWN[:-1] + "Z", OWN.lower(), "", OWN + " "])
def test_any_other_value_is_nobodys(wrong: str) -> None:
    judgement = _asks({"code": wrong})
    assert judgement.primary is Label.CANARY_MISMATCH
    assert "nobody's value" in shown(judgement) or "earlier" in shown(judgement) or OWN in wrong


def test_foreign_codes_are_seen_anywhere() -> None:
    other = _code(9, 0)
    for judgement in (
        _driven(f"Noted: {other}", canaries=[]),
        _driven("Noted.", reasoning=f"It was {other}.", canaries=[]),
        _driven(None, call("open_ticket", '{"code": "' + other), canaries=_wants(OWN)),
    ):
        assert Label.FOREIGN_CONTENT in judgement.labels


@pytest.mark.parametrize(
    ("wanted", "got", "same"), [(7, 7.0, True), (1, True, False), (-12.75, "-12.75", False)]
)
def test_numbers_compare_as_json_does(wanted: Any, got: Any, same: bool) -> None:
    judgement = _driven(
        None, call("open_ticket", {"code": "x", "weight": got}), canaries=_wants(wanted, "weight")
    )
    assert (Label.CANARY_MISMATCH not in judgement.labels) is same


def test_a_call_that_never_came_is_missing_and_corrupted() -> None:
    for judgement in (
        _driven("It is done.", canaries=_wants(OWN)),
        _driven("It is done.", canaries=_wants(OWN), finish="length"),
        _driven(None, canaries=_wants(OWN)),
    ):
        assert Label.MISSING_TOOL_CALL in judgement.labels
        assert judgement.corrupted


def test_another_call_or_one_too_many_is_a_mismatch() -> None:
    extra = call("open_ticket", {"code": OWN}, 2)
    judgement = _driven(None, call("open_ticket", {"code": OWN}), extra, canaries=_wants(OWN))
    assert judgement.primary is Label.CANARY_MISMATCH


def test_a_passage_has_to_be_there_and_little_else() -> None:
    wanted = [{"label": "p", "value": PASSAGE.strip(), "planted_turn": 0}]
    assert _driven(PASSAGE, canaries=wanted).primary is Label.CLEAN
    assert _driven(f'"{PASSAGE.strip()}"', canaries=wanted).primary is Label.CLEAN
    damaged = _driven(PASSAGE.replace("north", "south"), canaries=wanted)
    assert damaged.primary is Label.CANARY_MISMATCH
    assert "leaves the planted passage after 19 characters" in shown(damaged)
    longer = _driven(
        PASSAGE + "And then the harbour master told another tale. " * 8, canaries=wanted
    )
    assert longer.corrupted


def test_a_cut_call_with_canaries_is_corrupted() -> None:
    judgement = _driven(
        None, call("open_ticket", '{"code": "K7'), canaries=_wants(OWN), finish="length"
    )
    assert judgement.corrupted


def test_values_as_planted_are_never_salad() -> None:
    odd = "北の港 три שלום नमस्ते {CODE} </b> <|x|>"
    canaries = _wants(odd)
    judgement = _driven(None, call("open_ticket", {"code": odd}), canaries=canaries)
    assert judgement.primary is Label.CLEAN


def _planted() -> list[dict[str, Any]]:
    return [{"label": "amber-heron-3", "value": PASSAGE.strip(), "planted_turn": 1}]


def test_a_right_beginning_cut_by_the_requests_own_limit_is_no_corruption() -> None:
    judgement = _driven(
        PASSAGE[:40], canaries=_planted(), finish="length", max_tokens=10, completion_tokens=10
    )
    assert judgement.primary is Label.TRUNCATED
    assert not judgement.corrupted


@pytest.mark.parametrize(
    ("content", "finish"), [(PASSAGE[:40], "stop"), (PASSAGE[:30] + "zzz", "length")]
)
def test_a_beginning_that_stops_by_itself_or_goes_wrong_is(content: str, finish: str) -> None:
    judgement = _driven(
        content, canaries=_planted(), finish=finish, max_tokens=10, completion_tokens=10
    )
    assert judgement.primary is Label.CANARY_MISMATCH
    assert judgement.corrupted
