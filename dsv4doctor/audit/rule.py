"""A rule: what combination is known to be bad, how bad, on whose word, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dsv4doctor.audit.logic import Answer, Check
from dsv4doctor.finding import Certainty, Evidence, Finding, Severity


class Grade(StrEnum):
    """How bad: silent wrong text; corruption or crash; lost calls or capacity; a small loss."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Support(StrEnum):
    """On whose word: a merged fix or a maintainer; somebody's report; a guess."""

    CONFIRMED = "confirmed"
    REPORTED = "reported"
    HYPOTHESIS = "hypothesis"


SEVERITY_OF = {
    Grade.CRITICAL: Severity.ERROR,
    Grade.HIGH: Severity.ERROR,
    Grade.MEDIUM: Severity.WARNING,
    Grade.LOW: Severity.INFO,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One known-bad combination. `links` are where it was reported or fixed."""

    id: str
    symptom: str
    grade: Grade
    support: Support
    when: Check
    links: tuple[str, ...]
    remedy: str

    @property
    def severity(self) -> Severity:
        """As shown: a hypothesis never above info."""
        return Severity.INFO if self.support is Support.HYPOTHESIS else SEVERITY_OF[self.grade]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """A rule that fired: the finding, and the rule's own grade and support."""

    finding: Finding
    grade: Grade
    support: Support
    subject: str


def finding_of(rule: Rule, answer: Answer, subject: str) -> AuditFinding:
    """The finding of a rule whose answer holds; what is assumed makes it not determined."""
    evidence = [*answer.evidence]
    evidence += [Evidence(where="check by commit", what=words) for words in answer.assumed]
    evidence += [Evidence(where=link, what="reported or fixed there") for link in rule.links]
    certainty = Certainty.NOT_DETERMINED if answer.assumed else Certainty.INFERRED
    return AuditFinding(
        finding=Finding(
            rule=rule.id,
            severity=rule.severity,
            title=rule.symptom,
            evidence=tuple(evidence),
            certainty=certainty,
            remedy=rule.remedy,
        ),
        grade=rule.grade,
        support=rule.support,
        subject=subject,
    )
