"""What `run.json` keeps of a target, without its secrets, and how a resumed run gets it back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsv4doctor.codec import to_builtins
from dsv4doctor.errors import UsageError
from dsv4doctor.lab.deployment import LabOptions
from dsv4doctor.target import Endpoint, parse_endpoint

# What of the lab's options a resumed run has to start again; the rest is this process's business.
_LAB_FIELDS = ("index_k", "hicache", "faults", "fixes", "switches")


def lab_from_fields(fields: Mapping[str, Any] | None) -> LabOptions | None:
    """The lab that a manifest tells of; None where the run had a server.

    Raises:
        KeyError, TypeError, ValueError: if the fields are damaged.
    """
    if fields is None:
        return None
    return LabOptions(
        index_k=str(fields["index_k"]),
        hicache=bool(fields["hicache"]),
        faults=tuple(fields["faults"]),
        fixes=tuple(fields["fixes"]),
        switches=tuple((str(name), str(value)) for name, value in fields["switches"]),
    )


def lab_fields(lab: LabOptions) -> dict[str, Any]:
    """What a manifest keeps of a lab, as JSON types."""
    return {name: to_builtins(getattr(lab, name)) for name in _LAB_FIELDS}


def same_endpoint(run_dir: Path, base_url: str | None, given: Endpoint | None) -> Endpoint | None:
    """The server of a run that is resumed, with the credentials given now; None for the lab.

    Raises:
        UsageError: if another server is given.
    """
    if base_url is None:
        return None
    if given is None:
        return parse_endpoint(base_url)
    if given.base_url != base_url:
        raise UsageError(
            f"{run_dir} was a run against {base_url}, not {given.base_url}",
            "resume it against the same server, or start a new run",
        )
    return given
