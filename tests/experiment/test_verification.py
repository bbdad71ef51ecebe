"""An arm is what it says only where it was read: vacuous, refuted and unknown are told apart."""

from __future__ import annotations

from typing import Any

import pytest

from dsv4doctor.experiment.arms import parse_arm
from dsv4doctor.experiment.factors import FACTORS
from dsv4doctor.experiment.proofs import INDEX_K_PAGE_BYTES, STATE_PROOFS, TRACE_PROOFS, verify
from dsv4doctor.experiment.verification import (
    ServerState,
    Standing,
    Traces,
    Verification,
    combine,
)

BF16 = {"SGLANG_DSV4_BF16_INDEX_K": "1"}


def _standing(
    setting: str,
    arguments: dict[str, Any] | None = None,
    environment: dict[str, str] | None = None,
    page_bytes: int | None = None,
    **traces: Any,
) -> Standing:
    state = ServerState(
        server_args=arguments or {}, environment=environment, index_k_page_bytes=page_bytes
    )
    found = verify(parse_arm(f"a:{setting}").settings, state, state, Traces(**traces))
    assert found.verified is (found.checks[0].standing is Standing.PROVED)
    assert found.checks[0].read
    return found.checks[0].standing


HICACHE_ON, HICACHE_OFF = {"enable_hierarchical_cache": True}, {"enable_hierarchical_cache": False}


@pytest.mark.parametrize(
    ("setting", "facts"),
    [
        ("hicache=on", {"arguments": HICACHE_ON, "host_hit_tokens": 512}),
        ("hicache=off", {"arguments": HICACHE_OFF, "host_hit_tokens": 0}),
        ("hicache=off", {"arguments": HICACHE_OFF}),
        ("index_k=bf16", {"environment": BF16}),
        ("index_k=fp8", {"environment": {}}),
        ("index_k=fp8", {"environment": {"SGLANG_DSV4_BF16_INDEX_K": "0"}}),
        ("index_k=fp4", {"arguments": {"enable_deepseek_v4_fp4_indexer": True}}),
        *((f"index_k={name}", {"page_bytes": size}) for name, size in INDEX_K_PAGE_BYTES.items()),
        ("overlap=off", {"arguments": {"disable_overlap_schedule": True}}),
        ("overlap=on", {"arguments": {"disable_overlap_schedule": False}}),
        ("early_send=on", {"environment": {}}),
        (
            "early_send=off",
            {"environment": {"SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX": "0"}},
        ),
        ("war_barrier=default", {"environment": {}}),
        ("war_barrier=coarse", {"environment": {"SGLANG_FORCE_COARSE_WAR_BARRIER": "1"}}),
        ("cuda_graph=off", {"arguments": {"disable_cuda_graph": True}, "cuda_graph_used": False}),
        ("cuda_graph=on", {"arguments": {"disable_cuda_graph": False}}),
        ("spec=on", {"arguments": {"speculative_algorithm": "EAGLE"}, "accept_length": 2.7}),
        ("spec=off", {"arguments": {"speculative_algorithm": None}}),
        ("--mem-fraction-static=0.80", {"arguments": {"mem_fraction_static": 0.8}}),
        ("--attention-backend=dsv4", {"arguments": {"attention_backend": "dsv4"}}),
        ("--disable-radix-cache=on", {"arguments": {"disable_radix_cache": True}}),
        ("--disable-radix-cache=off", {"arguments": {"disable_radix_cache": False}}),
        ("--hicache-size=unset", {"arguments": {"hicache_size": None}}),
        ("SGLANG_RADIX_FORCE_MISS=1", {"environment": {"SGLANG_RADIX_FORCE_MISS": "1"}}),
        ("SGLANG_RADIX_FORCE_MISS=unset", {"environment": {}}),
        ("concurrency=60", {"peak_in_flight": 60}),
        ("cache=hit", {"cached_tokens": 9_000}),
        ("cache=miss", {"cached_tokens": 0}),
        ("context=short", {"prompt_tokens": (900, 2_048)}),
        ("context=long", {"prompt_tokens": (2_500, 6_000)}),
        ("aborts=on", {"aborted": 4}),
        ("aborts=off", {"aborted": 0}),
        ("stream=on", {"streamed": True}),
        ("stream=off", {"streamed": False}),
        ("temperature=0.6", {}),
        ("history=live", {}),
    ],
)
def test_proved(setting: str, facts: dict[str, Any]) -> None:
    assert _standing(setting, **facts) is Standing.PROVED


@pytest.mark.parametrize(
    ("setting", "facts"),
    [
        ("hicache=on", {"arguments": HICACHE_ON, "host_hit_tokens": 0}),
        ("cuda_graph=on", {"arguments": {"disable_cuda_graph": False}, "cuda_graph_used": False}),
        ("spec=on", {"arguments": {"speculative_algorithm": "EAGLE"}, "accept_length": 1.0}),
        ("concurrency=60", {"peak_in_flight": 12}),
        ("cache=hit", {"cached_tokens": 0}),
        ("context=long", {"prompt_tokens": (1_800, 6_000)}),
        ("aborts=on", {"aborted": 0}),
    ],
)
def test_vacuous(setting: str, facts: dict[str, Any]) -> None:
    """Set as asked, and yet nothing that the setting could have changed ever happened."""
    assert _standing(setting, **facts) is Standing.VACUOUS


