"""Which parsers belong to which model, and whether a KV canary runs: predicates of single rules."""

from __future__ import annotations

from dsv4doctor.audit.facts import Facts
from dsv4doctor.audit.logic import NO, Answer
from dsv4doctor.finding import Evidence

# Tool parsers that read each family's calls, in SGLang's names.
TOOL_PARSERS = {
    "v3": ("deepseekv3",),
    "v31": ("deepseekv31",),
    "v32": ("deepseekv32",),
    "v4": ("deepseekv4",),
    "v41": ("deepseekv41", "deepseekv4_1"),
}
REASONING_PARSERS = {
    "v4": ("deepseek-v4",),
    "v41": ("deepseek-v4", "deepseek-v41", "deepseek-v4.1"),
}


def wrong_parser(facts: Facts) -> Answer:
    """A parser is set that reads another family's calls or reasoning."""
    family = str(facts.value("model_family") or "")
    for name, table in (
        ("tool_call_parser", TOOL_PARSERS),
        ("reasoning_parser", REASONING_PARSERS),
    ):
        fact = facts.get(name)
        if fact is None or family not in table or str(fact.value).lower() in ("none", "auto"):
            continue
        if str(fact.value).lower() not in table[family]:
            seen = Evidence(where=fact.source, what=f"{name} = {fact.value} for a {family} model")
            return Answer(holds=True, evidence=(seen,))
    return NO


def canary_on(facts: Facts) -> Answer:
    """`--kv-canary` is set to anything but none."""
    fact = facts.get("kv_canary")
    if fact is None or str(fact.value).lower() in ("none", "off", "false", "0", ""):
        return NO
    return Answer(
        holds=True, evidence=(Evidence(where=fact.source, what=f"kv_canary = {fact.value}"),)
    )
