"""What many devices' answers mean together: the odd one out, hosts that fail, sick hardware."""

from __future__ import annotations

from typing import Any

import pytest

from dsv4doctor.finding import Severity
from dsv4doctor.flows.checksum_findings import judge


def row(host: str, **fields: Any) -> dict[str, Any]:
    usual = {
        "host": host, "device": "cuda:0 H200", "pages": 2048, "digest": "aa", "mismatches": [],
        "error": None,
    }  # fmt: skip
    return usual | fields


def rules(*rows: dict[str, Any]) -> list[tuple[str, Severity]]:
    return [(finding.rule, finding.severity) for finding in judge(rows)]


def test_equal_digests_are_no_finding():
    assert rules(row("a"), row("b"), row("c", pages=64, digest="bb")) == []


def test_the_odd_one_out_is_named():
    (finding,) = judge([row("a"), row("b", digest="bb"), row("c")])
    assert finding.rule == "DIGEST_ODD_ONE_OUT"
    assert finding.evidence[0].where.startswith("b ")
    assert "2 others say aa" in finding.evidence[0].what


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"error": "a: login refused", "digest": None}, ("HOST_FAILED", Severity.INFO)),
        ({"gpu": {"ecc_uncorrected": "3"}}, ("GPU_ECC_ERRORS", Severity.WARNING)),
        ({"xid_events": 2}, ("GPU_XID_EVENTS", Severity.WARNING)),
        (
            {"mismatches": [{"page": 1, "token": 2, "expected": "x", "got": "y"}]},
            ("DIGEST_MISMATCH", Severity.ERROR),
        ),
        (
            {"checks": [{"name": "n", "passed": False, "planted": 2, "found": 1}]},
            ("CHECK_FAILED", Severity.ERROR),
        ),
        (
            {"race": [{"dtype": "fp8", "machine": "streams", "queue_depth": 1, "gate": "own",
                       "stale": 1, "torn": 0}]},
            ("CHECK_FAILED", Severity.ERROR),
        ),
    ],
)  # fmt: skip
def test_one_device_can_say(fields: dict[str, Any], expected: tuple[str, Severity]):
    assert rules(row("a", **fields)) == [expected]


@pytest.mark.parametrize(
    "fields",
    [
        {"gpu": {"ecc_uncorrected": "[N/A]"}},
        {"gpu": {"ecc_uncorrected": "0"}},
        {"xid_events": None},
    ],
)
def test_what_is_unknown_or_nothing_is_no_finding(fields: dict[str, Any]):
    assert rules(row("a", **fields)) == []
