"""The gate table: which pool methods wait for their layer's load before they hand out its bytes.

Seen: HiCache restores pages layer by layer; a read that does not wait gets whatever its page held
before. Every read of the V4 token pool calls `wait_layer_transfer` first; the pools under it never
wait and are safe only behind it. Address tables for the transfer engine and writes do not wait.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from dsv4doctor.audit.source.tree import (
    MEMORY_POOL,
    TOKEN_POOL,
    SourceTree,
    called,
    class_named,
    methods_of,
    statements_of,
)

GATE = "wait_layer_transfer"
# Attributes of a pool that say what it is like, and hand out no page.
_FIGURES = frozenset({
    "page_size", "kv_cache_total_dim", "kv_layout", "swa_pages", "size", "ratio",
})  # fmt: skip
_TABLES = ("_buf_infos",)
_NO_READS = ("_page_size", "_layout", "_bytes_per_token")
_NO_READ_HEADS = ("get_ring_size", "get_online_")
# Used by fused stores; who calls it is checked with the escapes.
WRITE_ONLY = frozenset({"get_swa_raw_buffer"})


class Standing(StrEnum):
    """What a method is to the loads of HiCache."""

    GATED = "gated"
    DELEGATED = "delegated"  # to a method of the same pool that is gated
    UNGATED = "ungated"
    WRITE_ONLY = "write only"
    ADDRESSES = "addresses"  # pointers for the transfer engine
    BEHIND = "behind the token pool"
    REFUSES = "refuses"
    NO_READ = "no read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One method of one pool; `why` is set where it does not wait as it should."""

    pool: str
    method: str
    line: int
    standing: Standing
    why: str = ""


def gate_table(tree: SourceTree) -> tuple[Gate, ...]:
    """The methods of the V4 pools by which pages are read, in source order."""
    module = tree.module(MEMORY_POOL)
    if module is None:
        return ()
    found: list[Gate] = []
    for owner in module.body:
        if not isinstance(owner, ast.ClassDef) or not owner.name.endswith("Pool"):
            continue
        bases = {base.id for base in owner.bases if isinstance(base, ast.Name)}
        is_token_pool = TOKEN_POOL in (owner.name, *bases)
        found += _of_token_pool(owner, module) if is_token_pool else _of_inner_pool(owner)
    return tuple(found)


def _of_inner_pool(owner: ast.ClassDef) -> list[Gate]:
    return [
        Gate(
            pool=owner.name,
            method=name,
            line=method.lineno,
            standing=Standing.REFUSES if _refuses(method) else Standing.BEHIND,
        )
        for name, method in methods_of(owner).items()
        if name.startswith("get_") and _takes_layer(method)
    ]


def _of_token_pool(owner: ast.ClassDef, module: ast.Module) -> list[Gate]:
    methods = methods_of(owner)
    base = class_named(module, TOKEN_POOL)
    inherited = methods_of(base) if base is not None and base is not owner else {}
    known = {**inherited, **methods}
    broken = _broken_gate(known.get(GATE))
    found = []
    for name, method in methods.items():
        if not name.startswith("get_"):
            continue
        standing, why = _standing(name, method, known)
        if broken and standing in (Standing.GATED, Standing.DELEGATED):
            standing, why = Standing.UNGATED, broken
        found.append(
            Gate(pool=owner.name, method=name, line=method.lineno, standing=standing, why=why)
        )
    return found


def _broken_gate(gate: ast.FunctionDef | None) -> str:
    """Why the gate itself lets everything through; empty where it waits."""
    if gate is None:
        return f"{TOKEN_POOL} has no {GATE}"
    waits = any(called(node).endswith(".wait_until") for node in ast.walk(gate))
    return "" if waits else f"{GATE} waits for nothing"


def _standing(
    name: str, method: ast.FunctionDef, known: Mapping[str, ast.FunctionDef]
) -> tuple[Standing, str]:
    if name.endswith(_TABLES):
        return Standing.ADDRESSES, ""
    if name in WRITE_ONLY:
        return Standing.WRITE_ONLY, ""
    if _refuses(method):
        return Standing.REFUSES, ""
    if name.endswith(_NO_READS) or name.startswith(_NO_READ_HEADS):
        return Standing.NO_READ, ""
    return _waits(method, known, may_delegate=True)


