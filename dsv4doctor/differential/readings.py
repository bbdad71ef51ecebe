"""What the arms of a diagnosis have shown, and what is known of the server beside them."""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.differential.arms import ArmName
from dsv4doctor.differential.causes import CauseName, Symptom


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one arm showed, in words (`said`) and as evidence.

    `stays` is the e-value that the symptom is still there, `goes` that it is not what it was. A
    screen says in `seen` which symptoms it met, and in `flow` how requests got through;
    `not_proved` says why the arm was not what its name says: it then counts for nothing.
    """

    arm: ArmName
    said: str
    stays: float = 1.0
    goes: float = 1.0
    seen: tuple[Symptom, ...] = ()
    flow: str = ""
    not_proved: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A trace that only some causes leave, looked for in what an arm brought: `present` and
    `absent` are the e-values that it is there, and that it is not where they would leave it."""

    symptom: Symptom
    said: str
    present: float = 1.0
    absent: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A cause that the server's own word rules out, and that word."""

    cause: CauseName
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wedged:
    """The one observation that a wedge is: it came after `requests` of an arm with aborts, and
    `before` requests without any had passed. `e_value` speaks against "aborts have no part"."""

    requests: int
    before: int
    said: str

    @property
    def e_value(self) -> float:
        """Had aborts no part, the wedge fell anywhere among all requests alike: the mean likelihood
        over all shares beyond that of the arm with aborts, over that share."""
        share = self.requests / max(1, self.requests + self.before)
        return 1.0 if share <= 0.0 else (1.0 + share) / 2.0 / share


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that is known at one moment; `late` says what failed while this client was late."""

    readings: tuple[Reading, ...] = ()
    foreign: tuple[Mark, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    wedged: Wedged | None = None
    late: tuple[str, ...] = ()

    def reading(self, arm: ArmName) -> Reading | None:
        return next((reading for reading in self.readings if reading.arm is arm), None)

    @property
    def symptoms(self) -> frozenset[Symptom]:
        """What was seen so far."""
        seen = {symptom for reading in self.readings for symptom in reading.seen}
        return frozenset(seen | ({Symptom.LATE_CLIENT} if self.late else set()))
