"""What `run.json` keeps of a plan and its target, without secrets, and how a resumed run gets it
back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.store import RunDirectory
from dsv4doctor.codec import ShapeError, to_builtins
from dsv4doctor.errors import UsageError
from dsv4doctor.lab.deployment import LabOptions
from dsv4doctor.target import Endpoint, parse_endpoint

START_ANEW = "start a new run; its records still load"
# What of the lab's options a resumed run has to start again; the rest is this process's business.
_LAB_FIELDS = ("index_k", "hicache", "faults", "fixes", "switches")


def saved_plan(run_dir: Path, command: str) -> Mapping[str, Any]:
    """The plan in the manifest at `run_dir`.

    Raises:
        UsageError: if `run_dir` is no run of `command`.
    """
    manifest = RunDirectory.open(run_dir).manifest
    plan = manifest.get("plan")
    if manifest.get("command") != command or not isinstance(plan, Mapping):
        raise UsageError(
            f"{run_dir} is no run of `{command}`", f"give a directory that {command} made"
        )
    return plan


@contextmanager
def told_as_damage(run_dir: Path, next_step: str) -> Iterator[None]:
    """Whatever of a manifest cannot be read inside is told as damage.

    Raises:
        UsageError: naming the manifest, with `next_step`.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, ShapeError) as error:
        raise UsageError(f"{run_dir}/run.json is damaged: {error}", next_step) from error


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
