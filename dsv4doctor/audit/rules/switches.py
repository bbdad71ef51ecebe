"""Switches that do harm by themselves: fault makers on, checks bypassed, features silently off."""

from __future__ import annotations

from dsv4doctor.audit.facts import Facts, truth
from dsv4doctor.audit.logic import NO, Answer, all_of, below, env_on, given, on
from dsv4doctor.audit.rule import Grade, Rule, Support
from dsv4doctor.audit.rules.families import SGLANG
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
)