def _waits(
    method: ast.FunctionDef, known: Mapping[str, ast.FunctionDef], *, may_delegate: bool
) -> tuple[Standing, str]:
    """By the order of the statements: a wait before the first read, on every way to it."""
    parameters = {argument.arg for argument in method.args.args}
    handed: list[str] = []
    late = ""
    for statement in statements_of(method):
        if _is_gate(statement, parameters):
            return (Standing.UNGATED, late) if late else (Standing.GATED, "")
        if reads := _reads(statement):
            late = late or f"reads {reads} before it waits"
        handed += _hands_over(statement, known)
    if late and any(_has_gate(statement) for statement in statements_of(method)):
        return Standing.UNGATED, "waits only under a condition, or for another layer"
    if late:
        return Standing.UNGATED, "never waits"
    if not handed:
        return Standing.NO_READ, ""
    if not may_delegate:
        return Standing.UNGATED, "hands over to a method that never waits"
    open_ = [
        other
        for other in handed
        if _waits(known[other], known, may_delegate=False)[0] is Standing.UNGATED
    ]
    if open_:
        return Standing.UNGATED, f"hands over to {open_[0]}, which never waits"
    gated = any(
        _waits(known[other], known, may_delegate=False)[0] is Standing.GATED for other in handed
    )
    return (Standing.DELEGATED if gated else Standing.NO_READ), ""


def _is_gate(statement: ast.stmt, parameters: set[str]) -> bool:
    """A wait that always happens, for a layer that the method is asked for.

    `if self.layer_transfer_counter is not None:` around it is the gate's own condition.
    """
    if isinstance(statement, ast.If) and "layer_transfer_counter" in ast.unparse(statement.test):
        return any(_is_gate(inner, parameters) for inner in statement.body)
    if not isinstance(statement, ast.Expr) or not _gate_call(statement.value):
        return False
    names = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
    direct = called(statement.value).endswith(GATE)
    plain = isinstance(statement.value, ast.Call) and (
        not statement.value.args or isinstance(statement.value.args[0], ast.Name)
    )
    return bool(names & parameters - {"self"}) and (plain or not direct)


def _gate_call(node: ast.AST) -> bool:
    return called(node) in (f"self.{GATE}", "self.layer_transfer_counter.wait_until")


def _has_gate(statement: ast.stmt) -> bool:
    return any(_gate_call(node) for node in ast.walk(statement))


def _reads(statement: ast.stmt) -> str:
    """The first pool of ours whose pages a statement takes; empty where it takes none."""
    figures = {
        id(node.value)
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and node.attr in _FIGURES
    }
    asked = {
        id(inner)
        for node in ast.walk(statement)
        if isinstance(node, ast.Compare | ast.Assert)
        for inner in ast.walk(node)
    }
    for node in ast.walk(statement):
        if id(node) in figures or id(node) in asked:
            continue
        if isinstance(node, ast.Attribute) and _is_self(node.value) and _holds_pages(node.attr):
            return node.attr
        if _of_mapped_pool(node):
            return ast.unparse(node)
    return ""


def _holds_pages(name: str) -> bool:
    """A pool, a lookup of one, or a buffer; the request window is V4.1's pool for one request."""
    if name.startswith(("get_", "set_")):
        return False  # a method: what it hands out is its own line of the table
    return "pool" in name or name.endswith(("_buffer", "_buffers")) or name == "request_window"


def _of_mapped_pool(node: ast.AST) -> bool:
    """Something of a pool that `layer_mapping` gave for the layer, and no mere figure."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and _holds_pages(node.value.id)
        and node.attr not in _FIGURES
    )


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _hands_over(statement: ast.stmt, known: Mapping[str, ast.FunctionDef]) -> list[str]:
    """Reads of the same pool that a statement calls."""
    names = []
    for node in ast.walk(statement):
        head, _, name = called(node).rpartition(".")
        if head == "self" and name.startswith("get_") and name in known:
            names.append(name)
    return names


def _refuses(method: ast.FunctionDef) -> bool:
    return isinstance(statements_of(method)[-1], ast.Raise) and len(statements_of(method)) == 1


def _takes_layer(method: ast.FunctionDef) -> bool:
    return any(argument.arg.endswith("layer_id") for argument in method.args.args)
