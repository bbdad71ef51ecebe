"""The files of an SGLang tree that say how DeepSeek-V4's pages are stored, read and restored."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

MEMORY_POOL = "srt/mem_cache/deepseek_v4_memory_pool.py"
CONFIGURATOR = "srt/model_executor/pool_configurator.py"
ASSEMBLER = "srt/mem_cache/hybrid_cache/hybrid_pool_assembler.py"
PREFILL_GRAPHS = "srt/model_executor/runner/prefill_cuda_graph_runner.py"
# Where pool data is read outside of the pools; globs under the package's folder.
READERS = ("srt/layers/attention/**/*.py", "srt/models/deepseek_v4*.py", "kernels/ops/**/*.py")
GLOBS = (
    CONFIGURATOR,
    PREFILL_GRAPHS,
    "srt/mem_cache/*.py",
    "srt/mem_cache/hybrid_cache/*.py",
    "srt/mem_cache/pool_host/*.py",
    *READERS,
)

TOKEN_POOL = "DeepSeekV4TokenToKVPool"
INDEXER_POOL = "DeepSeekV4IndexerPool"
CONFIGURATOR_CLASS = "DSV4PoolConfigurator"
HICACHE_BUILDER = "build_deepseek_v4_hicache_stack"


class SourceTree:
    """Texts by their path under the package, parsed when asked for.

    `unread` says why a file that was asked for is no syntax tree.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files
        self.unread: dict[str, str] = {}
        self._modules: dict[str, ast.Module | None] = {}

    def module(self, path: str) -> ast.Module | None:
        """The file's syntax tree; None where there is no such file, or it is no Python."""
        if path not in self._modules:
            self._modules[path] = self._parse(path)
        return self._modules[path]

    def _parse(self, path: str) -> ast.Module | None:
        text = self.files.get(path)
        if text is None:
            return None
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as problem:
            line = getattr(problem, "lineno", None)
            at = f", line {line}" if line else ""
            self.unread[path] = f"no Python that can be read{at}"
            return None

    def mentioning(
        self, heads: tuple[str, ...], words: re.Pattern[str]
    ) -> Iterator[tuple[str, ast.Module]]:
        """The files under `heads` whose text has `words` in it, in path order."""
        for path in sorted(self.files):
            if path.startswith(heads) and words.search(self.files[path]):
                module = self.module(path)
                if module is not None:
                    yield path, module


def class_named(module: ast.Module | None, name: str) -> ast.ClassDef | None:
    """The top-level class `name`; None when there is none."""
    for statement in module.body if module is not None else ():
        if isinstance(statement, ast.ClassDef) and statement.name == name:
            return statement
    return None


def methods_of(owner: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """The methods that the class itself defines; the last of a name counts, as in Python."""
    return {node.name: node for node in owner.body if isinstance(node, ast.FunctionDef)}


def statements_of(function: ast.FunctionDef) -> list[ast.stmt]:
    """The body without its docstring."""
    body = function.body
    first = body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return body[1:]
    return body


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a chain of names; the part that is no name is left out."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def called(node: ast.AST) -> str:
    """The dotted name that a call calls; empty where it is no call."""
    return dotted(node.func) if isinstance(node, ast.Call) else ""
