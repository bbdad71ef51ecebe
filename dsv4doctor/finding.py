"""One thing seen, with the evidence for it: what every diagnosing command yields."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """Position in the order info < warning < error, for `--fail-on`."""
        return ("info", "warning", "error").index(self.value)


class Certainty(StrEnum):
    MEASURED = "measured"
    INFERRED = "inferred"
    NOT_DETERMINED = "not determined"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A place to check a claim: `where` names a field, line or request, `what` is there."""

    where: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A claim; `rule` is a stable id that is never reused, `evidence` is never empty."""

    rule: str
    severity: Severity
    title: str
    evidence: tuple[Evidence, ...]
    certainty: Certainty = Certainty.MEASURED
    remedy: str = ""

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"finding {self.rule} carries no evidence")
