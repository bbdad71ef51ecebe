"""Fix (b): every index-K read of the V4 token pool waits until its layer is loaded.

Seen: HiCache copies pages back layer by layer; a read without `wait_layer_transfer` scores whatever
bytes the page still holds. The gate is one call, the first statement of the read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import libcst as cst

from dsv4doctor.patching.tree import (
    MEMORY_POOL,
    TOKEN_POOL_CLASS,
    Unrecognised,
    code_of,
    edit_methods,
    find_class,
    parse_module,
)

GATE = "wait_layer_transfer"
_WAITS = re.compile(rf"self\.{GATE}\(|self\.layer_transfer_counter\.wait_until\(")
_DELEGATES = re.compile(r"\bself\.(\w+)\(")
_READ = re.compile(r"get_\w*index_k\w*")
# Named like reads, and no read of a page: sizes, layouts, address tables.
_NO_READ = re.compile(r"page_size|layout|bytes_per_token|buf_infos|is_split|page8")


def ungated_reads(text: str) -> tuple[str, ...]:
    """The index-K reads of the token pool that do not wait, in source order.

    Raises:
        Unrecognised: there is no token pool, or it has no gate at all.
    """
    pool = find_class(parse_module(text, MEMORY_POOL), TOKEN_POOL_CLASS)
    if pool is None:
        raise Unrecognised(f"{MEMORY_POOL} has no class {TOKEN_POOL_CLASS}")
    methods = {
        statement.name.value: statement
        for statement in pool.body.body
        if isinstance(statement, cst.FunctionDef)
    }
    if GATE not in methods:
        raise Unrecognised(f"{TOKEN_POOL_CLASS} has no {GATE}: it is older than its gates")
    return tuple(
        name
        for name, method in methods.items()
        if _is_read(method) and not _is_gated(method, methods)
    )


def _is_read(method: cst.FunctionDef) -> bool:
    name = method.name.value
    if _READ.fullmatch(name) is None or _NO_READ.search(name) is not None:
        return False
    return "layer_id" in _parameters(method)


def _parameters(method: cst.FunctionDef) -> tuple[str, ...]:
    return tuple(parameter.name.value for parameter in method.params.params)


def _is_gated(method: cst.FunctionDef, methods: Mapping[str, cst.FunctionDef]) -> bool:
    """The body waits, or hands over to a method of the pool that waits."""
    code = _body(method)
    if _WAITS.search(code):
        return True
    return any(
        name in methods and name != method.name.value and _WAITS.search(_body(methods[name]))
        for name in _DELEGATES.findall(code)
    )


def _body(method: cst.FunctionDef) -> str:
    """The body's source without comments and docstrings: a gate in a comment is none."""
    return re.sub(r'#[^\n]*|"""(?:.|\n)*?"""', "", code_of(method.body))


def gate_reads(text: str, names: tuple[str, ...]) -> str:
    """The memory pool's source with a gate at the head of each of `names`."""

    def gated(name: str, statements: Sequence[cst.BaseStatement]) -> Sequence[cst.BaseStatement]:
        if name not in names:
            return statements
        place = 1 if _is_docstring(statements[0]) else 0
        gate = cst.parse_statement(f"self.{GATE}(layer_id)\n")
        return [*statements[:place], gate, *statements[place:]]

    module = parse_module(text, MEMORY_POOL)
    return str(edit_methods(module, TOKEN_POOL_CLASS, gated).code)


def _is_docstring(statement: cst.BaseStatement) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    first = statement.body[0]
    return isinstance(first, cst.Expr) and isinstance(
        first.value, cst.SimpleString | cst.ConcatenatedString
    )
