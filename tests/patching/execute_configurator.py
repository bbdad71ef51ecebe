"""Runs one tree's real `DSV4PoolConfigurator` under stubs and prints what it computes, row by row.

    python execute_configurator.py PACKAGE < ROWS      (a list, in the keys of `size --spec`)

Everything of SGLang that is not listed in REAL, and torch, is a stub; server state comes from the
inputs. Its own process, since it fills `sys.modules`.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

PACKAGE, INPUTS = Path(sys.argv[1]), json.load(sys.stdin)
REAL = (
    "sglang.srt.model_executor.pool_configurator",
    "sglang.srt.mem_cache.deepseek_v4_memory_pool",
    "sglang.kernels.ops.attention.dsv4.kv_layout",
)
TRUE = ("1", "true", "yes", "y")


class StubType(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return make_stub(name)

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__


class Stub(metaclass=StubType):
    """Answers every attribute and call with a stub; false, so that every switch is off."""

    def __init__(self, *args: Any, **keywords: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return make_stub(name)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        # As a decorator it hands its function back.
        return args[0] if len(args) == 1 and callable(args[0]) and not keywords else Stub()

    def __bool__(self) -> bool:
        return False

    def __iter__(self) -> Any:
        return iter(())


def make_stub(name: str) -> Any:
    return StubType(name, (Stub,), {})


class Switch:
    """One of `envs`: read from the environment, defaults as every release has them."""

    DEFAULTS: ClassVar = {
        "SGLANG_DSV4_COMPRESS_STATE_DTYPE": "float32",
        "SGLANG_DSV4_KV_LAYOUT": "v4",
        "SGLANG_DSV4_COMPRESSED_KV_LAYOUT": "auto",
        "SGLANG_SWA_EVICTION_INTERVAL": 128,
        "SGLANG_HACK_FLASHMLA_BACKEND": "",
    }

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self) -> Any:
        if self.name in self.DEFAULTS:
            value = os.environ.get(self.name, self.DEFAULTS[self.name])
            return int(value) if isinstance(self.DEFAULTS[self.name], int) else value
        return os.environ.get(self.name, "").lower() in TRUE


class Envs:
    def __getattr__(self, name: str) -> Switch:
        return Switch(name)


SERVER = SimpleNamespace(
    enable_hisparse=False,
    enable_encoder_swa_bounded_replay=False,
    speculative_num_steps=3,
    speculative_eagle_topk=1,
    kernel=None,
    features=None,
)
SERVER.kernel = SERVER.features = SERVER


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def bag() -> Any:
    return SERVER


KNOWN: dict[str, dict[str, Any]] = {
    "sglang.srt.environ": {"envs": Envs()},
    "torch": {"float32": SimpleNamespace(itemsize=4)},
}
SHARED = {
    "ceil_div": ceil_div,
    "ceil_align": lambda a, b: ceil_div(a, b) * b,
    "max_speculative_num_draft_tokens": lambda: None,
    **{
        f"get_{name}": bag
        for name in ("schedule", "spec", "disagg", "memory", "exec", "server_args", "features")
    },
    "get_global_server_args": bag,
}


class StubModule(ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = KNOWN.get(self.__name__, {})
        if name in known:
            return known[name]
        return SHARED[name] if name in SHARED else make_stub(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name in REAL:
            file = PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py")
            return importlib.util.spec_from_file_location(name, file)
        if name.split(".", maxsplit=1)[0] in (
            "sglang",
            "torch",
            "sgl_kernel",
            "triton",
            "msgspec",
            "numpy",
        ):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> ModuleType:
        return StubModule(spec.name)

    def exec_module(self, module: ModuleType) -> None: ...


sys.meta_path.insert(0, Finder())
configurator = importlib.import_module(REAL[0])

configurator.get_alloc_len_per_decode = lambda: (
    max(SERVER.speculative_num_steps, SERVER.speculative_num_draft_tokens or 1)
    if SERVER.speculative_algorithm
    else 1
)


def alloc_without_overlap(*, page_size: int, **spec: Any) -> int:
    """What spec-v1 allocates for one decode step of one request, topk 1."""
    steps, drafts = spec["speculative_num_steps"] or 1, spec["speculative_num_draft_tokens"] or 1
    return max(ceil_div(steps, page_size), ceil_div(drafts, page_size)) * page_size


configurator.spec_decode_alloc_len_per_request = alloc_without_overlap


def set_server(row: dict[str, Any]) -> None:
    ratio, drafts = row["swa_full_tokens_ratio"], row["speculative_num_draft_tokens"]
    vars(SERVER).update(
        swa_full_tokens_ratio=ratio,
        _swa_full_tokens_ratio_explicitly_set=ratio is not None,
        speculative_algorithm=row["speculative"],
        speculative_num_draft_tokens=drafts,
        max_speculative_num_draft_tokens=drafts,
        max_running_requests=row["max_running_requests"],
        disaggregation_mode=row["disaggregation_mode"],
        disaggregation_decode_extra_slots=row["disaggregation_decode_extra_slots"],
        chunked_prefill_size=row["chunked_prefill_size"],
        disable_overlap_schedule=row["disable_overlap_schedule"],
        disable_radix_cache=row["disable_radix_cache"],
        swa_prefix_tails=row["swa_prefix_tails"],
        page_size=row["page_size"],
        dsv4_attn_backend=row["dsv4_attn_backend"],
        enable_deepseek_v4_fp4_indexer=row["index_dtype"] == "fp4",
    )
    configurator.max_speculative_num_draft_tokens = lambda: drafts
    os.environ.update(row["env"])


def runner_of(row: dict[str, Any]) -> SimpleNamespace:
    """What the configurator is built from: a model runner, later a cache configurator."""
    layers, algorithm, dp = row["num_hidden_layers"], row["speculative"], row["attn_dp_size"]
    return SimpleNamespace(
        model_config=SimpleNamespace(
            qk_nope_head_dim=448,
            qk_rope_head_dim=64,
            index_head_dim=128,
            compress_ratios=row["compress_ratios"],
            window_size=128,
            context_len=1_048_576,
            hf_config=SimpleNamespace(kv_source_layer_ids=tuple(row["kv_source_layer_ids"])),
        ),
        server_args=SERVER,
        spec_algorithm=SimpleNamespace(
            is_none=lambda: algorithm is None,
            is_eagle=lambda: algorithm == "EAGLE",
            is_dspark=lambda: algorithm == "DSPARK",
        ),
        enable_hisparse=False,
        start_layer=0,
        end_layer=layers,
        layer_info=SimpleNamespace(start_layer=0, end_layer=layers),
        pp_size=1,
        ps=SimpleNamespace(pp_size=1, attn_dp_size=dp),
        dp_size=dp,
        attn_dp_size=dp,
        page_size=row["page_size"],
        sliding_window_size=128,
        kv_cache_dtype_str="fp8_e4m3",
        spec_aux_config=None,
    )


def run(row: dict[str, Any]) -> dict[str, Any]:
    set_server(row)
    try:
        sized = configurator.DSV4PoolConfigurator(runner_of(row))
        config = sized.calculate_pool_sizes(row["available_bytes"], row["page_size"])
    except (RuntimeError, ValueError, AssertionError) as problem:
        return {"error": f"{type(problem).__name__}: {problem}"}
    return {
        "bytes_per_full_token": sized.bytes_per_full_token,
        "full": config.full_max_total_num_tokens,
        "swa": config.swa_max_total_num_tokens,
        "c4": config.c4_max_total_num_tokens,
        "c128": config.c128_max_total_num_tokens,
        "c4_state": config.c4_state_pool_size,
        "c128_state_before_finalize": config.c128_state_pool_size,
    }


print(json.dumps([run(row) for row in INPUTS]))
