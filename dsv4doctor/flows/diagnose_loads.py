"""The load of each arm: whose sessions, how many at a time, and what of each request is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dsv4doctor.artifacts.catalog import load_scenario
from dsv4doctor.differential.arms import ArmName
from dsv4doctor.flows.ab_block import scenario_of
from dsv4doctor.flows.diagnose_plan import DiagnosePlan
from dsv4doctor.flows.repro_plan import ReproPlan
from dsv4doctor.scenario import Scenario

# How arms are called in records and proofs: the factors that each changes about the load.
FACTORS: Mapping[ArmName, Mapping[str, str]] = {
    ArmName.LOAD: {"aborts": "off", "stream": "on"},
    ArmName.ALONE: {"aborts": "off", "cache": "miss", "concurrency": "1"},
    ArmName.TEXT: {"aborts": "off", "cache": "miss", "concurrency": "1", "stream": "off"},
    ArmName.MISS: {"aborts": "off", "cache": "miss"},
    ArmName.SHORT: {"aborts": "off", "context": "short"},
    ArmName.PRIVATE: {"aborts": "off"},
    ArmName.FEW: {"aborts": "off"},
    ArmName.SAMPLES: {"aborts": "off"},
    ArmName.SAMPLES_ALONE: {"aborts": "off", "cache": "miss", "concurrency": "1"},
    ArmName.VALUES: {"aborts": "off"},
    ArmName.VALUES_ALONE: {"aborts": "off", "cache": "miss", "concurrency": "1"},
    ArmName.VALUES_TEXT: {"aborts": "off", "cache": "miss", "concurrency": "1", "stream": "off"},
    ArmName.ABORTS: {"aborts": "on"},
}
_VALUES_ARMS = frozenset({ArmName.VALUES, ArmName.VALUES_ALONE, ArmName.VALUES_TEXT})
_SAMPLES_ARMS = frozenset({ArmName.SAMPLES, ArmName.SAMPLES_ALONE})
# Two requests of one batch are enough to share a prefix that only one of them restores.
SAMPLES = 2
# What must not be cached yet when the arm begins: prompts of another seed.
_OTHER_PROMPTS = {ArmName.ABORTS: 1, ArmName.FEW: 2}
# Of the load's sessions, one in so many at a time.
FEW_SHARE = 5
# Twelve sessions of three turns meet every kind of value several times.
VALUES_SESSIONS = 12


def client_plan(plan: DiagnosePlan, name: ArmName) -> ReproPlan:
    """The load of an arm, as `repro` would drive it."""
    factors = dict(FACTORS[name])
    concurrency = factors.pop("concurrency", None)
    if name is ArmName.FEW:
        concurrency = str(max(2, plan.sessions // FEW_SHARE))
    return ReproPlan(
        scenario=scenario_of(_scenario(plan, name), factors),
        sessions=min(plan.sessions, VALUES_SESSIONS) if name in _VALUES_ARMS else plan.sessions,
        turns=None if name in _VALUES_ARMS else plan.turns,
        seed=plan.seed + _OTHER_PROMPTS.get(name, 0),
        output_dir=plan.output_dir,
        model=plan.model,
        extra_body=plan.extra_body,
        max_concurrency=int(concurrency) if concurrency else None,
        stall_timeout_s=plan.stall_timeout_s,
        request_timeout_s=plan.request_timeout_s,
    )


def _scenario(plan: DiagnosePlan, name: ArmName) -> Scenario:
    if name in _VALUES_ARMS:
        return load_scenario("parser-probe")
    if name is ArmName.ABORTS:
        return load_scenario("abort-storm")
    scenario = replace(plan.scenario, stream=True, salts_sessions=name is ArmName.PRIVATE)
    return replace(scenario, samples=SAMPLES) if name in _SAMPLES_ARMS else scenario
