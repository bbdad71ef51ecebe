"""What an SGLang tree is to the fixes: two files, and what the indexer pool in one stores."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst

CONFIGURATOR = "srt/model_executor/pool_configurator.py"
MEMORY_POOL = "srt/mem_cache/deepseek_v4_memory_pool.py"
# Where the package's folder can lie under the folder that a person names.
ROOTS = ("", "sglang", "python/sglang", "src/sglang")

INDEXER_CLASS = "DeepSeekV4IndexerPool"
TOKEN_POOL_CLASS = "DeepSeekV4TokenToKVPool"
CONFIGURATOR_CLASS = "DSV4PoolConfigurator"
BYTES_FUNCTION = "get_dsv4_indexer_bytes_per_token"

_SWITCH = re.compile(r"\bSGLANG_\w*(?:BF16_INDEX|INDEX_\w*BF16|INDEXER_BF16|BF16_INDEXER)\w*\b")


class Unrecognised(Exception):
    """The tree is not one that these fixes know; the message says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStore:
    """What the indexer pool stores beside fp8: bf16 behind `switch`, fp4 behind its argument.

    `priced_by_pool`: the switch is read in the function that the configurator prices by.
    """

    switch: str | None
    stores_bf16: bool
    stores_fp4: bool
    priced_by_pool: bool


def parse_module(text: str, path: str) -> cst.Module:
    """The syntax tree of `text`.

    Raises:
        Unrecognised: it is no Python.
    """
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as problem:
        raise Unrecognised(f"{path} is no Python that can be read: {problem.message}") from problem


def find_class(module: cst.Module, name: str) -> cst.ClassDef | None:
    """The top-level class `name`; None when there is none."""
    for statement in module.body:
        if isinstance(statement, cst.ClassDef) and statement.name.value == name:
            return statement
    return None


def edit_methods(
    module: cst.Module,
    class_name: str,
    edit: Callable[[str, Sequence[cst.BaseStatement]], Sequence[cst.BaseStatement]],
) -> cst.Module:
    """`module` with each method's statements, in one class, as `edit` returns them."""

    def method(statement: cst.CSTNode) -> cst.CSTNode:
        if not isinstance(statement, cst.FunctionDef):
            return statement
        block = statement.body
        if not isinstance(block, cst.IndentedBlock):
            return statement
        changed = edit(statement.name.value, list(block.body))
        return statement.with_changes(body=block.with_changes(body=list(changed)))

    body = []
    for node in module.body:
        if not (isinstance(node, cst.ClassDef) and node.name.value == class_name):
            body.append(node)
            continue
        inner = [method(statement) for statement in node.body.body]
        body.append(node.with_changes(body=node.body.with_changes(body=inner)))
    return module.with_changes(body=body)


def code_of(node: cst.CSTNode) -> str:
    """The source text of `node`, comments and strings included."""
    return str(cst.Module(body=[]).code_for_node(node))


def read_index_store(module: cst.Module) -> IndexStore:
    """What the memory-pool module's indexer pool stores.

    Raises:
        Unrecognised: the module has no DSV4 indexer pool.
    """
    indexer = find_class(module, INDEXER_CLASS)
    if indexer is None:
        raise Unrecognised(f"{MEMORY_POOL} has no class {INDEXER_CLASS}")
    function = _function(module, BYTES_FUNCTION)
    in_class, in_function = code_of(indexer), code_of(function) if function else ""
    aliases = _aliases(module)
    switch = _switch_in(in_class, aliases) or _switch_in(in_function, aliases)
    code = _without_strings(in_class)
    return IndexStore(
        switch=switch,
        stores_bf16=switch is not None or _stores_bf16(code),
        stores_fp4="use_fp4_indexer" in in_class,
        priced_by_pool=switch is not None and _switch_in(in_function, aliases) is not None,
    )


def _stores_bf16(code: str) -> bool:
    """A row of two bytes a value, written out: what no release has."""
    return bool(re.search(r"index_head_dim\s*\*\s*2\b|\b2\s*\*\s*self\.index_head_dim", code))


def _without_strings(code: str) -> str:
    return re.sub(r'"""(?:.|\n)*?"""|#[^\n]*', "", code)


def _function(module: cst.Module, name: str) -> cst.FunctionDef | None:
    for statement in module.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == name:
            return statement
    return None


def _aliases(module: cst.Module) -> dict[str, str]:
    """Module-level names bound to an expression that reads the switch, or functions that do."""
    found: dict[str, str] = {}
    for statement in module.body:
        text = code_of(statement)
        match = _SWITCH.search(text)
        if match is None:
            continue
        if isinstance(statement, cst.FunctionDef) and statement.name.value != BYTES_FUNCTION:
            found[statement.name.value] = match[0]
        elif isinstance(statement, cst.SimpleStatementLine):
            for name in re.findall(r"^\s*(\w+)\s*(?::[^=]+)?=", text, re.MULTILINE):
                found[name] = match[0]
    return found


def _switch_in(code: str, aliases: dict[str, str]) -> str | None:
    match = _SWITCH.search(code)
    if match is not None:
        return match[0]
    for name, switch in aliases.items():
        if re.search(rf"\b{re.escape(name)}\b", code):
            return switch
    return None
