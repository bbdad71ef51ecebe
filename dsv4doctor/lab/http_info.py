"""What the lab says of itself: `/server_info`, `/model_info`, `/v1/models`, in SGLang's fields."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from dsv4doctor.lab.http_launch import BF16_INDEX_K_VARIABLE, LaunchOptions
from dsv4doctor.lab.http_metrics import Gauges
from dsv4doctor.lab.layouts import PAGE_TOKENS

ARCHITECTURE = "DeepseekV4ForCausalLM"
MODEL_TYPE = "deepseek_v4"


def server_args(options: LaunchOptions, *, port: int) -> dict[str, Any]:
    """The launch arguments under SGLang's names, as resolved at boot."""
    return {
        "model_path": options.model_path,
        "tokenizer_path": options.model_path,
        "served_model_name": options.served_model_name,
        "trust_remote_code": True,
        "host": options.host,
        "port": port,
        "context_length": options.context_length,
        "device": "cpu",
        "tp_size": 1,
        "dp_size": 1,
        "pp_size": 1,
        "ep_size": 1,
        "random_seed": options.seed,
        "kv_cache_dtype": "fp8_e4m3",
        "page_size": PAGE_TOKENS,
        "attention_backend": "dsv4",
        "swa_full_tokens_ratio": 0.1,
        "max_running_requests": options.max_running_requests,
        "schedule_policy": "fcfs",
        "disable_radix_cache": False,
        "disable_overlap_schedule": not options.overlap_schedule,
        "enable_hierarchical_cache": options.hicache,
        "hicache_ratio": options.hicache_ratio,
        "hicache_size": 0,
        "hicache_write_policy": "write_through",
        "hicache_io_backend": "kernel",
        "hicache_mem_layout": "page_first",
        "hicache_storage_backend": None,
        "enable_deepseek_v4_fp4_indexer": options.index_k == "fp4",
        "disaggregation_mode": options.disaggregation_mode,
        "disaggregation_transfer_backend": "nixl",
        "disaggregation_bootstrap_port": options.bootstrap_port,
        "speculative_algorithm": None,
        "tool_call_parser": options.tool_call_parser,
        "reasoning_parser": options.reasoning_parser,
        "enable_metrics": True,
        "enable_cache_report": True,
        "watchdog_timeout": 300,
        "api_key": "***" if options.api_key else None,
        "admin_api_key": None,
    }


def own_environment(options: LaunchOptions) -> dict[str, str]:
    """The server's SGLANG_ variables, with the index-K one as it is in force."""
    environment = {
        name: value for name, value in options.environment.items() if name.startswith("SGLANG_")
    }
    environment.pop(BF16_INDEX_K_VARIABLE, None)
    if options.index_k == "bf16":
        environment[BF16_INDEX_K_VARIABLE] = "1"
    return environment


def server_info(
    options: LaunchOptions, *, port: int, version: str, engine: Gauges, throughput: float
) -> dict[str, Any]:
    """The body of `/server_info`. `env_vars` is shown as with SGLANG_EXPOSE_OWN_ENV_VARS."""
    arguments = server_args(options, port=port)
    capacity = int(engine.get("max_total_num_tokens", 0))
    state = {
        **arguments,
        "last_gen_throughput": throughput,
        "memory_usage": {"weight": 0.0, "kvcache": 0.0, "token_capacity": capacity, "graph": 0.0},
        "effective_max_running_requests_per_dp": options.max_running_requests,
        "env_vars": own_environment(options),
    }
    return {
        **arguments,
        "launch_command": options.launch_command,
        "max_total_num_tokens": capacity,
        "max_req_input_len": options.context_length - 6,
        "internal_states": [state],
        "version": version,
        "kv_events": None,
    }


def model_info(options: LaunchOptions) -> dict[str, Any]:
    """The body of `/model_info`."""
    return {
        "model_path": options.model_path,
        "served_model_name": options.served_model_name,
        "tokenizer_path": options.model_path,
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "load_format": "dummy",
        "reasoning_parser": options.reasoning_parser,
        "tool_call_parser": options.tool_call_parser,
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": MODEL_TYPE,
        "architectures": [ARCHITECTURE],
        "disaggregation_mode": options.disaggregation_mode,
    }


def model_card(options: LaunchOptions) -> dict[str, Any]:
    """The one model of `/v1/models`."""
    return {
        "id": options.served_model_name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "sglang",
        "root": options.served_model_name,
        "parent": None,
        "max_model_len": options.context_length,
    }


def unknown_model(name: str) -> Mapping[str, Any]:
    """The 404 body of `/v1/models/NAME`."""
    return {
        "error": {
            "message": f"The model '{name}' does not exist",
            "type": "invalid_request_error",
            "param": "model",
            "code": "model_not_found",
        }
    }
