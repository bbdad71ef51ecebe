"""Settings applied to a launch: exactly the flags and variables meant, and nothing beside them."""

from __future__ import annotations

import pytest

from dsv4doctor.experiment.arms import CASE_ARMS, parse_arm
from dsv4doctor.experiment.factors import SERVER_FACTORS, Setting, Side
from dsv4doctor.experiment.launch import (
    LaunchChange,
    apply_to_argv,
    apply_to_environment,
    launch_change,
)

BASE = ["python", "-m", "sglang.launch_server", "--model-path", "m", "--tp-size", "8"]


def _argv(settings: str, *more: str) -> list[str]:
    return apply_to_argv([*BASE, *more], launch_change(parse_arm(f"a:{settings}").settings))


@pytest.mark.parametrize(
    ("settings", "more", "expected"),
    [
        ("hicache=on", [], ["--enable-hierarchical-cache"]),
        ("hicache=on", ["--enable-hierarchical-cache"], ["--enable-hierarchical-cache"]),
        ("hicache=off", ["--enable-hierarchical-cache", "--port", "1"], ["--port", "1"]),
        ("hicache=off", ["--enable-hicache"], []),
        ("overlap=off", [], ["--disable-overlap-schedule"]),
        ("overlap=on", ["--disable-overlap-schedule"], []),
        ("spec=off", ["--speculative-algorithm", "EAGLE", "--speculative-num-steps=3"], []),
        ("spec=on", ["--speculative-algorithm", "EAGLE"], ["--speculative-algorithm", "EAGLE"]),
        ("index_k=fp4", [], ["--enable-deepseek-v4-fp4-indexer"]),
        ("index_k=bf16", ["--enable-deepseek-v4-fp4-indexer"], []),
        ("--page-size=64", ["--page-size", "256", "--port=1"], ["--port=1", "--page-size", "64"]),
        ("--page-size=64", ["--page-size=256"], ["--page-size", "64"]),
        ("--page-size=unset", ["--page-size", "256"], []),
        ("--disable-radix-cache=on", [], ["--disable-radix-cache"]),
        ("concurrency=60", ["--port", "1"], ["--port", "1"]),
        ("cuda_graph=on", ["--disable-cuda-graph", "behind"], ["behind"]),
    ],
)
def test_flags(settings: str, more: list[str], expected: list[str]) -> None:
    assert _argv(settings, *more) == [*BASE, *expected]


def test_a_value_that_looks_negative_goes_with_its_flag() -> None:
    assert _argv("--seed-x=unset", "--seed-x", "-1", "--port", "1") == [*BASE, "--port", "1"]


def test_variables() -> None:
    change = launch_change(
        parse_arm("a:index_k=bf16,early_send=off,war_barrier=default,SGLANG_X=1").settings
    )
    before = {"PATH": "/bin", "SGLANG_FORCE_COARSE_WAR_BARRIER": "1"}
    assert apply_to_environment(before, change) == {
        "PATH": "/bin",
        "SGLANG_DSV4_BF16_INDEX_K": "1",
        "SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX": "0",
        "SGLANG_X": "1",
    }


def test_a_deployment_says_what_bf16_is() -> None:
    own = {"bf16": LaunchChange(flags=(("--index-k-dtype", "bf16"),))}
    settings = parse_arm("a:index_k=bf16").settings
    assert apply_to_argv([], launch_change(settings, own)) == ["--index-k-dtype", "bf16"]


def test_arms_of_the_case_launch_differently() -> None:
    launches = set()
    for arm in CASE_ARMS:
        change = launch_change(arm.settings)
        environment = apply_to_environment({}, change)
        launches.add((tuple(apply_to_argv(BASE, change)), tuple(environment.items())))
    assert len(launches) == 4


def test_every_server_factor_can_be_launched() -> None:
    for factor in SERVER_FACTORS:
        for value in factor.values:
            launch_change([Setting(factor=factor.name, value=value, side=Side.SERVER)])
