"""All rules over all subjects, prefill against decode, and what could not be determined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsv4doctor.audit.facts import Fact, Facts
from dsv4doctor.audit.rule import AuditFinding, Grade, Support, finding_of
from dsv4doctor.audit.rules import RULES
from dsv4doctor.finding import Certainty, Evidence, Finding, Severity

# What both ends of a disaggregated pair must say alike: bytes move between them as they lie.
MUST_AGREE = (
    "version", "model", "page_size", "kv_cache_dtype", "enable_deepseek_v4_fp4_indexer",
    "dsv4_attn_backend", "disaggregation_transfer_backend", "speculative_algorithm", "index_k",
    "env.SGLANG_DSV4_KV_LAYOUT", "env.SGLANG_DSV4_COMPRESSED_KV_LAYOUT",
    "env.SGLANG_DSV4_BF16_INDEX_K", "env.SGLANG_DSV4_COMPRESS_STATE_DTYPE",
    "env.SGLANG_OPT_USE_ONLINE_COMPRESS", "env.SGLANG_HACK_FLASHMLA_BACKEND",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Undetermined:
    """A rule that may hold: every known part of it does, and `missing` facts decide."""

    rule: str
    subject: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    findings: tuple[AuditFinding, ...]
    not_determined: tuple[Undetermined, ...]


def evaluate(subjects: Sequence[Facts]) -> AuditResult:
    """Findings by severity, the gravest first, and the rules that lack a fact."""
    found: list[AuditFinding] = []
    open_: list[Undetermined] = []
    for facts in subjects:
        for rule in RULES:
            answer = rule.when(facts)
            if answer.holds:
                found.append(finding_of(rule, answer, facts.subject))
            elif answer.holds is None:
                missing = tuple(dict.fromkeys(answer.missing))
                open_.append(Undetermined(rule=rule.id, subject=facts.subject, missing=missing))
    found += disagreements(subjects)
    return AuditResult(findings=by_severity(found), not_determined=tuple(open_))


def by_severity(found: Sequence[AuditFinding]) -> tuple[AuditFinding, ...]:
    """The gravest first, in the order found within one grade."""
    order = (Grade.CRITICAL, Grade.HIGH, Grade.MEDIUM, Grade.LOW)
    return tuple(sorted(found, key=lambda f: (-f.finding.severity.rank, order.index(f.grade))))


def disagreements(subjects: Sequence[Facts]) -> list[AuditFinding]:
    """What prefill and decode servers say differently and must say alike."""
    prefill = [facts for facts in subjects if facts.value("disaggregation_mode") == "prefill"]
    decode = [facts for facts in subjects if facts.value("disaggregation_mode") == "decode"]
    found = []
    for left in prefill:
        for right in decode:
            for name in MUST_AGREE:
                pair = _differing(left, right, name)
                if pair is not None:
                    found.append(_disagreement(name, pair, left.subject))
    return found


def _differing(left: Facts, right: Facts, name: str) -> tuple[Fact, Fact] | None:
    one, two = left.get(name), right.get(name)
    if one is None and two is None:
        return None
    if one is None or two is None:
        silent, other = (left, two) if one is None else (right, one)
        known = silent.complete and (not name.startswith("env.") or silent.get("env_known"))
        if not known or other is None or name in ("version", "model"):
            return None
        absent = Fact(name=name, value="not set", source=silent.subject)
        return (absent, other) if one is None else (other, absent)
    return None if str(one.value).lower() == str(two.value).lower() else (one, two)


def _disagreement(name: str, pair: tuple[Fact, Fact], subject: str) -> AuditFinding:
    return AuditFinding(
        finding=Finding(
            rule="PD_DISAGREE",
            severity=Severity.ERROR,
            title=f"prefill and decode disagree on {name}",
            evidence=tuple(
                Evidence(where=fact.source, what=f"{name} = {fact.value}") for fact in pair
            ),
            certainty=Certainty.MEASURED,
            remedy="the same value on both: pages move between them byte by byte",
        ),
        grade=Grade.HIGH,
        support=Support.CONFIRMED,
        subject=subject,
    )
