"""What a server says of itself excludes causes; what it does not say excludes none."""

from __future__ import annotations

from typing import Any

import pytest

from dsv4doctor.flows.diagnose_server import exclusions

ONE = {"disaggregation_mode": "null", "enable_hierarchical_cache": True}
ROUTER = {"prefill": [{"disaggregation_mode": "prefill", "enable_hierarchical_cache": True}],
          "decode": [{"disaggregation_mode": "decode"}]}  # fmt: skip


@pytest.mark.parametrize(
    ("args", "version", "excluded"),
    [
        pytest.param({}, None, set(), id="it says nothing"),
        pytest.param(ONE, "0.5.20", {"early_send"}, id="one server"),
        pytest.param(ROUTER, "0.5.20", set(), id="a router with workers"),
        pytest.param(ROUTER, "0.5.23", {"early_send"}, id="the release that holds sends back"),
        pytest.param(ROUTER, "0.5.14", {"early_send"}, id="before there were early sends"),
        pytest.param(
            {"enable_hierarchical_cache": False}, None, {"early_send", "index_k_stale_read"},
            id="no host cache",
        ),
        pytest.param({"disable_overlap_schedule": True}, None, {"wedge_overlap"}, id="no overlap"),
        pytest.param(
            {**ROUTER, "env_vars": {"SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX": "0"}},
            "0.5.20", {"early_send"}, id="switched off by its variable",
        ),
        pytest.param(
            {"prefill": [{"enable_hierarchical_cache": True}],
             "decode": [{"enable_hierarchical_cache": False}]},
            "0.5.20", set(), id="on in one worker is on",
        ),
    ],
)  # fmt: skip
def test_exclusions(args: dict[str, Any], version: str | None, excluded: set[str]) -> None:
    found = exclusions(args, version)
    assert {each.cause.value for each in found} == excluded
    assert all(each.said for each in found)
