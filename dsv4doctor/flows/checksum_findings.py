"""What the answers of `checksum`'s hosts mean: checks that fail, digests that differ, sick GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dsv4doctor.finding import Certainty, Evidence, Finding, Severity

PLACES_IN_EVIDENCE = 8


def all_checks(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every device's checks; reads behind the right gate are one too: none may be stale."""
    return [
        check | {"host": row["host"], "device": row["device"]}
        for row in rows
        for check in row.get("checks", ())
    ] + [
        {
            "name": f"gated reads {race['dtype']} ({race['machine']}, depth {race['queue_depth']})",
            "passed": race["stale"] + race["torn"] == 0,
            "planted": 0,
            "found": race["stale"] + race["torn"],
            "host": row["host"],
            "device": row["device"],
        }
        for row in rows
        for race in row.get("race", ())
        if race["gate"] == "own"
    ]


def judge(rows: Sequence[dict[str, Any]]) -> tuple[Finding, ...]:
    """Findings of all devices, then those that only show between devices."""
    found = [finding for row in rows for finding in _device_findings(row)]
    return (*found, *_odd_ones(rows))


def _device_findings(row: dict[str, Any]) -> list[Finding]:
    where = f"{row['host']} {row['device'] or ''}".strip()
    found = []
    failed = [check for check in all_checks([row]) if not check["passed"]]
    if failed:
        evidence = tuple(
            Evidence(where=where, what=f"{c['name']}: {c['found']} of {c['planted']}")
            for c in failed[:PLACES_IN_EVIDENCE]
        )
        found.append(
            error_finding("CHECK_FAILED", f"{len(failed)} checks fail on {where}", evidence)
        )
    if row["mismatches"]:
        evidence = tuple(
            Evidence(
                where=f"{where} page {m['page']} token {m['token']}",
                what=f"expected {m['expected']}, got {m['got']}",
            )
            for m in row["mismatches"][:PLACES_IN_EVIDENCE]
        )
        found.append(
            error_finding("DIGEST_MISMATCH", f"{where} does not keep what is written", evidence)
        )
    if row["error"] is not None:
        evidence = (Evidence(where=where, what=str(row["error"])),)
        found.append(
            Finding(
                rule="HOST_FAILED",
                severity=Severity.INFO,
                certainty=Certainty.NOT_DETERMINED,
                title=f"nothing is known of {where}",
                evidence=evidence,
                remedy=row.get("hint", ""),
            )
        )
    return found + _hardware_findings(row, where)


def _hardware_findings(row: dict[str, Any], where: str) -> list[Finding]:
    found = []
    ecc = (row.get("gpu") or {}).get("ecc_uncorrected", "0")
    if ecc.isdigit() and int(ecc):
        found.append(
            Finding(
                rule="GPU_ECC_ERRORS",
                severity=Severity.WARNING,
                title=f"{where} has uncorrected memory errors",
                evidence=(Evidence(where="nvidia-smi", what=f"uncorrected volatile: {ecc}"),),
                remedy="drain the host and reset the GPU; replace it if they come back",
            )
        )
    if row.get("xid_events"):
        found.append(
            Finding(
                rule="GPU_XID_EVENTS",
                severity=Severity.WARNING,
                title=f"{row['host']} has logged GPU errors (Xid) since it was started",
                evidence=(Evidence(where="dmesg", what=f"{row['xid_events']} lines of NVRM: Xid"),),
                remedy="look them up with `dmesg | grep Xid`",
            )
        )
    return found


def _odd_ones(rows: Sequence[dict[str, Any]]) -> list[Finding]:
    """Devices whose digest of equal pages is not the others'."""
    found = []
    for pages in sorted({row["pages"] for row in rows if row["digest"]}):
        alike = [row for row in rows if row["digest"] and row["pages"] == pages]
        counts = Counter(row["digest"] for row in alike)
        usual, _ = counts.most_common(1)[0]
        for row in alike:
            if row["digest"] == usual:
                continue
            where = f"{row['host']} {row['device']}"
            what = f"digest {row['digest']}; {counts[usual]} others say {usual}"
            evidence = (Evidence(where=where, what=what),)
            found.append(
                error_finding(
                    "DIGEST_ODD_ONE_OUT", f"{where} digests equal pages differently", evidence
                )
            )
    return found


def error_finding(rule: str, title: str, evidence: tuple[Evidence, ...]) -> Finding:
    """A finding that was measured and is an error."""
    return Finding(rule=rule, severity=Severity.ERROR, title=title, evidence=evidence)
