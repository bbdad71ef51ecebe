"""Over-commit and waste: executed figures, the verdict's limit, the cause in words."""

from __future__ import annotations

from typing import Any

import pytest
from builders_sizing import AVAILABLE, judged, plan
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4doctor.finding import Severity
from dsv4doctor.sizing.causes import find_causes
from dsv4doctor.sizing.verdict import findings_of, over_commit_limit
from dsv4doctor.sizing.versions import VERSIONS
from dsv4doctor.units import MIB


@pytest.mark.parametrize(
    ("version", "keys", "mib"),
    [
        pytest.param("0.5.13", {"index_dtype": "bf16"}, 1228.8, id="13-bf16"),
        pytest.param("0.5.19", {"index_dtype": "bf16"}, 2489.0, id="19-bf16"),
        pytest.param("0.5.21", {"index_dtype": "bf16"}, 2507.2, id="21-bf16"),
        pytest.param("0.5.23", {"index_dtype": "bf16"}, 2508.2, id="23-bf16"),
        pytest.param("0.5.13", {"index_dtype": "fp4"}, -481.6, id="13-fp4"),
        pytest.param("0.5.19", {"index_dtype": "fp4"}, -994.7, id="19-fp4"),
        pytest.param("0.5.20", {"index_dtype": "fp4", "platform": "hip"}, 200.5, id="20-hip-fp4"),
        pytest.param("0.5.20", {"dsv4_attn_backend": "trtllm"}, -2463.7, id="20-trtllm"),
        pytest.param("0.5.21", {"dsv4_attn_backend": "trtllm"}, 9.0, id="21-trtllm"),
    ],
)
def test_executed_over_commit(version: str, keys: dict[str, Any], mib: float) -> None:
    got = plan(version=version, max_running_requests=32, **keys).over_commit_bytes
    assert got is not None
    assert got / MIB == pytest.approx(mib, abs=0.06)


def test_bf16_priced_as_fp8_is_an_over_commit_with_its_cause() -> None:
    result = judged(version="0.5.13", index_dtype="bf16")
    assert result.verdict == "over_commit"
    assert result.cause_words is not None
    assert "stored as bf16 (256 B a c4 token) but counted as 132 B" in result.cause_words
    assert "+651 B a token (1.10 GiB)" in result.cause_words
    rules = {finding.rule: finding.severity for finding in findings_of(result)}
    assert rules["SIZING_OVER_COMMIT"] is Severity.ERROR
    assert rules["SIZING_INDEX_K_UNDERPRICED"] is Severity.ERROR


def test_bf16_priced_right_fits() -> None:
    result = judged(version="0.5.23", index_dtype="bf16_priced")
    assert result.verdict == "fits"
    assert all(finding.severity is Severity.INFO for finding in findings_of(result))


def test_a_small_over_commit_is_info() -> None:
    result = judged()
    assert 0 < (result.plan.over_commit_bytes or 0) < over_commit_limit(AVAILABLE)
    assert result.verdict == "fits"
    assert [f.severity for f in findings_of(result)] == [Severity.INFO]


def test_limit_is_the_larger_of_the_two() -> None:
    assert over_commit_limit(1 << 30) == 64 * MIB
    assert over_commit_limit(100 << 30) == 0.005 * (100 << 30)


def test_too_little_memory_does_not_fit() -> None:
    result = judged(available_bytes=1 << 30)
    assert result.verdict == "does_not_fit"
    assert result.plan.pools is None
    finding = findings_of(result)[0]
    assert finding.rule == "SIZING_DOES_NOT_FIT"
    assert "cannot hold even one request" in finding.evidence[0].what


def test_half_of_the_state_was_unreachable_up_to_20() -> None:
    (waste,) = judged(version="0.5.20").waste
    allocated = plan(version="0.5.20").allocation
    assert allocated is not None
    state = allocated.allocated_bytes["c4_state"] + allocated.allocated_bytes["c4_indexer_state"]
    assert waste.wasted_bytes == state / 2
    assert judged(version="0.5.21").waste == ()


@settings(max_examples=150, deadline=None)
@given(
    version=st.sampled_from([release for v in VERSIONS for release in v.releases]),
    gib=st.floats(6, 120),
    ratio=st.sampled_from([0.05, 0.1, 0.15, 0.5, 0.8]),
    index=st.sampled_from(["fp8", "bf16", "bf16_priced", "fp4"]),
    draft=st.sampled_from([None, "EAGLE", "DSPARK"]),
    requests=st.integers(1, 300),
    model=st.sampled_from(["V4-Flash", "V4-Pro", "V4-Flash(44-entry HF list)"]),
)
def test_causes_add_up_to_the_over_commit(
    version: str,
    gib: float,
    ratio: float,
    index: str,
    draft: str | None,
    requests: int,
    model: str,
) -> None:
    sized = plan(
        version=version,
        available_bytes=int(gib * 2**30),
        swa_full_tokens_ratio=ratio,
        index_dtype=index,
        speculative=draft,
        max_running_requests=requests,
        model=model,
    )
    if sized.pools is None:
        assert sized.refusal is not None
        return
    over = sum(cause.over_bytes for cause in find_causes(sized))
    assert over == pytest.approx(sized.over_commit_bytes, abs=64)


@settings(max_examples=80, deadline=None)
@given(
    version=st.sampled_from([v.newest for v in VERSIONS]),
    gib=st.floats(8, 100),
    more=st.floats(0.01, 40),
)
def test_more_memory_never_holds_fewer_tokens(version: str, gib: float, more: float) -> None:
    small = plan(version=version, available_bytes=int(gib * 2**30)).pools
    large = plan(version=version, available_bytes=int((gib + more) * 2**30)).pools
    if small is not None:
        assert large is not None
        assert large.full >= small.full
