"""The arms: what each changes, what it costs, and what each cause predicts for it.

The screens look for symptoms: the load without aborts comes before the load with them, so that a
wedge of the first is no abort's. All others change one thing about a symptom that was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dsv4doctor.differential.causes import CauseName, Symptom


class ArmName(StrEnum):
    LOAD = "load"
    ALONE = "alone"
    TEXT = "text"
    MISS = "miss"
    SHORT = "short"
    PRIVATE = "private"
    FEW = "few"
    SAMPLES = "samples"
    SAMPLES_ALONE = "samples-alone"
    SINGLE = "single"
    VALUES = "values"
    VALUES_ALONE = "values-alone"
    VALUES_TEXT = "values-text"
    ABORTS = "aborts"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSpec:
    """`changes` says what differs from the load; `symptom` is what it looks for (a screen) or looks
    into. `cost` is relative to the load's; 0 where the arms that have run answer it. A screen is
    `only_for` a cause where no other needs it."""

    name: ArmName
    changes: str
    symptom: Symptom
    cost: float
    is_screen: bool = False
    only_for: CauseName | None = None
    after: ArmName | None = None


_LOAD, _VALUES = Symptom.CORRUPT_UNDER_LOAD, Symptom.CORRUPT_VALUES

# Screens stand in the order in which they have to run.
ARMS = (
    ArmSpec(
        name=ArmName.LOAD,
        changes="many sessions, cached prefixes, contexts above 4 x top-k, streamed, no aborts",
        symptom=_LOAD,
        cost=1.0,
        is_screen=True,
    ),
    ArmSpec(
        name=ArmName.ALONE,
        changes="requests that failed, sent again one at a time and computed afresh",
        symptom=_LOAD,
        cost=0.3,
    ),
    ArmSpec(
        name=ArmName.TEXT,
        changes="the same requests not streamed, and their text through the server's own parser",
        symptom=_LOAD,
        cost=0.3,
        after=ArmName.ALONE,
    ),
    ArmSpec(
        name=ArmName.MISS,
        changes="the load, with no cached prefix (each prompt is salted)",
        symptom=_LOAD,
        cost=1.0,
    ),
    ArmSpec(
        name=ArmName.SHORT,
        changes="the load, with contexts below 4 x top-k, where the indexer cannot choose",
        symptom=_LOAD,
        cost=0.6,
    ),
    ArmSpec(
        name=ArmName.PRIVATE,
        changes="the load, with no prefix shared between sessions (each session is salted)",
        symptom=_LOAD,
        cost=1.0,
    ),
    ArmSpec(
        name=ArmName.FEW,
        changes="the load, a fifth of the sessions at a time: what they cached stays on the device",
        symptom=_LOAD,
        cost=2.0,
    ),
    ArmSpec(
        name=ArmName.SAMPLES,
        changes="the load, with two sessions at a time holding the same conversation",
        symptom=Symptom.CORRUPT_WHEN_SHARED,
        cost=1.0,
        is_screen=True,
        only_for=CauseName.EARLY_SEND,
    ),
    ArmSpec(
        name=ArmName.SAMPLES_ALONE,
        changes="those that failed, sent again one at a time and computed afresh",
        symptom=Symptom.CORRUPT_WHEN_SHARED,
        cost=0.3,
    ),
    ArmSpec(
        name=ArmName.SINGLE,
        changes="the load as it was, where no two sessions held the same conversation",
        symptom=Symptom.CORRUPT_WHEN_SHARED,
        cost=0.01,
    ),
    ArmSpec(
        name=ArmName.VALUES,
        changes="unusual argument values, in contexts below 4 x top-k",
        symptom=_VALUES,
        cost=0.2,
        is_screen=True,
    ),
    ArmSpec(
        name=ArmName.VALUES_ALONE,
        changes="those that failed, sent again one at a time and computed afresh",
        symptom=_VALUES,
        cost=0.2,
    ),
    ArmSpec(
        name=ArmName.VALUES_TEXT,
        changes="the same requests not streamed, and their text through the server's own parser",
        symptom=_VALUES,
        cost=0.2,
        after=ArmName.VALUES_ALONE,
    ),
    ArmSpec(
        name=ArmName.ABORTS,
        changes="the load, with many requests hung up on in mid-stream",
        symptom=Symptom.WEDGED_WITH_ABORTS,
        cost=1.0,
        is_screen=True,
    ),
)


class Prediction(StrEnum):
    """What becomes of the symptom in an arm if the cause is the true one."""

    STAYS = "stays"
    GOES = "goes"


S, G = Prediction.STAYS, Prediction.GOES
_C = CauseName

# Where a cause is not named for an arm, either outcome agrees with it.
PREDICTIONS: Mapping[ArmName, Mapping[CauseName, Prediction]] = {
    ArmName.ALONE: {
        _C.INDEX_K_STALE_READ: G,
        _C.DECODE_STORE: G,
        _C.FOREIGN_PAGE: G,
        _C.EARLY_SEND: G,
        _C.PARSER: S,
        _C.MODEL_BASELINE: S,
    },
    # The text is right, or it is not.
    ArmName.TEXT: {_C.PARSER: G, _C.MODEL_BASELINE: S},
    ArmName.MISS: {
        _C.INDEX_K_STALE_READ: G,
        _C.DECODE_STORE: S,
        _C.FOREIGN_PAGE: G,
        _C.EARLY_SEND: G,
        _C.PARSER: S,
        _C.MODEL_BASELINE: S,
    },
    # A foreign page brings its values too, which are read whatever the indexer chooses.
    ArmName.SHORT: {_C.INDEX_K_STALE_READ: G, _C.DECODE_STORE: G, _C.FOREIGN_PAGE: S},
    ArmName.PRIVATE: {
        _C.INDEX_K_STALE_READ: S,
        _C.DECODE_STORE: S,
        _C.FOREIGN_PAGE: S,
        _C.EARLY_SEND: G,
    },
    # Pages that never leave the device need no restoring; a wrong page number needs no more.
    ArmName.FEW: {
        _C.INDEX_K_STALE_READ: G,
        _C.FOREIGN_PAGE: S,
        _C.EARLY_SEND: G,
        _C.PARSER: S,
        _C.MODEL_BASELINE: S,
    },
    ArmName.SAMPLES_ALONE: {
        _C.INDEX_K_STALE_READ: G,
        _C.DECODE_STORE: G,
        _C.FOREIGN_PAGE: G,
        _C.EARLY_SEND: G,
        _C.PARSER: S,
        _C.MODEL_BASELINE: S,
    },
    ArmName.SINGLE: {
        _C.INDEX_K_STALE_READ: S,
        _C.DECODE_STORE: S,
        _C.FOREIGN_PAGE: S,
        _C.EARLY_SEND: G,
        _C.PARSER: S,
        _C.MODEL_BASELINE: S,
    },
    ArmName.VALUES_ALONE: {_C.FOREIGN_PAGE: G, _C.PARSER: S, _C.MODEL_BASELINE: S},
    ArmName.VALUES_TEXT: {_C.PARSER: G, _C.MODEL_BASELINE: S},
}

# What must have been seen, and decisively, before a cause counts as supported.
TELLING: Mapping[Symptom, Mapping[CauseName, tuple[ArmName, ...]]] = {
    _LOAD: {
        _C.INDEX_K_STALE_READ: (ArmName.ALONE, ArmName.MISS, ArmName.SHORT),
        _C.DECODE_STORE: (ArmName.ALONE, ArmName.MISS, ArmName.SHORT),
        _C.FOREIGN_PAGE: (ArmName.ALONE, ArmName.FEW),
        _C.EARLY_SEND: (ArmName.ALONE, ArmName.MISS, ArmName.PRIVATE),
        _C.PARSER: (ArmName.ALONE, ArmName.TEXT),
        _C.MODEL_BASELINE: (ArmName.ALONE, ArmName.TEXT),
    },
    _VALUES: {
        _C.FOREIGN_PAGE: (ArmName.VALUES_ALONE,),
        _C.PARSER: (ArmName.VALUES_ALONE, ArmName.VALUES_TEXT),
        _C.MODEL_BASELINE: (ArmName.VALUES_ALONE, ArmName.VALUES_TEXT),
    },
    Symptom.CORRUPT_WHEN_SHARED: {
        _C.EARLY_SEND: (ArmName.SAMPLES_ALONE, ArmName.SINGLE),
    },
}


def telling(cause: CauseName, symptom: Symptom) -> tuple[ArmName, ...]:
    """The arms that have to speak for `cause` where `symptom` was seen."""
    return TELLING.get(symptom, {}).get(cause, ())
