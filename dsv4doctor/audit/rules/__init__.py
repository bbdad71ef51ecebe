"""Every rule there is. Adding one: write it into its family's tuple; a new family joins here."""

from __future__ import annotations

from dsv4doctor.audit.rule import Rule
from dsv4doctor.audit.rules import ascend, case, cross_engine, sglang, switches, vllm

RULES: tuple[Rule, ...] = (
    *case.RULES,
    *sglang.RULES,
    *switches.RULES,
    *cross_engine.RULES,
    *vllm.RULES,
    *ascend.RULES,
)
