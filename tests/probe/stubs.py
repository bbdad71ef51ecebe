"""Stand-ins for what a released SGLang imports and a CPU test machine has not.

`MISSING` are third-party packages, `LEFT_OUT` parts of SGLang that no cache page passes through
(model code, quantisation, configuration of other models). Every name in them is an empty class:
false, callable, subclassable.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any

MISSING = (
    "IPython", "PIL", "deep_gemm", "dill", "einops", "fastapi", "flashinfer", "huggingface_hub",
    "pybase64", "requests", "safetensors", "setproctitle", "sgl_kernel", "starlette",
    "torchvision", "tqdm", "transformers", "tvm_ffi", "uvicorn", "zmq",
)  # fmt: skip
LEFT_OUT = (
    "sglang.srt.configs", "sglang.srt.constrained", "sglang.srt.function_call",
    "sglang.srt.grpc", "sglang.srt.layers.moe", "sglang.srt.layers.quantization",
    "sglang.srt.lora.backend", "sglang.srt.lora.layers", "sglang.srt.lora.lora_manager",
    "sglang.srt.model_loader", "sglang.srt.models", "sglang.srt.multimodal",
    "sglang.srt.speculative", "sglang.srt.utils.hf_transformers",
    "sglang.srt.utils.hf_transformers_patches", "sglang.srt.utils.hf_transformers_utils",
)  # fmt: skip


class StubType(type):
    """Any attribute of a stub is a stub."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StubType(name, (Stub,), {})

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__

    def __getitem__(cls, key: Any) -> Any:
        return cls

    def __setitem__(cls, key: Any, value: Any) -> None: ...

    def __contains__(cls, key: Any) -> bool:
        return False

    def __iter__(cls) -> Any:
        return iter(())

    def __len__(cls) -> int:
        return 0

    def __bool__(cls) -> bool:
        return False


class Stub(metaclass=StubType):
    """An instance of anything; as a decorator it hands its function back."""

    def __init_subclass__(cls, **keywords: Any) -> None: ...

    def __init__(self, *arguments: Any, **keywords: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub()

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        alone = len(arguments) == 1 and callable(arguments[0]) and not keywords
        return arguments[0] if alone else Stub()

    def __class_getitem__(cls, key: Any) -> Any:
        return cls

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None: ...

    def __getitem__(self, key: Any) -> Any:
        return Stub()

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False


class StubModule(ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = StubType(name, (Stub,), {})
        setattr(self, name, found)
        return found


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the stubbed modules; those that are installed after all are left real."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = set(names)
        self.used: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        parts = name.split(".")
        prefixes = {".".join(parts[: end + 1]) for end in range(len(parts))}
        hit = prefixes & self._names
        if not hit:
            return None
        self.used |= hit
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> ModuleType:
        module = StubModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: ModuleType) -> None: ...


def install_stubs() -> StubFinder:
    """Put stubs where nothing is installed; from here on every import of SGLang may run."""
    absent = tuple(name for name in MISSING if importlib.util.find_spec(name) is None)
    finder = StubFinder(absent + LEFT_OUT)
    sys.meta_path.insert(0, finder)
    return finder
