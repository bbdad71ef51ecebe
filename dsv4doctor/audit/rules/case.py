"""The case this tool came from: bf16 index-K under HiCache, its price, and two ways to wedge."""

from __future__ import annotations

from dsv4doctor.audit.logic import all_of, any_of, env_on, not_, off, on, one_of, version_before
from dsv4doctor.audit.rule import Grade, Rule, Support

BF16_INDEX_K = any_of(env_on("SGLANG_DSV4_BF16_INDEX_K"), one_of("index_k", "bf16"))
PD = one_of("disaggregation_mode", "prefill", "decode")
RECORD = "the record of the case that this tool grew out of"
_SGLANG = "https://github.com/sgl-project/sglang"

RULES = (
    Rule(
        id="CASE-01",
        symptom="bf16 index-K under HiCache: reads of it may not wait for their layer's load, and "
        "12-18 % of responses were corrupt at 60 sessions, none at one",
        grade=Grade.CRITICAL,
        support=Support.REPORTED,
        when=all_of(
            BF16_INDEX_K,
            on("enable_hierarchical_cache"),
            not_(on("index_k_gated"), "its reads are not known to be gated"),
        ),
        links=(RECORD, f"{_SGLANG}/pull/22811"),
        remedy="HiCache off, or gate the read: dsv4doctor patch --source DIR",
    ),
    Rule(
        id="CASE-02",
        symptom="bf16 index-K stored in 256 B a c4 token and priced at 132 B: about 1.1 GB a rank "
        "is promised and not there",
        grade=Grade.HIGH,
        support=Support.CONFIRMED,
        when=all_of(
            BF16_INDEX_K, not_(on("index_k_priced"), "its price is not known to be corrected")
        ),
        links=(f"{_SGLANG}/blob/v0.5.13/python/sglang/srt/model_executor/pool_configurator.py",),
        remedy="dsv4doctor patch --source DIR; until then a lower --mem-fraction-static "
        "(dsv4doctor size says by how much)",
    ),
    Rule(
        id="CASE-03",
        symptom="prefill/decode disaggregation with the overlap schedule on a custom or early V4 "
        "build: decode can wedge under load while /health answers 200",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(
            PD,
            off("disable_overlap_schedule"),
            any_of(BF16_INDEX_K, on("custom_build"), version_before("0.5.14")),
        ),
        links=(RECORD,),
        remedy="--disable-overlap-schedule on the decode server",
    ),
    Rule(
        id="CASE-04",
        symptom="a client's abort can kill the bootstrap thread silently: requests to that rank "
        "then time out after 300 s",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(
            PD,
            any_of(
                one_of("disaggregation_transfer_backend", "mooncake", default="mooncake"),
                all_of(one_of("disaggregation_transfer_backend", "nixl"), version_before("0.5.21")),
            ),
            on("client.aborts"),
        ),
        links=(RECORD,),
        remedy="upgrade; watch the queue gauges, probe with a real generation (dsv4doctor watch)",
    ),
)
