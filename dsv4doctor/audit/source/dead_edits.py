"""Edits that cannot matter: classes that DeepSeek-V4 does not use, changed as if it did.

Seen: bf16 index-K was patched into `DSAIndexerPoolHost`, which serves V3.2; V4's pages go through
`DeepSeekV4PagedHostPool`. The improvement that followed was noise. An edit shows by a V4 switch in
a class that V4 never reaches, or by comparison with an unedited tree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dsv4doctor.audit.source.tree import (
    ASSEMBLER,
    CONFIGURATOR_CLASS,
    HICACHE_BUILDER,
    INDEXER_POOL,
    TOKEN_POOL,
    SourceTree,
)

_HEADS = ("srt/mem_cache/", "srt/model_executor/")
_DEFINED = re.compile(r"^(?:class|def) (\w+)", re.MULTILINE)
# A variable of the environment that is about V4, or about how index-K is stored.
_SWITCH = re.compile(r"SGLANG_\w*(?:DSV4|DEEPSEEK_V4|INDEX_K|BF16_INDEX)\w*")
_ROOTS = (HICACHE_BUILDER, TOKEN_POOL, INDEXER_POOL, CONFIGURATOR_CLASS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEdit:
    """A class edited for V4 that V4 does not use, and the classes that V4 uses in its place."""

    name: str
    path: str
    line: int
    why: str
    used_instead: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """`dead` ones, and the `live` ones that comparison found: definitions that V4 does reach."""

    dead: tuple[DeadEdit, ...]
    live: tuple[str, ...]


def find_edits(tree: SourceTree, base: SourceTree | None) -> Edits:
    """Edits by their switches, and, with an unedited `base`, every changed class and function."""
    if tree.module(ASSEMBLER) is None:
        return Edits(dead=(), live=())
    reached = _reached(tree)
    dead, live = [], []
    for path, node, why in _edited(tree, base):
        if node.name in reached:
            live.append(f"{path}:{node.lineno} {node.name}")
        elif isinstance(node, ast.ClassDef):
            dead.append(
                DeadEdit(
                    name=node.name,
                    path=path,
                    line=node.lineno,
                    why=why,
                    used_instead=_instead_of(node.name, reached),
                )
            )
    return Edits(dead=tuple(dead), live=tuple(live) if base is not None else ())


_Definition = ast.ClassDef | ast.FunctionDef


def _edited(tree: SourceTree, base: SourceTree | None) -> Iterator[tuple[str, _Definition, str]]:
    for path, module in tree.mentioning(_HEADS, _SWITCH):
        aliases = _aliases(module)
        for node in _definitions(module):
            switch = _switch_in(node, aliases)
            if switch and (base is None or _differs(base, path, node)):
                yield path, node, f"reads {switch}"
    if base is None:
        return
    for path in sorted(tree.files):
        if not path.startswith(_HEADS) or tree.files[path] == base.files.get(path):
            continue
        changed = tree.module(path)
        for node in _definitions(changed):
            if _differs(base, path, node) and not _switch_in(node, _aliases(changed)):
                yield path, node, "differs from the unedited tree"


def _definitions(module: ast.Module | None) -> list[_Definition]:
    body = module.body if module is not None else []
    return [node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)]


def _differs(base: SourceTree, path: str, node: _Definition) -> bool:
    """Whether the definition is another one in `base`, comments and layout aside."""
    for other in _definitions(base.module(path)):
        if other.name == node.name:
            return ast.dump(other) != ast.dump(node)
    return True


def _aliases(module: ast.Module | None) -> dict[str, str]:
    """Module-level names bound to an expression that reads such a switch."""
    found = {}
    for statement in module.body if module is not None else []:
        if not isinstance(statement, ast.Assign):
            continue
        match = _SWITCH.search(ast.unparse(statement.value))
        for target in statement.targets:
            if match is not None and isinstance(target, ast.Name):
                found[target.id] = match[0]
    return found


def _switch_in(node: ast.AST, aliases: dict[str, str]) -> str:
    """The switch that a definition reads, by name or alias; comments do not count."""
    for inner in ast.walk(node):
        text = ""
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            text = inner.value if " " not in inner.value else ""
        elif isinstance(inner, ast.Attribute):
            text = inner.attr
        elif isinstance(inner, ast.Name):
            text = aliases.get(inner.id, inner.id)
        match = _SWITCH.fullmatch(text)
        if match is not None:
            return match[0]
    return ""


def _reached(tree: SourceTree) -> frozenset[str]:
    """Classes and functions that V4's pools and their HiCache stack are made of."""
    where: dict[str, str] = {}
    for path in sorted(tree.files):
        if path.startswith(_HEADS):
            for name in _DEFINED.findall(tree.files[path]):
                where.setdefault(name, path)
    reached: set[str] = set()
    todo = [name for name in _ROOTS if name in where]
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        for node in _definitions(tree.module(where[name])):
            if node.name == name:
                todo += [other for other in _used(node) if other in where]
    return frozenset(reached)


def _used(node: ast.AST) -> set[str]:
    """Names that a definition's code uses: annotations and questions of type make nothing."""
    found: set[str] = set()
    skipped: set[int] = set()
    for inner in ast.walk(node):
        if id(inner) in skipped:
            continue
        asked: list[ast.AST | None] = []
        if isinstance(inner, ast.arg | ast.AnnAssign):
            asked = [inner.annotation]
        elif isinstance(inner, ast.FunctionDef):
            asked = [inner.returns]
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name):
            asked = (
                list(inner.args) if inner.func.id in ("isinstance", "issubclass", "cast") else []
            )
        for part in asked:
            if part is not None:
                skipped |= {id(child) for child in ast.walk(part)}
        if isinstance(inner, ast.Name):
            found.add(inner.id)
    return found


def _instead_of(name: str, reached: frozenset[str]) -> tuple[str, ...]:
    """What V4 uses on the same side: host pools for a host pool, device pools for a device one."""
    is_host = "Host" in name
    return tuple(
        sorted(
            other
            for other in reached
            if other.startswith("DeepSeekV4")
            and "Pool" in other
            and ("Host" in other) == is_host
            and "HiSparse" not in other
        )
    )
