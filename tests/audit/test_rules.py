"""Every rule fires and stays quiet: two launches that differ in one condition."""

from __future__ import annotations

import io
import json
import shlex
from contextlib import redirect_stdout
from typing import Any

import pytest
from rule_cases import CASES, FLASH, HICACHE, SG, Side, s

from dsv4doctor.audit.rule import Grade, Support
from dsv4doctor.audit.rules import RULES
from dsv4doctor.cli.app import main
from dsv4doctor.finding import Severity


def document(*args: str) -> dict[str, Any]:
    """The JSON document of one `dsv4doctor audit`, run through the command line in this process."""
    said = io.StringIO()
    with redirect_stdout(said), pytest.raises(SystemExit) as end:
        main(["audit", *args, "--json"])
    found: dict[str, Any] = json.loads(said.getvalue())
    assert found["exit_code"] == end.value.code
    return found


def arguments(side: Side) -> list[str]:
    facts = [part for fact in side.facts for part in ("--fact", fact)]
    return ["--launch", side.launch, *facts, *(f"--has={number}" for number in side.has)]


def audit(side: Side) -> dict[str, Any]:
    return document(*arguments(side))


def rules_of(found: dict[str, Any]) -> set[str]:
    return {finding["rule"] for finding in found["findings"]}


def conditions(side: Side) -> dict[str, str]:
    """What a side states, by name: variables, switches with their values, facts, changes."""
    words = shlex.split(side.launch)
    stated: dict[str, str] = {}
    for place, word in enumerate(words):
        follower = words[place + 1] if place + 1 < len(words) else "--"
        name, _, value = word.partition("=")
        if word.startswith("--"):
            stated[name] = value or ("" if follower.startswith("--") else follower)
        elif "=" in word:
            stated[name] = value
    stated |= dict(fact.split("=", 1) for fact in side.facts)
    return stated | {f"#{number}": "in the build" for number in side.has}


@pytest.mark.parametrize("rule", sorted(CASES))
def test_the_two_cases_differ_in_one_condition(rule: str) -> None:
    fires, quiet = (conditions(side) for side in CASES[rule])
    differing = {name for name in fires | quiet if fires.get(name) != quiet.get(name)}
    assert len(differing) == 1, differing


def test_every_rule_has_its_two_cases() -> None:
    assert set(CASES) == {rule.id for rule in RULES}
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", sorted(CASES))
def test_fires(rule: str) -> None:
    outcome = audit(CASES[rule][0])
    (found,) = [f for f in outcome["findings"] if f["rule"] == rule]
    assert found["remedy"]
    assert len(found["evidence"]) >= 2


@pytest.mark.parametrize("rule", sorted(CASES))
def test_stays_quiet(rule: str) -> None:
    outcome = audit(CASES[rule][1])
    assert rule not in rules_of(outcome)
    # Quiet means no, not unknown.
    assert rule not in {item["rule"] for item in outcome["audit"]["not_determined"]}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_severity_follows_grade_and_support(rule: Any) -> None:
    expected = {
        Grade.CRITICAL: Severity.ERROR,
        Grade.HIGH: Severity.ERROR,
        Grade.MEDIUM: Severity.WARNING,
        Grade.LOW: Severity.INFO,
    }[rule.grade]
    assert rule.severity is (Severity.INFO if rule.support is Support.HYPOTHESIS else expected)
    assert rule.links


def test_what_is_only_dated_is_checked_by_commit() -> None:
    outcome = audit(s(f"{SG} {FLASH} --disaggregation-mode decode"))
    (found,) = [f for f in outcome["findings"] if f["rule"] == "SG-06"]
    assert found["certainty"] == "not determined"
    assert any(item["where"] == "check by commit" for item in found["evidence"])


HEALTHY = (
    f"{SG} {FLASH} --trust-remote-code --tp 4 --tool-call-parser deepseekv4 "
    "--reasoning-parser deepseek-v4"
)


@pytest.mark.parametrize(
    "launch",
    [
        pytest.param(HEALTHY, id="with-parsers"),
        pytest.param(f"{SG} {FLASH} --tp 8", id="bare"),
        pytest.param(f"sglang serve {FLASH} --tp 4 --dp 4 --enable-dp-attention", id="newer-cli"),
        pytest.param(
            f"{HEALTHY} --attention-backend dsv4 --page-size 256 --kv-cache-dtype fp8_e4m3 "
            "--swa-full-tokens-ratio 0.1 --max-running-requests 256",
            id="what-v4-forces-at-boot",
        ),
    ],
)
def test_a_default_launch_of_the_newest_release_has_nothing_above_info(launch: str) -> None:
    outcome = audit(s(launch, "version=0.5.23"))
    assert [f for f in outcome["findings"] if f["severity"] != "info"] == []
    assert (outcome["verdict"], outcome["exit_code"]) == ("clean", 0)


RECORD = (
    f"SGLANG_DSV4_BF16_INDEX_K=1 {SG} {FLASH} --tp 4 {HICACHE} --disaggregation-transfer-backend "
    "nixl --disaggregation-mode"
)
# What the record's launch must be told, and the switch or command that works around it.
WORKAROUNDS = {
    "CASE-01": "HiCache off",
    "CASE-02": "dsv4doctor patch",
    "CASE-03": "--disable-overlap-schedule",
}


@pytest.mark.parametrize("role", ["prefill", "decode"])
def test_the_records_launch(role: str) -> None:
    outcome = audit(s(f"{RECORD} {role}"))
    found = {f["rule"]: f for f in outcome["findings"]}
    for rule, workaround in WORKAROUNDS.items():
        assert workaround in found[rule]["remedy"]
        assert found[rule]["severity"] == "error"
    assert (outcome["verdict"], outcome["exit_code"]) == ("findings", 1)


@pytest.mark.parametrize(
    ("launch", "gone"),
    [
        pytest.param(RECORD.replace(HICACHE, ""), "CASE-01", id="hicache-off"),
        pytest.param(RECORD.replace("K=1", "K=0"), "CASE-02", id="fp8"),
        pytest.param(f"{RECORD} decode --disable-overlap-schedule", "CASE-03", id="overlap-off"),
    ],
)
def test_each_workaround_ends_its_finding(launch: str, gone: str) -> None:
    full = launch if "mode decode" in launch else f"{launch} decode"
    assert gone not in rules_of(audit(s(full)))


def test_unknown_is_an_answer() -> None:
    outcome = document("--fact", "engine=sglang", "--fact", "model_family=v4")
    missing = {item["rule"]: item["missing"] for item in outcome["audit"]["not_determined"]}
    assert missing["SG-03"] == ["enable_hierarchical_cache"]
    assert outcome["verdict"] == "clean"


def test_prefill_and_decode_must_agree() -> None:
    prefill = f"SGLANG_DSV4_KV_LAYOUT=v41 {SG} {FLASH} --disaggregation-mode prefill"
    decode = f"{SG} {FLASH} --disaggregation-mode decode"
    both = document("--launch", prefill, "--launch", decode)
    (found,) = [f for f in both["findings"] if f["rule"] == "PD_DISAGREE"]
    assert "SGLANG_DSV4_KV_LAYOUT" in found["title"]
    alike = document("--launch", prefill, "--launch", f"SGLANG_DSV4_KV_LAYOUT=v41 {decode}")
    assert "PD_DISAGREE" not in rules_of(alike)
