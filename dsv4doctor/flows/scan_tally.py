"""What a scan counted, in memory that does not grow with the log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from dsv4doctor.finding import Evidence, Finding, Severity
from dsv4doctor.flows.scan_records import Judged, Outcome, Unreadable
from dsv4doctor.flows.scan_trend import Trend, iso
from dsv4doctor.flows.tally import commonest
from dsv4doctor.label import Label
from dsv4doctor.units import many

_EXAMPLES = 3
_UNREADABLE_NAMED = 20
_MAX_GROUPS = 1000
_OTHER = "(other)"


@dataclass(slots=True)
class GroupCount:
    """Counts of one group's value."""

    records: int = 0
    corrupted: int = 0
    by_label: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Tally:
    """Everything that a scan reports but the records themselves."""

    group_by: tuple[str, ...] = ()
    records: int = 0
    corrupted: int = 0
    failures: int = 0
    aborted: int = 0
    unreadable: int = 0
    by_label: Counter[str] = field(default_factory=Counter)
    by_failure: Counter[str] = field(default_factory=Counter)
    also: Counter[str] = field(default_factory=Counter)
    unreadable_named: list[Unreadable] = field(default_factory=list)
    trend: Trend = field(default_factory=Trend)
    _examples: dict[Label, list[Judged]] = field(default_factory=dict)
    _corrupts: Counter[Label] = field(default_factory=Counter)
    _groups: dict[tuple[str, ...], GroupCount] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        if isinstance(outcome, Unreadable):
            self.unreadable += 1
            if len(self.unreadable_named) < _UNREADABLE_NAMED:
                self.unreadable_named.append(outcome)
        elif outcome.aborted:
            self.aborted += 1
        elif outcome.judgement.primary.is_failure:
            self.failures += 1
            self.by_failure[outcome.judgement.primary.value] += 1
        else:
            self._add_response(outcome)

    def _add_response(self, outcome: Judged) -> None:
        judgement = outcome.judgement
        label = judgement.primary
        self.records += 1
        self.corrupted += judgement.corrupted
        self.by_label[label.value] += 1
        if judgement.also:
            self.also.update(other.value for other in judgement.also)
        self.trend.add(outcome.time, corrupted=judgement.corrupted)
        if label is not Label.CLEAN:
            self._corrupts[label] += judgement.corrupted
            examples = self._examples.setdefault(label, [])
            if len(examples) < _EXAMPLES:
                examples.append(outcome)
        if self.group_by:
            self._group_of(outcome.groups).records += 1
            self._group_of(outcome.groups).corrupted += judgement.corrupted
            self._group_of(outcome.groups).by_label[label.value] += 1

    def _group_of(self, values: tuple[str, ...]) -> GroupCount:
        if values not in self._groups and len(self._groups) >= _MAX_GROUPS:
            values = (_OTHER,) * len(values)
        return self._groups.setdefault(values, GroupCount())

    def findings(self) -> list[Finding]:
        """One finding a label, the commonest first, with places to look at."""
        found: list[Finding] = []
        for value, count in commonest(self.by_label):
            label = Label(value)
            if label is Label.CLEAN:
                continue
            corrupt = self._corrupts[label]
            found.append(
                Finding(
                    rule=label.rule,
                    severity=Severity.ERROR if corrupt else Severity.INFO,
                    title=f"{count} of {many(self.records, 'response')}: {value}",
                    evidence=tuple(_evidence(example) for example in self._examples[label]),
                    remedy="see docs/rules.md for what it means and how to confirm it",
                )
            )
        return found

    def groups(self) -> list[dict[str, Any]]:
        """The groups, the most corrupted first."""
        ordered = sorted(self._groups.items(), key=lambda g: (-g[1].corrupted, -g[1].records, g[0]))
        return [
            {
                **dict(zip(self.group_by, values, strict=True)),
                "records": count.records,
                "corrupted": count.corrupted,
                "by_label": dict(count.by_label),
            }
            for values, count in ordered
        ]

    def totals(self) -> dict[str, Any]:
        """The counts, under the contract's names."""
        return {
            "records": self.records,
            "unreadable_lines": self.unreadable,
            "by_label": dict(commonest(self.by_label)),
            "corrupted": self.corrupted,
            "also": dict(commonest(self.also)),
            "failures": self.failures,
            "by_failure": dict(commonest(self.by_failure)),
            "aborted_by_us": self.aborted,
        }

    def onset(self) -> dict[str, Any] | None:
        """First and last corruption and the change of rate; None without times or corruption."""
        first, last = self.trend.first_corrupted, self.trend.last_corrupted
        if first is None or last is None:
            return None
        return {
            "first_corrupted": iso(first),
            "last_corrupted": iso(last),
            "change": self.trend.change(),
        }


def _evidence(example: Judged) -> Evidence:
    seen = example.judgement.evidence
    what = f"{seen[0].where}: {seen[0].what}" if seen else example.judgement.primary.value
    return Evidence(where=f"{example.source}:{example.line} ({example.id})", what=what)
