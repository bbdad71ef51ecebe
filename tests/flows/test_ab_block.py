"""What a block's counts mean for the statistics, and what an arm's factors do to its prompts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dsv4doctor.artifacts.catalog import load_scenario
from dsv4doctor.deploy.document import Deployment, HostEntry, LauncherKind, Meaning, Role, RoleKind
from dsv4doctor.deploy.launch import Launch
from dsv4doctor.deploy.site import Site
from dsv4doctor.experiment.arms import parse_arm
from dsv4doctor.experiment.proofs import IMMUNE_TOKENS
from dsv4doctor.flows.ab_block import client_plan, session_outcomes
from dsv4doctor.flows.ab_changes import changed
from dsv4doctor.flows.ab_setup import AbPlan, parse_arms, resumed
from dsv4doctor.flows.tally import Tally
from dsv4doctor.scenario import History, TurnKind


def record(session: int, turn: int, **fields: Any) -> dict[str, Any]:
    return {
        "session": session, "turn": turn, "kind": "tool_call", "aborted": False, "failure": None,
        "corrupted": False, "primary": "clean", "also": [], "stream": False, "ttft_ms": None,
        "itl_ms": [], "e2e_latency_ms": 1.0, "sent_unix": 1.0, "completion_tokens": 1,
        "prompt_tokens": 100, "cached_tokens": None, **fields,
    }  # fmt: skip


FAILED = {"failure": {"kind": "timeout", "message": "", "http_status": None}}
CORRUPTED = {"corrupted": True, "primary": "dsml_leak"}


@pytest.mark.parametrize(
    ("turns", "outcome"),
    [
        (({}, {}), False),
        (({}, CORRUPTED), True),
        ((CORRUPTED, FAILED), True),
        (({}, FAILED), None),
        (({},), None),
        ((), None),
        (({}, {"aborted": True}), False),
    ],
    ids=["clean", "corrupted", "corrupted then failed", "clean then failed", "cut short",
         "never sent", "aborted by us at its end"],
)  # fmt: skip
def test_a_session_counts_as_what_was_seen_of_it(
    turns: tuple[dict[str, Any], ...], outcome: bool | None
) -> None:
    tally = Tally()
    for turn, fields in enumerate(turns):
        tally.add(record(0, turn, **fields))
    assert session_outcomes(tally, 1, 2) == (outcome,)


def plan_of(*arms: str) -> AbPlan:
    return AbPlan(
        arms=parse_arms(arms), scenario=load_scenario("tool-calls"), seed=1, output_dir=Path("x")
    )


def test_client_side_factors_change_what_is_sent() -> None:
    plan = plan_of("a", "b")

    def scenario(settings: str):
        return client_plan(plan, parse_arm(f"a:{settings}"), 7).scenario

    last = scenario("context=short").context_tokens[1] * 1.1
    assert last <= IMMUNE_TOKENS
    assert scenario("context=long") == plan.scenario
    short = replace(plan, scenario=load_scenario("short-context"))
    least = client_plan(short, parse_arm("a:context=long"), 7).scenario.context_tokens[1] * 0.9
    assert least > IMMUNE_TOKENS
    assert TurnKind.ABORTED not in scenario("aborts=off").turn_kinds
    assert TurnKind.ABORTED in scenario("aborts=on").turn_kinds
    assert scenario("stream=off").stream is False
    assert scenario("history=live").history is History.LIVE
    assert scenario("temperature=0.7").sampling.temperature == 0.7
    assert client_plan(plan, parse_arm("a:concurrency=3"), 7).max_concurrency == 3
    assert client_plan(plan, parse_arm("a:concurrency=3"), 7).seed == 7


def test_only_the_roles_that_take_a_factor_are_changed() -> None:
    def role(name: str, kind: RoleKind, factors: tuple[str, ...] | None = None) -> Role:
        return Role(
            name=name, kind=kind, host="h", launcher=LauncherKind.COMMAND, url="http://h:1",
            factors=factors,
        )  # fmt: skip

    roles = (
        role("prefill", RoleKind.PREFILL),
        role("decode", RoleKind.DECODE, ("index_k",)),
        role("router", RoleKind.ROUTER),
    )
    deployment = Deployment(
        name="d", base_url="http://h:1", hosts=(HostEntry(name="h"),), roles=roles,
        index_k={"bf16": Meaning(variables={"OURS": "bf16"}, flags={"--index": "bf16"})},
    )  # fmt: skip
    site = Site(deployment=deployment, run="r", owner="o", connect=lambda _: pytest.fail("no host"))
    base = Launch(argv=("python",), environment={"A": "1"})
    arm = parse_arm("a:index_k=bf16,hicache=on")
    found = {r.name: changed(base, arm, r, site) for r in roles}
    assert found["router"] == base
    assert found["decode"].argv == ("python", "--index", "bf16")
    assert set(found["prefill"].argv) == {
        "python", "--index", "bf16", "--enable-hierarchical-cache",
    }  # fmt: skip
    assert found["prefill"].environment == {"A": "1", "OURS": "bf16"}


def test_a_plan_survives_its_run_directory(tmp_path: Path) -> None:
    from dsv4doctor.artifacts.manifest import NewRun
    from dsv4doctor.artifacts.store import RunDirectory

    plan = plan_of("on:hicache=on", "off:hicache=off,concurrency=4")
    plan = replace(plan, max_minutes=3.0, deployment=tmp_path / "d.toml", api_key="sk-secret")
    run = RunDirectory.create(
        tmp_path, NewRun(command="ab", label="x", argv=[], details={"plan": plan.manifest()})
    )
    run.close()
    assert "sk-secret" not in (run.path / "run.json").read_text()
    given = replace(plan_of("a", "b"), api_key="sk-secret", output_dir=plan.output_dir)
    found = resumed(run.path, given)
    assert found == replace(plan, resume=run.path)
    assert found.blocks() == plan.blocks()
