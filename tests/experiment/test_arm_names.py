"""Arms as people write them, the case's own experiment, and what a target refuses."""

from __future__ import annotations

import pytest

from dsv4doctor.errors import UsageError
from dsv4doctor.experiment.arms import (
    CASE_ARMS,
    ArmKind,
    Honoured,
    crossing,
    parse_arm,
    parse_arms,
    parse_run,
    refuse_unhonoured,
)


def test_no_arms_are_the_experiment_of_the_case() -> None:
    arms = parse_arms([])
    assert arms == CASE_ARMS
    assert [arm.name for arm in arms] == ["bf16-on", "bf16-off", "fp8-on", "fp8-off"]
    assert arms[0].factors == {"index_k": "bf16", "hicache": "on"}
    assert all(arm.is_relaunched for arm in arms)


def test_settings_endpoints_and_runs() -> None:
    settings = parse_arm("many:concurrency=60,hicache=on")
    assert (settings.kind, settings.factors) == (
        ArmKind.SETTINGS,
        {"concurrency": "60", "hicache": "on"},
    )
    endpoint = parse_arm("prod=http://10.0.0.4:30000/v1?a=b")
    assert (endpoint.kind, endpoint.name) == (ArmKind.ENDPOINT, "prod")
    assert endpoint.base_url == "http://10.0.0.4:30000/v1?a=b"
    run = parse_run("before=reports/20261129T104500Z-repro-x")
    assert (run.kind, run.run_dir) == (ArmKind.RUN, "reports/20261129T104500Z-repro-x")
    assert not any(arm.is_relaunched for arm in (endpoint, run))


def test_an_arm_without_settings_is_the_target_as_it_is() -> None:
    arm = parse_arm("baseline")
    assert (arm.kind, arm.settings, arm.is_relaunched) == (ArmKind.SETTINGS, (), False)


def test_two_arms_alike_are_allowed() -> None:
    """An A/A run is how an experiment is tested."""
    assert len(parse_arms(["a:hicache=on", "b:hicache=on"])) == 2


@pytest.mark.parametrize(
    ("arms", "runs", "named"),
    [
        (["a:hicache=on"], [], "one arm"),
        (["a", "a"], [], "called 'a'"),
        (["a", "b=http://h:1"], [], "different kinds"),
        (["a=http://h:1"], ["b=run"], "different kinds"),
        (["a:hicache=on,hicache=off", "b"], [], "twice"),
        (["a:", "b"], [], "factor=value"),
        (["a b", "c"], [], "arm name"),
        (["../x", "c"], [], "arm name"),
        (["=http://h:1", "c"], [], "arm name"),
        (["", "c"], [], "arm name"),
        (["a=", "b=http://h:1"], [], "nothing behind"),
        ([], ["before", "after=x"], "no run directory"),
        ([], ["before=", "after=x"], "nothing behind"),
    ],
)
def test_what_cannot_be_used_is_named(arms: list[str], runs: list[str], named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        parse_arms(arms, runs)
    assert caught.value.hint


LAB = Honoured(
    target="the lab",
    factors={
        "index_k": frozenset({"fp8", "bf16", "fp4"}),
        "hicache": frozenset({"on", "off"}),
        "concurrency": None,
    },
)


def test_what_a_target_honours_passes() -> None:
    refuse_unhonoured(CASE_ARMS, LAB)
    refuse_unhonoured(parse_arms(["a:concurrency=1", "b:concurrency=60"]), LAB)
    anything = Honoured(target="h", factors={}, any_flag=True, any_variable=True)
    refuse_unhonoured(parse_arms(["a:--page-size=64", "b:SGLANG_X=1"]), anything)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a:spec=on", "the lab cannot honour spec=on of arm a"),
        ("a:--page-size=64", "--page-size=64"),
        ("a:SGLANG_X=1", "SGLANG_X=1"),
    ],
)
def test_what_a_target_cannot_honour_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        refuse_unhonoured(parse_arms([text, "b"]), LAB)


def test_a_value_that_a_target_lacks_is_refused_with_those_it_has() -> None:
    upstream = Honoured(target="this build", factors={"index_k": frozenset({"fp8", "fp4"})})
    with pytest.raises(UsageError, match="index_k=bf16") as caught:
        refuse_unhonoured(CASE_ARMS, upstream)
    assert "fp4 or fp8" in caught.value.hint


def test_the_case_crosses_two_factors() -> None:
    found = crossing(CASE_ARMS)
    assert found is not None
    assert found.factors == ("index_k", "hicache")
    assert found.levels == (("bf16", "fp8"), ("on", "off"))
    assert found.cells["bf16", "on"] == "bf16-on"
    assert len(found.cells) == 4


def test_a_factor_that_all_arms_share_is_no_part_of_the_crossing() -> None:
    arms = parse_arms(
        [
            f"{cache}{order}:cache={cache},overlap={order},concurrency=60"
            for cache in ("hit", "miss")
            for order in ("on", "off")
        ]
    )
    found = crossing(arms)
    assert found is not None
    assert found.factors == ("cache", "overlap")


@pytest.mark.parametrize(
    "arms",
    [
        ["a:hicache=on", "b:hicache=off"],
        ["a:hicache=on", "b:hicache=off", "c:overlap=on", "d:overlap=off"],
        [
            "a:hicache=on,spec=on",
            "b:hicache=on,spec=on",
            "c:hicache=off,spec=on",
            "d:hicache=off,spec=off",
        ],
        ["a=h:1", "b=h:2", "c=h:3", "d=h:4"],
    ],
)
def test_other_arms_cross_nothing(arms: list[str]) -> None:
    assert crossing(parse_arms(arms)) is None
