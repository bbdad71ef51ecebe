"""What the server's own word rules out, before any arm is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dsv4doctor.differential.causes import CauseName
from dsv4doctor.differential.readings import Exclusion
from dsv4doctor.experiment.proofs import EARLY_SEND_VARIABLE, TRUE

# Early sends came with 0.5.15; from 0.5.23 on none leaves a batch that loads.
EARLY_SEND_RELEASES = ((0, 5, 15), (0, 5, 23))
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_NOT_THERE = object()


def exclusions(args: Mapping[str, Any], version: str | None) -> tuple[Exclusion, ...]:
    """Causes that the server arguments make impossible; what is not said excludes nothing."""
    return tuple(_exclusions(args, version))


def _exclusions(args: Mapping[str, Any], version: str | None) -> Iterator[Exclusion]:
    mode = _said(args, "disaggregation_mode")
    is_split = bool(_workers(args)) or mode not in (None, "null", "", _NOT_THERE)
    if not is_split and mode is not _NOT_THERE:
        yield _of(
            CauseName.EARLY_SEND, "prefill and decode are one server", "disaggregation_mode", mode
        )
    hicache = _said(args, "enable_hierarchical_cache")
    if hicache is False:
        yield _of(
            CauseName.INDEX_K_STALE_READ, "no prefix is restored from a host",
            "enable_hierarchical_cache", hicache,
        )  # fmt: skip
        yield _of(
            CauseName.EARLY_SEND, "no prefix is restored from a host",
            "enable_hierarchical_cache", hicache,
        )  # fmt: skip
    overlap_off = _said(args, "disable_overlap_schedule")
    if overlap_off is True:
        yield _of(
            CauseName.WEDGE_OVERLAP, "the overlap schedule is off",
            "disable_overlap_schedule", overlap_off,
        )  # fmt: skip
    early = _variable(args, EARLY_SEND_VARIABLE)
    if early is not None and early.strip().lower() not in TRUE:
        yield _of(CauseName.EARLY_SEND, "early sends are off", EARLY_SEND_VARIABLE, early)
    release = _RELEASE.match(version or "")
    if release is not None:
        numbers = tuple(int(part) for part in release.groups())
        first, fixed = EARLY_SEND_RELEASES
        if numbers < first or numbers >= fixed:
            yield _of(CauseName.EARLY_SEND, "this release has no such send", "version", version)


def _of(cause: CauseName, why: str, name: str, value: object) -> Exclusion:
    return Exclusion(cause=cause, said=f"{why}: the server says {name} = {value}")


def _workers(args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The workers' own arguments, where a router answered for them."""
    workers: list[Mapping[str, Any]] = []
    for role in ("prefill", "decode"):
        named = args.get(role)
        if isinstance(named, list):
            workers += [worker for worker in named if isinstance(worker, Mapping)]
    return workers


def _said(args: Mapping[str, Any], name: str) -> Any:
    """The argument, from the server or from any worker that has it set."""
    values = [source[name] for source in (args, *_workers(args)) if name in source]
    return next((value for value in values if value), values[0]) if values else _NOT_THERE


def _variable(args: Mapping[str, Any], name: str) -> str | None:
    for source in (args, *_workers(args)):
        variables = source.get("env_vars")
        if isinstance(variables, Mapping) and name in variables:
            return str(variables[name])
    return None
