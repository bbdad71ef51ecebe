"""Known-bad combinations of SGLang: model, build, HiCache, disaggregation, parsers, drafts."""

from __future__ import annotations

from dsv4doctor.audit.logic import (
    above,
    all_of,
    any_of,
    below,
    contains,
    dated,
    given,
    lacks,
    not_,
    off,
    on,
    one_of,
    version_before,
)
from dsv4doctor.audit.rule import Grade, Rule, Support
from dsv4doctor.audit.rules.families import (
    DSA,
    DSPARK,
    FLASH_0731,
    PD,
    ROCM,
    SGLANG,
    SM90,
    SPEC,
    V4_ANY,
    V41,
    long_draft,
)
from dsv4doctor.audit.rules.parsers import canary_on, wrong_parser

RULES = (
    Rule(
        id="SG-01",
        symptom="HiCache restores pages of a DSA model whose index-K reads do not wait: rare "
        "garbage, loops, silent loss of accuracy",
        grade=Grade.CRITICAL,
        support=Support.CONFIRMED,
        when=all_of(
            SGLANG,
            DSA,
            on("enable_hierarchical_cache"),
            lacks(22811, in_release="0.5.12", when="April 2026"),
        ),
        links=("https://github.com/sgl-project/sglang/pull/22811",),
        remedy="upgrade; else HiCache off",
    ),
    Rule(
        id="SG-02",
        symptom="the index pool of a DSA model is not registered in the Mooncake L3: loops or "
        "off-topic answers after an L3 hit",
        grade=Grade.CRITICAL,
        support=Support.REPORTED,
        when=all_of(
            SGLANG,
            DSA,
            one_of("hicache_storage_backend", "mooncake"),
            not_(on("index_pool_in_l3"), "the index pool is not known to be in L3"),
        ),
        links=(
            "https://github.com/kvcache-ai/Mooncake/issues/2236",
            "https://github.com/sgl-project/sglang/pull/31348",
            "https://github.com/sgl-project/sglang/pull/18637",
        ),
        remedy="L3 off, or upgrade; checksums do not see bytes that were never stored",
    ),
    Rule(
        id="SG-03",
        symptom="V4 with HiCache: answers 2-5 times longer, loops, a NaN crash, canary "
        "violations were reported, with no proof of a fix",
        grade=Grade.CRITICAL,
        support=Support.REPORTED,
        when=all_of(SGLANG, V4_ANY, on("enable_hierarchical_cache")),
        links=(
            "https://github.com/sgl-project/sglang/issues/36179",
            "https://github.com/sgl-project/sglang/issues/33656",
        ),
        remedy="HiCache off for the A/B; run with the KV canary; ask for a KL test",
    ),
    Rule(
        id="SG-04",
        symptom="a packed or compressed DSA model with HiCache: calls dropped, invented tool "
        "output, loops",
        grade=Grade.CRITICAL,
        support=Support.REPORTED,
        when=all_of(
            SGLANG,
            DSA,
            contains("model", "5.3", "packed"),
            on("enable_hierarchical_cache"),
            lacks(39156, 38212, 37534),
        ),
        links=(
            "https://github.com/sgl-project/sglang/issues/38031",
            "https://github.com/sgl-project/sglang/pull/39156",
            "https://github.com/sgl-project/sglang/pull/38212",
            "https://github.com/sgl-project/sglang/pull/37534",
        ),
        remedy="HiCache off; L2 only once fixed",
    ),
    Rule(
        id="SG-05",
        symptom="more than 4 draft tokens: compressed state is built from stale slots, without "
        "an error",
        grade=Grade.CRITICAL,
        support=Support.CONFIRMED,
        when=all_of(
            SGLANG, V4_ANY, long_draft(4), lacks(34189, when="merged on or after 9 August 2026")
        ),
        links=(
            "https://github.com/sgl-project/sglang/pull/33872",
            "https://github.com/sgl-project/sglang/pull/34189",
            "https://github.com/sgl-project/sglang/pull/34043",
        ),
        remedy="upgrade; else at most 4 draft tokens, or speculation off",
    ),
    Rule(
        id="SG-06",
        symptom="disaggregation over Mooncake: decode uses stale SWA and index state and replays "
        "other text",
        grade=Grade.CRITICAL,
        support=Support.CONFIRMED,
        when=all_of(
            SGLANG,
            V4_ANY,
            PD,
            one_of("disaggregation_transfer_backend", "mooncake", default="mooncake"),
            lacks(24878, when="May 2026"),
        ),
        links=(
            "https://github.com/sgl-project/sglang/pull/24878",
            "https://github.com/sgl-project/sglang/pull/17024",
        ),
        remedy="upgrade, or NIXL",
    ),
    Rule(
        id="SG-07",
        symptom="V4-Flash-0731 under DP attention on SM90 with 8 or more requests a rank: "
        "progressive salad, loops",
        grade=Grade.CRITICAL,
        support=Support.REPORTED,
        when=all_of(
            SGLANG,
            FLASH_0731,
            on("enable_dp_attention"),
            SM90,
            above("requests_per_dp_rank", 7, default=256),
        ),
        links=("https://github.com/sgl-project/sglang/issues/33397",),
        remedy="cap --max-running-requests; KV canary; an A/B without DP attention",
    ),
    Rule(
        id="SG-08",
        symptom="tools with tool_choice none: DSML in the content every time",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(SGLANG, one_of("client.tool_choice", "none"), above("client.tools", 0)),
        links=("https://github.com/sgl-project/sglang/issues/35736",),
        remedy="leave the tools out of the request in that mode",
    ),
    Rule(
        id="SG-09",
        symptom="the tool or reasoning parser is not the one of this model: a whole call comes "
        "as content",
        grade=Grade.HIGH,
        support=Support.CONFIRMED,
        when=all_of(SGLANG, wrong_parser),
        links=(
            "https://github.com/sgl-project/sglang/issues/17593",
            "https://github.com/sgl-project/sglang/issues/14690",
            "https://github.com/sgl-project/sglang/pull/38951",
            "https://github.com/sgl-project/sglang/pull/39434",
            "https://github.com/cline/cline/issues/13348",
        ),
        remedy="--tool-call-parser deepseekv4 --reasoning-parser deepseek-v4 for V4; test one "
        "forced call",
    ),
    Rule(
        id="SG-10",
        symptom="streaming tool calls are cut, lost or leaked by the detector of this build",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(
            SGLANG,
            one_of("tool_call_parser", "deepseekv32", "deepseekv4"),
            on("client.streams"),
            lacks(34458, 34600, 36748, 39632),
        ),
        links=(
            "https://github.com/sgl-project/sglang/pull/34600",
            "https://github.com/sgl-project/sglang/pull/36748",
            "https://github.com/sgl-project/sglang/pull/39632",
            "https://github.com/sgl-project/sglang/pull/39435",
            "https://github.com/sgl-project/sglang/pull/18236",
        ),
        remedy="no streaming on tool turns, or the patch",
    ),
    Rule(
        id="SG-11",
        symptom="a tool parser without a reasoning parser, while thinking: DSML or the whole "
        "answer lands in reasoning_content",
        grade=Grade.HIGH,
        support=Support.CONFIRMED,
        when=all_of(
            SGLANG,
            V4_ANY,
            given("tool_call_parser"),
            not_(given("reasoning_parser"), "no reasoning parser is set"),
            on("client.thinking"),
        ),
        links=(
            "https://github.com/sgl-project/sglang/pull/32539",
            "https://github.com/ai-dynamo/dynamo/pull/10203",
        ),
        remedy="--reasoning-parser deepseek-v4",
    ),
    Rule(
        id="SG-12",
        symptom="the unified KV pool on ROCm keeps a stale SWA window after a prefix is reused",
        grade=Grade.CRITICAL,
        support=Support.CONFIRMED,
        when=all_of(
            SGLANG,
            ROCM,
            one_of("env.SGLANG_HACK_FLASHMLA_BACKEND", "unified_kv_triton"),
            off("disable_radix_cache"),
            lacks(30339, 32759),
        ),
        links=(
            "https://github.com/sgl-project/sglang/pull/30339",
            "https://github.com/sgl-project/sglang/pull/32214",
            "https://github.com/ROCm/ATOM/issues/1417",
        ),
        remedy="upgrade, or another layout where bits matter",
    ),
    Rule(
        id="SG-13",
        symptom="NVFP4 or FP8 weights without speculation on early builds: NaN or garbage from "
        "the first tokens",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(
            SGLANG,
            V4_ANY,
            contains("model", "nvfp4", "fp8"),
            not_(SPEC, "speculation is off"),
            version_before("0.5.13"),
        ),
        links=(
            "https://github.com/sgl-project/sglang/issues/25704",
            "https://github.com/sgl-project/sglang/pull/25733",
        ),
        remedy="upgrade",
    ),
    Rule(
        id="SG-14",
        symptom="DSPARK, or HiSparse with disaggregation, above about 240 K tokens: decode "
        "wedges at low power",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(
            SGLANG,
            V4_ANY,
            any_of(DSPARK, all_of(on("enable_hisparse"), PD)),
            above("client.context_tokens", 240_000),
        ),
        links=(
            "https://github.com/sgl-project/sglang/issues/33549",
            "https://github.com/sgl-project/sglang/issues/26475",
            "https://github.com/sgl-project/sglang/issues/26783",
        ),
        remedy="a watchdog and a generation probe; stack dumps of all ranks",
    ),
    Rule(
        id="SG-15",
        symptom="the memory fraction leaves less than weights and reserve need: the server "
        "refuses to start",
        grade=Grade.MEDIUM,
        support=Support.CONFIRMED,
        when=all_of(
            SGLANG,
            contains("model", "pro"),
            contains("gpu", "h200"),
            one_of("tp_size", "8"),
            any_of(
                all_of(SPEC, below("mem_fraction_static", 0.9335)),
                all_of(not_(SPEC, "speculation is off"), below("mem_fraction_static", 0.9113)),
            ),
        ),
        links=("https://github.com/SemiAnalysisAI/InferenceX/issues/2128",),
        remedy="raise --mem-fraction-static, or more GPUs",
    ),
    Rule(
        id="SG-16",
        symptom="the DSPARK draft is under-counted by about 345 B a token: out of memory in long "
        "runs",
        grade=Grade.MEDIUM,
        support=Support.REPORTED,
        when=all_of(SGLANG, V4_ANY, DSPARK, lacks(34499)),
        links=(
            "https://github.com/sgl-project/sglang/pull/34499",
            "https://github.com/sgl-project/sglang/pull/30371",
        ),
        remedy="leave head room: a lower --mem-fraction-static",
    ),
    Rule(
        id="SG-17",
        symptom="disaggregated V4 refuses inputs longer than the SWA pool",
        grade=Grade.MEDIUM,
        support=Support.CONFIRMED,
        when=all_of(SGLANG, V4_ANY, PD, lacks(26607)),
        links=(
            "https://github.com/sgl-project/sglang/issues/24523",
            "https://github.com/sgl-project/sglang/pull/26607",
        ),
        remedy="upgrade",
    ),
    Rule(
        id="SG-18",
        symptom="pipeline parallel with HiCache mixes SWA pools and layer maps between stages",
        grade=Grade.CRITICAL,
        support=Support.CONFIRMED,
        when=all_of(
            SGLANG, V4_ANY, above("pp_size", 1), on("enable_hierarchical_cache"), lacks(29106)
        ),
        links=("https://github.com/bytedance-iaas/sglang/pull/639",),
        remedy="upgrade, or pp_size 1",
    ),
    Rule(
        id="SG-19",
        symptom="DSPARK with HiCache can hit nothing in long sessions: slow, and a HiCache test "
        "that proves nothing",
        grade=Grade.MEDIUM,
        support=Support.REPORTED,
        when=all_of(SGLANG, V4_ANY, DSPARK, on("enable_hierarchical_cache")),
        links=("https://github.com/sgl-project/sglang/issues/35129",),
        remedy="see cached tokens above 0 before judging an A/B",
    ),
    Rule(
        id="SG-20",
        symptom="index top-k is thinned out: a small loss of accuracy, and not the official model",
        grade=Grade.LOW,
        support=Support.CONFIRMED,
        when=all_of(SGLANG, any_of(above("index_topk_freq", 1), given("index_topk_pattern"))),
        links=(
            "https://github.com/sgl-project/sglang/pull/26274",
            "https://github.com/sgl-project/sglang/pull/32771",
        ),
        remedy="note it in the report; off for an A/B",
    ),
    Rule(
        id="SG-21",
        symptom="the fp4 indexer costs 1.5-2.5 points of GSM8K in the pull request's own tables",
        grade=Grade.LOW,
        support=Support.CONFIRMED,
        when=all_of(SGLANG, on("enable_deepseek_v4_fp4_indexer")),
        links=(
            "https://github.com/sgl-project/sglang/pull/26209",
            "https://github.com/sgl-project/sglang/pull/27059",
        ),
        remedy="fp8 index-K where accuracy is measured",
    ),
    Rule(
        id="SG-22",
        symptom="speculation with CUDA graphs over a long uptime: illegal access in graph replay",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(SGLANG, SPEC, off("disable_cuda_graph"), version_before("0.5.13.post2")),
        links=(
            "https://github.com/sgl-project/sglang/issues/26987",
            "https://github.com/sgl-project/sglang/pull/32035",
        ),
        remedy="graphs off to isolate it; collect Xid lines",
    ),
    Rule(
        id="SG-23",
        symptom="the KV canary gives false comfort: it does not follow data to L2 and L3, or "
        "stamps are synthetic",
        grade=Grade.MEDIUM,
        support=Support.CONFIRMED,
        when=all_of(
            SGLANG,
            canary_on,
            any_of(
                given("hicache_storage_backend"),
                not_(
                    one_of("kv_canary_real_data", "partial", "all"),
                    "the canary checks no real data",
                ),
            ),
        ),
        links=(
            "https://github.com/sgl-project/sglang/pull/26817",
            "https://github.com/sgl-project/sglang/pull/30098",
        ),
        remedy="--kv-canary-real-data partial or all; L3 off while testing",
    ),
    Rule(
        id="SG-24",
        symptom="SWARadixCache with shared prefixes of 100-500 K on builds of April and May "
        "2026: a lock assertion kills the scheduler",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(
            SGLANG,
            contains("radix_cache", "swaradixcache"),
            above("client.context_tokens", 100_000),
            dated("the build is of April or May 2026"),
        ),
        links=("https://github.com/sgl-project/sglang/issues/24153",),
        remedy="upgrade, or the unified radix tree",
    ),
    Rule(
        id="SG-26",
        symptom="V4.1 under DP attention crashes on idle and padded batches",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(SGLANG, V41, on("enable_dp_attention"), lacks(40424)),
        links=("https://github.com/sgl-project/sglang/pull/40424",),
        remedy="the patch of #40424",
    ),
    Rule(
        id="SG-27",
        symptom="acceptance falls after an L3 restore of a DSA model with MTP; the text stays "
        "right",
        grade=Grade.LOW,
        support=Support.REPORTED,
        when=all_of(SGLANG, DSA, SPEC, given("hicache_storage_backend"), lacks(28896)),
        links=("https://github.com/sgl-project/sglang/pull/28896",),
        remedy="watch acceptance by kind of hit",
    ),
    Rule(
        id="SG-28",
        symptom="HiCache's kernel backend on ROCm: a GPU fault",
        grade=Grade.HIGH,
        support=Support.REPORTED,
        when=all_of(
            SGLANG,
            ROCM,
            on("enable_hierarchical_cache"),
            one_of("hicache_io_backend", "kernel", default="kernel"),
            one_of("hicache_mem_layout", "layer_first", "page_first", default="layer_first"),
        ),
        links=("https://github.com/sgl-project/sglang/pull/35043",),
        remedy="--hicache-io-backend direct --hicache-mem-layout layer_first",
    ),
    Rule(
        id="SG-29",
        symptom="the radix cache is off and HiCache is on: the server refuses the pair",
        grade=Grade.LOW,
        support=Support.CONFIRMED,
        when=all_of(SGLANG, on("disable_radix_cache"), on("enable_hierarchical_cache")),
        links=("https://github.com/sgl-project/sglang/pull/38844",),
        remedy="choose one",
    ),
)
