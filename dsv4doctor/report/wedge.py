"""The section about a deployment that stood still."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsv4doctor.report.document import Block, Column, Facts, Section, Table
from dsv4doctor.report.members import mapping, number, sequence
from dsv4doctor.report.wording import NO_VALUE, moment
from dsv4doctor.units import many

_STUCK_SHOWN = 8


def wedge_section(summary: Mapping[str, Any]) -> Section | None:
    """What stood still, since when, after what, and what the server answered; None without."""
    wedge = mapping(summary.get("wedge"))
    if not wedge:
        return None
    rows = [("since", moment(number(wedge.get("since_unix"))))]
    if number(wedge.get("silent_s")) is not None:
        rows.append(("no token for", f"{wedge['silent_s']:.1f} s"))
    rows.append(("after", str(wedge.get("after") or "nothing that we did")))
    for key, name in (("detail", "in words"), ("peak_in_flight", "most in flight")):
        if wedge.get(key):
            rows.append((name, str(wedge[key])))
    stuck = [item for item in sequence(wedge.get("stuck")) if isinstance(item, Sequence)]
    if stuck:
        named = ", ".join(f"s{item[0]:04d}-t{item[1]:02d}" for item in stuck[:_STUCK_SHOWN])
        more = ", …" if len(stuck) > _STUCK_SHOWN else ""
        rows.append((f"{many(len(stuck), 'request')} silent", named + more))
    blocks: list[Block] = [Facts(rows=tuple(rows))]
    probes = _probe_rows(wedge.get("probes"))
    if probes:
        columns = ("probe", "answered", "status", "seconds", "detail")
        blocks.append(Table(columns=tuple(Column(title=name) for name in columns), rows=probes))
    gauges = mapping(wedge.get("gauges"))
    if gauges:
        blocks.append(Facts(rows=tuple((name, f"{value:g}") for name, value in gauges.items())))
    return Section(title="Wedged", blocks=tuple(blocks))


def _probe_rows(probes: Any) -> tuple[tuple[str, str, str, str, str], ...]:
    if isinstance(probes, Mapping):
        return tuple((str(name), "", "", "", str(result)) for name, result in probes.items())
    rows = []
    for probe in sequence(probes):
        if isinstance(probe, Mapping):
            seconds = number(probe.get("seconds"))
            rows.append(
                (
                    str(probe.get("name")),
                    "yes" if probe.get("answered") else "NO",
                    str(probe["status"]) if probe.get("status") is not None else NO_VALUE,
                    NO_VALUE if seconds is None else f"{seconds:.2f}",
                    str(probe.get("detail") or ""),
                )
            )
    return tuple(rows)