@pytest.mark.parametrize(
    ("setting", "facts"),
    [
        ("hicache=on", {"arguments": HICACHE_OFF, "host_hit_tokens": 0}),
        ("hicache=off", {"arguments": HICACHE_ON, "host_hit_tokens": 0}),
        ("hicache=off", {"arguments": HICACHE_OFF, "host_hit_tokens": 7}),
        ("index_k=bf16", {"environment": {}}),
        ("index_k=fp8", {"environment": BF16}),
        ("index_k=bf16", {"environment": BF16, "page_bytes": 8448}),
        ("index_k=fp8", {"arguments": {"enable_deepseek_v4_fp4_indexer": True}}),
        ("index_k=fp4", {"environment": {}}),
        ("overlap=off", {"arguments": {"disable_overlap_schedule": False}}),
        ("early_send=off", {"environment": {}}),
        ("war_barrier=coarse", {"environment": {}}),
        ("cuda_graph=off", {"arguments": {"disable_cuda_graph": True}, "cuda_graph_used": True}),
        ("spec=on", {"arguments": {"speculative_algorithm": None}, "accept_length": None}),
        ("--page-size=64", {"arguments": {"page_size": 256}}),
        ("--page-size=many", {"arguments": {"page_size": 256}}),
        ("SGLANG_RADIX_FORCE_MISS=1", {"environment": {}}),
        ("concurrency=4", {"peak_in_flight": 60}),
        ("cache=miss", {"cached_tokens": 256}),
        ("context=short", {"prompt_tokens": (900, 2_049)}),
        ("aborts=off", {"aborted": 1}),
        ("stream=on", {"streamed": False}),
    ],
)
def test_refuted(setting: str, facts: dict[str, Any]) -> None:
    assert _standing(setting, **facts) is Standing.REFUTED


@pytest.mark.parametrize(
    ("setting", "facts"),
    [
        ("hicache=on", {"arguments": HICACHE_ON}),
        ("hicache=on", {"host_hit_tokens": 512}),
        ("index_k=bf16", {}),
        ("early_send=on", {}),
        ("spec=on", {"arguments": {"speculative_algorithm": "EAGLE"}}),
        ("spec=on", {"accept_length": 2.0}),
        ("--no-such-flag=1", {"arguments": {"page_size": 256}}),
        ("--mem-fraction-static=unset", {"arguments": {"mem_fraction_static": 0.88}}),
        ("SGLANG_X=1", {}),
        ("concurrency=60", {}),
        ("cache=miss", {}),
        ("context=long", {}),
        ("aborts=on", {}),
        ("stream=on", {}),
    ],
)
def test_unknown(setting: str, facts: dict[str, Any]) -> None:
    """What could not be read is never taken for granted, nor is a flag that the server ignored."""
    assert _standing(setting, **facts) is Standing.UNKNOWN


def test_a_server_that_changed_in_between_is_refuted() -> None:
    settings = parse_arm("a:hicache=on").settings
    before, after = (ServerState(server_args=args) for args in (HICACHE_ON, HICACHE_OFF))
    found = verify(settings, before, after, Traces(host_hit_tokens=5))
    assert not found.verified
    assert "before" in found.reason
    assert "after the block" in found.reason


def test_a_server_that_is_gone_afterwards_is_unknown() -> None:
    settings = parse_arm("a:hicache=on").settings
    found = verify(settings, ServerState(server_args=HICACHE_ON), None, Traces(host_hit_tokens=5))
    assert found.checks[0].standing is Standing.UNKNOWN
    assert "could not be read after" in found.reason


def test_the_vacuous_arm_says_why() -> None:
    settings = parse_arm("a:index_k=bf16,hicache=on").settings
    state = ServerState(server_args=HICACHE_ON, environment=BF16)
    found = verify(settings, state, state, Traces(host_hit_tokens=0))
    assert found.reason == "hicache=on is vacuous: 0 host-hit tokens during the run"


def test_an_arm_that_claims_nothing_is_verified() -> None:
    assert verify((), ServerState(), None, Traces()) == Verification(checks=())
    assert Verification(checks=()).verified


def test_every_block_must_hold() -> None:
    settings = parse_arm("a:aborts=on").settings
    good, bad = (verify(settings, ServerState(), None, Traces(aborted=n)) for n in (3, 0))
    assert combine([good, good]).verified
    assert not combine([good, bad]).verified
    assert not combine([]).verified
    assert combine([bad, bad]).reason == bad.reason


def test_every_named_factor_has_a_proof() -> None:
    assert {factor.name for factor in FACTORS} == STATE_PROOFS.keys() | TRACE_PROOFS.keys()
