"""An interleaving that went wrong, as a file: one JSON object that is enough to run it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from dsv4doctor.errors import DoctorError, UsageError
from dsv4doctor.lab.interleaving import Search, Violation
from dsv4doctor.lab.races import RACES
from dsv4doctor.lab.releases import Barrier, BarrierPosition, Orderings

INTERLEAVING = "interleaving"
_SCHEMA_VERSION = 1
_ENUMS = {"barrier": Barrier, "barrier_position": BarrierPosition}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What to run: a race's program, under `orderings`, in `order`; `violation` is what it did."""

    race: str
    orderings: Orderings
    order: tuple[str, ...]
    violation: Violation


def as_document(found: Search, orderings: Orderings) -> dict[str, Any]:
    """A search's result as JSON types.

    Raises:
        ValueError: if it found nothing.
    """
    if found.violation is None:
        raise ValueError(f"{found.race} went right in every order")
    knobs = {
        name: value.value if name in _ENUMS else value for name, value in asdict(orderings).items()
    }
    violation = found.violation
    return {
        "schema_version": _SCHEMA_VERSION,
        "kind": INTERLEAVING,
        "race": found.race,
        "orderings": knobs,
        "order": list(found.order),
        "violation": {
            "reader": violation.reader,
            "place": violation.place,
            "expected": violation.expected.hex(),
            "got": violation.got.hex(),
        },
    }


def save(path: Path, found: Search, orderings: Orderings) -> None:
    """Write a search's result.

    Raises:
        DoctorError: if the file cannot be written.
    """
    text = json.dumps(as_document(found, orderings), indent=2) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DoctorError(f"{path} cannot be written: {error.strerror}", "name another file") from (
            error
        )


def from_document(document: Mapping[str, Any], path: Path) -> Kept:
    """The interleaving of a file's JSON object.

    Raises:
        UsageError: if it is none; with the name of what is wrong.
    """
    try:
        if document["schema_version"] != _SCHEMA_VERSION:
            raise ValueError(f"schema_version {document['schema_version']}")
        return Kept(
            race=_race(document["race"]),
            orderings=_orderings(document["orderings"]),
            order=tuple(str(step) for step in document["order"]),
            violation=_violation(document["violation"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        wrong = error.args[0] if error.args else "nothing in it"
        raise UsageError(
            f"{path} holds no interleaving that can be run: {wrong}",
            "`dsv4doctor lab search --save FILE` makes one",
        ) from error


def _race(name: str) -> str:
    if name not in {race.name for race in RACES}:
        raise ValueError(f"no race is called {name}")
    return name


def _orderings(knobs: Mapping[str, Any]) -> Orderings:
    known = {field.name for field in fields(Orderings)}
    if set(knobs) != known:
        raise ValueError(f"orderings {', '.join(sorted(set(knobs) ^ known))}")
    values: dict[str, Any] = {
        name: _ENUMS[name](value) if name in _ENUMS else bool(value)
        for name, value in knobs.items()
    }
    return Orderings(**values)


def _violation(fields_of: Mapping[str, Any]) -> Violation:
    return Violation(
        reader=str(fields_of["reader"]),
        place=str(fields_of["place"]),
        expected=bytes.fromhex(fields_of["expected"]),
        got=bytes.fromhex(fields_of["got"]),
    )
