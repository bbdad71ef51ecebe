"""Known-bad combinations of vllm-ascend."""

from __future__ import annotations

from dsv4doctor.audit.logic import above, all_of, any_of, given, lacks, on, version_is
from dsv4doctor.audit.rule import Grade, Rule, Support
from dsv4doctor.audit.rules.families import ASCEND, PD, PREFIX_CACHE, SPEC, V4_ANY

RULES = (
    Rule(
        id="VA-01",
        symptom="prefix caching at high concurrency mixes prompts up",
        grade=Grade.CRITICAL,
        support=Support.REPORTED,
        when=all_of(ASCEND, V4_ANY, PREFIX_CACHE, above("client.concurrency", 8)),
        links=("https://github.com/vllm-project/vllm-ascend/issues/14118",),
        remedy="prefix caching off; a salted first character",
    ),
    Rule(
        id="VA-02",
        symptom="speculation with W8A8 or BF16 and fused MC2: empty answers or BOS, corruption "
        "under disaggregation",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(ASCEND, V4_ANY, SPEC, on("fused_mc2", default=True)),
        links=(
            "https://github.com/vllm-project/vllm-ascend/issues/9170",
            "https://github.com/vllm-project/vllm-ascend/issues/15070",
        ),
        remedy="zero the MoE output; speculation off is not enough",
    ),
    Rule(
        id="VA-03",
        symptom="thinking with temperature or top_p set, 0.18.0: loops of one token",
        grade=Grade.MEDIUM,
        support=Support.REPORTED,
        when=all_of(
            ASCEND,
            version_is("0.18.0"),
            on("client.thinking"),
            any_of(given("client.temperature"), given("client.top_p")),
        ),
        links=(
            "https://github.com/vllm-project/vllm-ascend/issues/9274",
            "https://github.com/vllm-project/vllm-ascend/issues/8994",
        ),
        remedy="leave sampling unset",
    ),
    Rule(
        id="VA-04",
        symptom="prefill and decode have different block sizes: their caches do not match",
        grade=Grade.HIGH,
        support=Support.CONFIRMED,
        when=all_of(ASCEND, PD, on("peer_block_size_differs")),
        links=("https://github.com/vllm-project/vllm-ascend/pull/10354",),
        remedy="the same --block-size on both",
    ),
    Rule(
        id="VA-05",
        symptom="speculation while streaming: BOS, EOS or DSML in text",
        grade=Grade.MEDIUM,
        support=Support.REPORTED,
        when=all_of(ASCEND, SPEC, on("client.streams"), lacks(9462)),
        links=(
            "https://github.com/vllm-project/vllm-ascend/issues/9767",
            "https://github.com/vllm-project/vllm-ascend/issues/13794",
        ),
        remedy="a filter, or upgrade",
    ),
)
