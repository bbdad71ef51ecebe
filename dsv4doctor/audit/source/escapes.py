"""Pool data taken past the token pool's accessors: in the model, the attention, the kernels.

Seen: whoever takes `pool.swa_kv_pool.kv_buffer[layer]` himself takes it ungated. A fused store that
writes new rows may; a read may not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dsv4doctor.audit.source.gates import WRITE_ONLY
from dsv4doctor.audit.source.tree import SourceTree, called

_HEADS = ("srt/layers/attention/", "srt/models/deepseek_v4", "kernels/ops/")
_POOLS = frozenset({
    "swa_kv_pool", "c4_kv_pool", "c128_kv_pool", "c4_indexer_kv_pool", "unified_kv_pool",
    "compress_kv_pool",
})  # fmt: skip
_TABLES = frozenset({
    "kv_pools", "index_pools", "compress_state_pools", "indexer_compress_state_pools",
})  # fmt: skip
_DATA = frozenset({
    "kv_buffer", "kv_buffer_rope", "get_key_buffer", "get_unified_kv", "get_unified_kv_rope",
    "index_k_with_scale_buffer", "index_k_payload_buffer", "index_k_scale_buffer",
    "kv_score_buffer",
})  # fmt: skip
_WORDS = re.compile(r"\.(?:" + "|".join(sorted(_POOLS | _TABLES | WRITE_ONLY)) + r")\b")
_STORE_WORDS = ("store", "write", "set_", "scatter", "copy_to")


@dataclass(frozen=True, slots=True, kw_only=True)
class Escape:
    """One place where pool data is taken past its accessor; a store if all its uses are stores."""

    path: str
    line: int
    what: str
    is_store: bool


def escapes(tree: SourceTree) -> tuple[Escape, ...]:
    """Every place in the readers' files, in path and line order."""
    found = []
    for path, module in tree.mentioning(_HEADS, _WORDS):
        for function in _functions(module):
            found += _in_function(path, function)
    return tuple(sorted(found, key=lambda escape: (escape.path, escape.line)))


def _functions(module: ast.Module) -> Iterator[ast.FunctionDef]:
    """Outermost functions and methods: a nested one belongs to its surroundings."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from (inner for inner in node.body if isinstance(inner, ast.FunctionDef))


def _in_function(path: str, function: ast.FunctionDef) -> list[Escape]:
    parents = {
        id(child): parent for parent in ast.walk(function) for child in ast.iter_child_nodes(parent)
    }
    aliases = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _names_pool(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return [
        Escape(
            path=path,
            line=node.lineno,
            what=ast.unparse(node),
            is_store=_is_store(node, function, parents),
        )
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Call) and _takes(node, aliases)
    ]


def _names_pool(node: ast.expr) -> bool:
    """An expression whose value is a pool; a choice between two is one."""
    if isinstance(node, ast.IfExp):
        return _names_pool(node.body) or _names_pool(node.orelse)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr in _TABLES
    return isinstance(node, ast.Attribute) and node.attr in _POOLS


def _takes(node: ast.expr, aliases: set[str]) -> bool:
    if isinstance(node, ast.Call):
        return called(node).rpartition(".")[2] in WRITE_ONLY
    if not isinstance(node, ast.Attribute):
        return False
    is_data = node.attr in _DATA or node.attr.startswith("get_index_k_")
    if not is_data or node.attr.endswith("_page_size"):
        return False
    owner = node.value
    return _names_pool(owner) or (isinstance(owner, ast.Name) and owner.id in aliases)


def _is_store(node: ast.AST, function: ast.FunctionDef, parents: dict[int, ast.AST]) -> bool:
    """Every use of the value is an argument of a call that stores."""
    statement = node
    while id(statement) in parents and not isinstance(statement, ast.stmt):
        if isinstance(statement, ast.Call) and statement is not node and _stores(statement):
            return True
        statement = parents[id(statement)]
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    name = statement.targets[0].id
    uses = [
        parents[id(use)]
        for use in ast.walk(function)
        if isinstance(use, ast.Name) and use.id == name and isinstance(use.ctx, ast.Load)
    ]
    calls = [parents[id(use)] if isinstance(use, ast.keyword) else use for use in uses]
    return bool(calls) and all(_stores(use) for use in calls)


def _stores(node: ast.AST) -> bool:
    name = called(node).rpartition(".")[2].lower()
    return any(word in name for word in _STORE_WORDS)
