"""For every rule two launches that differ in one condition: one that it is about, one not."""

from __future__ import annotations

from dataclasses import dataclass

FLASH = "--model-path deepseek-ai/DeepSeek-V4-Flash"
F0731 = "--model-path deepseek-ai/DeepSeek-V4-Flash-0731"
V41 = "--model-path deepseek-ai/DeepSeek-V4.1-Flash"
V32 = "--model-path deepseek-ai/DeepSeek-V3.2"
HICACHE = "--enable-hierarchical-cache"
SG = "python -m sglang.launch_server"
VL = "vllm serve"
SPEC = "--speculative-algorithm EAGLE"


@dataclass(frozen=True)
class Side:
    """A launch, facts beside it, and changes that the build contains."""

    launch: str
    facts: tuple[str, ...] = ()
    has: tuple[int, ...] = ()


def s(launch: str, *facts: str, has: tuple[int, ...] = ()) -> Side:
    return Side(launch, facts, has)


# rule -> (fires, stays quiet)
CASES: dict[str, tuple[Side, Side]] = {
    "CASE-01": (
        s(f"SGLANG_DSV4_BF16_INDEX_K=1 {SG} {FLASH} {HICACHE}"),
        s(f"SGLANG_DSV4_BF16_INDEX_K=1 {SG} {FLASH}"),
    ),
    "CASE-02": (
        s(f"SGLANG_DSV4_BF16_INDEX_K=1 {SG} {FLASH}"),
        s(f"SGLANG_DSV4_BF16_INDEX_K=1 {SG} {FLASH}", "index_k_priced=true"),
    ),
    "CASE-03": (
        s(f"SGLANG_DSV4_BF16_INDEX_K=1 {SG} {FLASH} --disaggregation-mode decode"),
        s(
            f"SGLANG_DSV4_BF16_INDEX_K=1 {SG} {FLASH} --disaggregation-mode decode "
            "--disable-overlap-schedule"
        ),
    ),
    "CASE-04": (
        s(f"{SG} {FLASH} --disaggregation-mode prefill", "client.aborts=true"),
        s(f"{SG} {FLASH}", "client.aborts=true"),
    ),
    "SG-01": (
        s(f"{SG} {V32} {HICACHE}", "version=0.5.11"),
        s(f"{SG} {V32} {HICACHE}", "version=0.5.12"),
    ),
    "SG-02": (
        s(f"{SG} {V32} {HICACHE} --hicache-storage-backend mooncake"),
        s(f"{SG} {V32} {HICACHE} --hicache-storage-backend file"),
    ),
    "SG-03": (s(f"{SG} {FLASH} {HICACHE}"), s(f"{SG} {FLASH}")),
    "SG-04": (
        s(f"{SG} --model-path zai-org/GLM-5.3-Flash {HICACHE}"),
        s(f"{SG} --model-path zai-org/GLM-5.3-Flash"),
    ),
    "SG-05": (
        s(f"{SG} {FLASH} --speculative-algorithm DSPARK"),
        s(f"{SG} {FLASH} --speculative-algorithm DSPARK --speculative-num-draft-tokens 4"),
    ),
    "SG-06": (
        s(f"{SG} {FLASH} --disaggregation-mode decode"),
        s(f"{SG} {FLASH} --disaggregation-mode decode --disaggregation-transfer-backend nixl"),
    ),
    "SG-07": (
        s(f"{SG} {F0731} --dp 8 --enable-dp-attention", "gpu=NVIDIA H200"),
        s(
            f"{SG} {F0731} --dp 8 --enable-dp-attention --max-running-requests 32",
            "gpu=NVIDIA H200",
        ),
    ),
    "SG-08": (
        s(f"{SG} {FLASH}", "client.tools=3", "client.tool_choice=none"),
        s(f"{SG} {FLASH}", "client.tools=3", "client.tool_choice=auto"),
    ),
    "SG-09": (
        s(f"{SG} {FLASH} --tool-call-parser deepseekv3"),
        s(f"{SG} {FLASH} --tool-call-parser deepseekv4"),
    ),
    "SG-10": (
        s(f"{SG} {FLASH} --tool-call-parser deepseekv4", "client.streams=true"),
        s(f"{SG} {FLASH} --tool-call-parser deepseekv4", "client.streams=false"),
    ),
    "SG-11": (
        s(f"{SG} {FLASH} --tool-call-parser deepseekv4", "client.thinking=true"),
        s(
            f"{SG} {FLASH} --tool-call-parser deepseekv4 --reasoning-parser deepseek-v4",
            "client.thinking=true",
        ),
    ),
    "SG-12": (
        s(f"SGLANG_HACK_FLASHMLA_BACKEND=unified_kv_triton {SG} {FLASH}", "platform=hip-gfx95"),
        s(
            f"SGLANG_HACK_FLASHMLA_BACKEND=unified_kv_triton {SG} {FLASH} --disable-radix-cache",
            "platform=hip-gfx95",
        ),
    ),
    "SG-13": (
        s(f"{SG} {FLASH}-NVFP4", "version=0.5.12"),
        s(f"{SG} {FLASH}-NVFP4", "version=0.5.13"),
    ),
    "SG-14": (
        s(f"{SG} {FLASH} --speculative-algorithm DSPARK", "client.context_tokens=300000"),
        s(f"{SG} {FLASH} --speculative-algorithm DSPARK", "client.context_tokens=200000"),
    ),
    "SG-15": (
        s(
            f"{SG} --model-path deepseek-ai/DeepSeek-V4-Pro --tp 8 --mem-fraction-static 0.9",
            "gpu=H200",
        ),
        s(
            f"{SG} --model-path deepseek-ai/DeepSeek-V4-Pro --tp 8 --mem-fraction-static 0.92",
            "gpu=H200",
        ),
    ),
    "SG-16": (
        s(f"{SG} {FLASH} --speculative-algorithm DSPARK"),
        s(f"{SG} {FLASH} --speculative-algorithm DSPARK", has=(34499,)),
    ),
    "SG-17": (
        s(f"{SG} {FLASH} --disaggregation-mode prefill"),
        s(f"{SG} {FLASH} --disaggregation-mode prefill", has=(26607,)),
    ),
    "SG-18": (s(f"{SG} {FLASH} {HICACHE} --pp-size 2"), s(f"{SG} {FLASH} {HICACHE} --pp-size 1")),
    "SG-19": (
        s(f"{SG} {FLASH} {HICACHE} --speculative-algorithm DSPARK"),
        s(f"{SG} {FLASH} --speculative-algorithm DSPARK"),
    ),
    "SG-20": (s(f"{SG} {FLASH}", "index_topk_freq=2"), s(f"{SG} {FLASH}", "index_topk_freq=1")),
    "SG-21": (s(f"{SG} {FLASH} --enable-deepseek-v4-fp4-indexer"), s(f"{SG} {FLASH}")),
    "SG-22": (
        s(f"{SG} {FLASH} {SPEC}", "version=0.5.13.post1"),
        s(f"{SG} {FLASH} {SPEC} --disable-cuda-graph", "version=0.5.13.post1"),
    ),
    "SG-23": (
        s(f"{SG} {FLASH} --kv-canary log --kv-canary-real-data none"),
        s(f"{SG} {FLASH} --kv-canary log --kv-canary-real-data partial"),
    ),
    "SG-24": (
        s(f"{SG} {FLASH}", "radix_cache=SWARadixCache", "client.context_tokens=200000"),
        s(f"{SG} {FLASH}", "radix_cache=UnifiedRadixCache", "client.context_tokens=200000"),
    ),
    "SG-25": (
        s(f"{SG} {FLASH}", "client.compares_bytes=true"),
        s(f"{SG} {FLASH}", "client.compares_bytes=false"),
    ),
    "SG-26": (s(f"{SG} {V41} --enable-dp-attention"), s(f"{SG} {V41}")),
    "SG-27": (
        s(f"{SG} {V32} {SPEC} --hicache-storage-backend file"),
        s(f"{SG} {V32} {SPEC}"),
    ),
    "SG-28": (
        s(f"{SG} {FLASH} {HICACHE}", "platform=hip"),
        s(f"{SG} {FLASH} {HICACHE} --hicache-io-backend direct", "platform=hip"),
    ),
    "SG-29": (s(f"{SG} {FLASH} {HICACHE} --disable-radix-cache"), s(f"{SG} {FLASH} {HICACHE}")),
    "SW-01": (
        s(f"SGLANG_TEST_RETRACT=1 {SG} {FLASH}"),
        s(f"SGLANG_TEST_RETRACT=0 {SG} {FLASH}"),
    ),
    "SW-02": (
        s(f"SGLANG_DIAG_BYPASS_HEALTH_GENERATE=1 {SG} {FLASH}"),
        s(f"SGLANG_DIAG_BYPASS_HEALTH_GENERATE=0 {SG} {FLASH}"),
    ),
    "SW-03": (s(f"SGLANG_RADIX_FORCE_MISS=1 {SG} {FLASH}"), s(f"{SG} {FLASH}")),
    "SW-04": (
        s(f"{SG} {FLASH} {HICACHE}", "load_back_tokens=0"),
        s(f"{SG} {FLASH} {HICACHE}", "load_back_tokens=4096"),
    ),
    "SW-05": (
        s(f"{SG} {FLASH} {HICACHE} --hicache-ratio 2 --hicache-size 100"),
        s(f"{SG} {FLASH} {HICACHE} --hicache-ratio 2"),
    ),
    "SW-06": (
        s(f"{SG} {FLASH} {HICACHE} --cuda-graph-backend-prefill full", "version=0.5.22"),
        s(f"{SG} {FLASH} {HICACHE} --cuda-graph-backend-prefill full", "version=0.5.23"),
    ),
    "SW-07": (
        s(f"{SG} {FLASH}", "router_unhealthy_workers=1"),
        s(f"{SG} {FLASH}", "router_unhealthy_workers=0"),
    ),
    "MODEL-01": (
        s(f"{SG} {F0731}", "client.temperature=0.2", "client.context_tokens=9000"),
        s(f"{SG} {F0731}", "client.temperature=0.8", "client.context_tokens=9000"),
    ),
    "MODEL-02": (
        s(f"{SG} {FLASH}", "client.tools=60", "client.tool_choice=auto"),
        s(f"{SG} {FLASH}", "client.tools=20", "client.tool_choice=auto"),
    ),
    "FE-01": (
        s(f"{SG} {FLASH} --reasoning-parser deepseek-v4", "frontend=dynamo 0.9"),
        s(f"{SG} {FLASH} --reasoning-parser deepseek-v4", "frontend=sglang-router"),
    ),
    "FE-02": (
        s(f"{SG} {FLASH}", "client.accepts_no_finish_reason=true"),
        s(f"{SG} {FLASH}", "client.accepts_no_finish_reason=false"),
    ),
    "FE-03": (
        s(f"{SG} {FLASH}", "client.sends_max_tokens=false"),
        s(f"{SG} {FLASH}", "client.sends_max_tokens=true"),
    ),
    "FE-04": (
        s(f"{SG} {FLASH}", "client.sends_reasoning_content=false"),
        s(f"{SG} {FLASH}", "client.sends_reasoning_content=true"),
    ),
    "FE-05": (
        s(f"{SG} {FLASH}", "client.gateway_changes_index=true"),
        s(f"{SG} {FLASH}", "client.gateway_changes_index=false"),
    ),
    "VL-01": (s(f"{VL} {FLASH}"), s(f"{VL} {FLASH} --enforce-eager")),
    "VL-01b": (
        s(f"{VL} {F0731} --tp 8 --enable-expert-parallel", "version=0.26.0", "gpu=H100"),
        s(f"{VL} {F0731} --tp 8 --enable-expert-parallel", "version=0.25.0", "gpu=H100"),
    ),
    "VL-02": (s(f"{VL} {FLASH}"), s(f"{VL} {FLASH} --enable-prefix-caching=false")),
    "VL-03": (
        s(f"{VL} {FLASH} --attention-backend FLASHINFER_MLA_SPARSE_DSV4"),
        s(f"{VL} {FLASH} --attention-backend FLASHMLA"),
    ),
    "VL-04": (s(f"{VL} {FLASH} {SPEC}"), s(f"{VL} {FLASH}")),
    "VL-05": (
        s(f"{VL} {FLASH}", "platform=cuda-sm120"),
        s(f"{VL} {FLASH} --sparse-indexer-topk-backend torch", "platform=cuda-sm120"),
    ),
    "VL-06": (
        s(f"{VL} {FLASH} --tool-call-parser deepseek_v4", "client.streams=true"),
        s(f"{VL} {FLASH} --tool-call-parser deepseek_v4", "client.streams=false"),
    ),
    "VL-07": (
        s(f"{VL} {FLASH}", "client.tool_choice=auto", "client.strict_tools=false"),
        s(f"{VL} {FLASH}", "client.tool_choice=auto", "client.strict_tools=true"),
    ),
    "VL-08": (
        s(f"{VL} {FLASH}", "client.streams=true"),
        s(f"{VL} {FLASH}", "client.streams=true", has=(40806,)),
    ),
    "VL-09": (
        s(f"{VL} {FLASH} --tool-call-parser deepseek_v4"),
        s(f"{VL} {FLASH} --tool-call-parser deepseek_v4", has=(41198,)),
    ),
    "VL-10": (
        s(f"{VL} {FLASH} {SPEC}", "gpu=RTX-PRO-6000"),
        s(f"{VL} {FLASH}", "gpu=RTX-PRO-6000"),
    ),
    "VL-11": (s(f"{VL} {FLASH} --kv-offloading-size 100"), s(f"{VL} {FLASH}")),
    "VL-12": (
        s(f"{VL} {FLASH}", "lmcache.local_disk=true", "lmcache=0.5.2"),
        s(f"{VL} {FLASH}", "lmcache.local_disk=true", "lmcache=0.5.3"),
    ),
    "VL-13": (
        s(f"{VL} {V41}", "platform=cuda-sm121"),
        s(f"{VL} {V41} --enforce-eager", "platform=cuda-sm121"),
    ),
    "VL-14": (
        s(f"{VL} {FLASH}", "version=0.27.1"),
        s(f"{VL} {FLASH} --cudagraph-mode PIECEWISE", "version=0.27.1"),
    ),
    "VL-15": (
        s(f"{VL} {FLASH}", "gpu=AMD MI300X"),
        s(f"{VL} {FLASH}", "gpu=NVIDIA H200"),
    ),
    "VL-16": (
        s(f"{VL} {FLASH}", "version=0.20.1", "client.context_tokens=100000"),
        s(f"{VL} {FLASH}", "version=0.21.0", "client.context_tokens=100000"),
    ),
    "VL-17": (
        s(f"{VL} {FLASH} --reasoning-parser deepseek_v4", "client.thinking_kwarg=false"),
        s(f"{VL} {FLASH} --reasoning-parser deepseek_v4", "client.thinking_kwarg=true"),
    ),
    "VL-18": (
        s(f"{VL} {FLASH}", "client.last_role=assistant"),
        s(f"{VL} {FLASH}", "client.last_role=user"),
    ),
    "VL-19": (s(f"{VL} {FLASH}", "version=0.20.0"), s(f"{VL} {FLASH}", "version=0.21.0")),
    "VL-20": (
        s(f"{VL} {V32}", "gpu=NVIDIA H20", "client.concurrency=8"),
        s(f"{VL} {V32}", "gpu=NVIDIA H20", "client.concurrency=1"),
    ),
    "VL-22": (
        s(
            f"VLLM_USE_BREAKABLE_CUDAGRAPH=1 {VL} {FLASH}",
            "gpu=NVIDIA H20",
            "client.context_tokens=200000",
        ),
        s(
            f"VLLM_USE_BREAKABLE_CUDAGRAPH=0 {VL} {FLASH}",
            "gpu=NVIDIA H20",
            "client.context_tokens=200000",
        ),
    ),
    "VL-23": (s(f"{VL} {FLASH}"), s(f"{VL} {FLASH}", has=(44082,))),
    "VL-24": (
        s(f"{VL} {FLASH}", "flashinfer=0.7.0"),
        s(f"{VL} {FLASH}", "flashinfer=0.6.9"),
    ),
    "VL-25": (s(f"{VL} {FLASH}", "index_k=mxfp4"), s(f"{VL} {FLASH}", "index_k=fp8")),
    "VA-01": (
        s(f"{VL} {FLASH}", "engine=vllm-ascend", "client.concurrency=60"),
        s(f"{VL} {FLASH}", "engine=vllm-ascend", "client.concurrency=1"),
    ),
    "VA-02": (
        s(f"{VL} {FLASH} {SPEC}", "engine=vllm-ascend"),
        s(f"{VL} {FLASH}", "engine=vllm-ascend"),
    ),
    "VA-03": (
        s(
            f"{VL} {FLASH}", "engine=vllm-ascend", "version=0.18.0", "client.thinking=true",
            "client.temperature=0.6",
        ),
        s(
            f"{VL} {FLASH}", "engine=vllm-ascend", "version=0.19.0", "client.thinking=true",
            "client.temperature=0.6",
        ),
    ),
    "VA-04": (
        s(
            f"{VL} {FLASH} --disaggregation-mode prefill", "engine=vllm-ascend",
            "peer_block_size_differs=true",
        ),
        s(
            f"{VL} {FLASH} --disaggregation-mode prefill", "engine=vllm-ascend",
            "peer_block_size_differs=false",
        ),
    ),
    "VA-05": (
        s(f"{VL} {FLASH} {SPEC}", "engine=vllm-ascend", "client.streams=true"),
        s(f"{VL} {FLASH} {SPEC}", "engine=vllm-ascend", "client.streams=false"),
    ),
}  # fmt: skip
