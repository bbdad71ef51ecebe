"""Switches that do harm by themselves: fault makers on, checks bypassed, features silently off."""

from __future__ import annotations

from dsv4doctor.audit.facts import Facts, truth
from dsv4doctor.audit.logic import NO, Answer, above, all_of, below, env_on, given, on, one_of
from dsv4doctor.audit.rule import Grade, Rule, Support
from dsv4doctor.audit.rules.families import SGLANG, V4_ANY
from dsv4doctor.audit.rules.versions import prefill_graph_skips_loads
from dsv4doctor.finding import Evidence

_SOURCE = "environ.py of SGLang 0.5.12-0.5.23"


def _fault_makers(facts: Facts) -> Answer:
    """Any SGLANG_TEST_* of the server that is neither empty nor false."""
    seen = tuple(
        Evidence(where=fact.source, what=f"{name.removeprefix('env.')} = {fact.value}")
        for name, fact in facts.known.items()
        if name.startswith("env.SGLANG_TEST_") and truth(fact.value) is not False
    )
    return Answer(holds=True, evidence=seen) if seen else NO


RULES = (
    Rule(
        id="SW-01",
        symptom="a test-only fault switch is on: the server makes its own failures",
        grade=Grade.CRITICAL,
        support=Support.CONFIRMED,
        when=_fault_makers,
        links=(_SOURCE,),
        remedy="unset every SGLANG_TEST_* and restart",
    ),
    Rule(
        id="SW-02",
        symptom="/health always passes: a dead server is not noticed",
        grade=Grade.HIGH,
        support=Support.CONFIRMED,
        when=all_of(SGLANG, env_on("SGLANG_DIAG_BYPASS_HEALTH_GENERATE")),
        links=(_SOURCE,),
        remedy="unset SGLANG_DIAG_BYPASS_HEALTH_GENERATE; probe with a generation of your own",
    ),
    Rule(
        id="SW-03",
        symptom="every prefix lookup misses: HiCache and the radix cache are on and never used",
        grade=Grade.MEDIUM,
        support=Support.CONFIRMED,
        when=all_of(SGLANG, env_on("SGLANG_RADIX_FORCE_MISS")),
        links=(_SOURCE,),
        remedy="unset SGLANG_RADIX_FORCE_MISS outside of an experiment",
    ),
    Rule(
        id="SW-04",
        symptom="HiCache is on and has loaded nothing back: an experiment with it proves nothing",
        grade=Grade.MEDIUM,
        support=Support.CONFIRMED,
        when=all_of(SGLANG, on("enable_hierarchical_cache"), below("load_back_tokens", 1)),
        links=("the gauge sglang:load_back_tokens_total",),
        remedy="a smaller device pool, longer or more shared prefixes; then look again",
    ),
    Rule(
        id="SW-05",
        symptom="--hicache-size is refused for DeepSeek-V4",
        grade=Grade.MEDIUM,
        support=Support.CONFIRMED,
        when=all_of(
            SGLANG,
            on("enable_hierarchical_cache"),
            given("hicache_size_set"),
        ),
        links=("mem_cache/hybrid_cache/hybrid_pool_assembler.py of SGLang 0.5.12-0.5.23",),
        remedy="--hicache-ratio instead",
    ),
    Rule(
        id="SW-06",
        symptom="a full prefill graph replays without the layers' waits: it reads pages that "
        "HiCache is still loading",
        grade=Grade.CRITICAL,
        support=Support.CONFIRMED,
        when=all_of(
            SGLANG,
            V4_ANY,
            on("enable_hierarchical_cache"),
            one_of("cuda_graph_backend_prefill", "full"),
            prefill_graph_skips_loads,
        ),
        links=("model_executor/runner/prefill_cuda_graph_runner.py of SGLang 0.5.15-0.5.23",),
        remedy="--cuda-graph-backend-prefill other than full, or 0.5.23, or HiCache off",
    ),
    Rule(
        id="SW-07",
        symptom="the router counts workers that it holds unhealthy: their load falls on the others",
        grade=Grade.MEDIUM,
        support=Support.CONFIRMED,
        when=above("router_unhealthy_workers", 0),
        links=("GET /workers of sglang-router and smg",),
        remedy="probe that worker with a generation: dsv4doctor watch --once --base-url URL",
    ),
)
