"""Stands in for torchvision, which SGLang and transformers import for pictures that nobody sends.

Any submodule can be imported and any name taken from it; each is a class that can do nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__version__ = "0.28.0"


class _Named(type):
    """Classes whose every public attribute is a class again (`InterpolationMode.BILINEAR`)."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("_"):
            raise AttributeError(name)
        made = _Named(name, (), {})
        setattr(cls, name, made)
        return made


class _Anything(ModuleType):
    def __getattr__(self, name: str) -> type:
        if name.startswith("_"):
            raise AttributeError(name)
        made = _Named(name, (), {})
        setattr(self, name, made)
        return made


class _Submodules(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{__name__}."):
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        made = _Anything(spec.name)
        made.__path__ = []
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: names are made when they are asked for."""


sys.meta_path.append(_Submodules())
