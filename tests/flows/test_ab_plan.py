"""`ab plan`: the contract's document, the lines for a person, and refusals."""

from __future__ import annotations

import json

import pytest

from dsv4doctor.cli.ab_plan import ab_plan
from dsv4doctor.errors import UsageError
from dsv4doctor.flows.ab_plan import PlanAsk, plan_sessions


def test_the_document_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert ab_plan(p0=0.18, p1=0.01, as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["command"], document["exit_code"], document["findings"]) == ("ab", 0, [])
    sessions = document["ab"]["plan"]["sessions_per_arm"]
    assert {"fixed", "sequential_mean", "sequential_p95"} <= set(sessions)
    assert all(isinstance(number, int) for number in sessions.values())
    assert sessions["fixed"] == 43


def test_backwards(capsys: pytest.CaptureFixture[str]) -> None:
    assert ab_plan(p0=0.18, sessions=33) == 0
    printed = capsys.readouterr().out
    assert "33 sessions an arm" in printed
    assert "not even 0" in printed
    assert "at least" in printed


def test_both_ways_at_once() -> None:
    answer = plan_sessions(PlanAsk(p0=0.15, p1=0.02, sessions=120))
    assert answer.sessions_per_arm is not None
    assert answer.detectable is not None
    assert any("69" in line for line in answer.lines)
    assert answer.equivalence_sessions > 10_000


def test_the_same_seed_gives_the_same_plan() -> None:
    ask = PlanAsk(p0=0.15, p1=0.02, seed=7)
    assert plan_sessions(ask) == plan_sessions(ask)


@pytest.mark.parametrize(
    "ask",
    [
        PlanAsk(p0=0.1),
        PlanAsk(p0=0.1, p1=0.1),
        PlanAsk(p0=1.1, p1=0.1),
        PlanAsk(p0=0.1, p1=0.2, margin=0.0),
        PlanAsk(p0=0.1, p1=0.2, power=1.0),
        PlanAsk(p0=0.1, sessions=0),
        PlanAsk(p0=0.1, sessions=10, alpha=2.0),
    ],
)
def test_what_cannot_be_planned_is_refused(ask: PlanAsk) -> None:
    with pytest.raises(UsageError) as caught:
        plan_sessions(ask)
    assert caught.value.hint
