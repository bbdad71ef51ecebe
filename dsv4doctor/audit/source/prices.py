"""Index-K bytes a c4 token: what the indexer pool stores, and what the configurator counts.

Both are read from the source's own formulas, computed for a head of 128; a branch keeps its
condition. Stored and not counted means more tokens promised than there are bytes for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dsv4doctor.audit.source.tree import (
    CONFIGURATOR,
    CONFIGURATOR_CLASS,
    INDEXER_POOL,
    MEMORY_POOL,
    SourceTree,
    class_named,
    methods_of,
)

HEAD_DIM = 128  # of DeepSeek-V4's indexer
_PAGE_SLOTS = 64
_KNOWN: Mapping[str, int] = {
    "index_head_dim": HEAD_DIM,
    "indexer_head_dim": HEAD_DIM,
    "page_size": _PAGE_SLOTS,
    "quant_block_size": HEAD_DIM,
}
_ATTRIBUTE, _LOCAL = "indexer_bytes_per_token", "indexer_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """One branch of a formula: its bytes a c4 token, when it applies, and where it stands."""

    bytes: int
    condition: str  # empty: otherwise, or always
    formula: str
    path: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Both sides; an empty side was not understood."""

    stored: tuple[Price, ...]
    counted: tuple[Price, ...]

    @property
    def uncounted(self) -> tuple[Price, ...]:
        """What is stored in bytes that the configurator never counts."""
        counts = {price.bytes for price in self.counted}
        return tuple(price for price in self.stored if counts and price.bytes not in counts)


def index_k_prices(tree: SourceTree) -> Prices:
    """The branches of the pool's and of the configurator's formula."""
    memory = tree.module(MEMORY_POOL)
    functions = {
        node.name: node
        for node in (memory.body if memory is not None else ())
        if isinstance(node, ast.FunctionDef)
    }
    pool = class_named(memory, INDEXER_POOL)
    configurator = class_named(tree.module(CONFIGURATOR), CONFIGURATOR_CLASS)
    return Prices(
        stored=_stored(pool, functions) if pool is not None else (),
        counted=_counted(configurator, functions) if configurator is not None else (),
    )


def _stored(pool: ast.ClassDef, functions: Mapping[str, ast.FunctionDef]) -> tuple[Price, ...]:
    methods = methods_of(pool)
    row = methods.get("get_bytes_per_token")
    reader = _Reader(functions, MEMORY_POOL)
    if row is not None:
        return tuple(reader.returns(row.body, (), dict(_KNOWN)))
    for method in methods.values():
        pages = reader.assigned(method.body, "page_bytes")
        if pages:
            return tuple(
                Price(
                    bytes=price.bytes // _PAGE_SLOTS,
                    condition=price.condition,
                    formula=price.formula,
                    path=price.path,
                    line=price.line,
                )
                for price in pages
            )
    return ()


def _counted(
    configurator: ast.ClassDef, functions: Mapping[str, ast.FunctionDef]
) -> tuple[Price, ...]:
    """The assignments of the bytes that `bytes_per_full_token` uses, wherever they stand."""
    reader = _Reader(functions, CONFIGURATOR)
    methods = list(methods_of(configurator).values())
    by_attribute = [
        price for method in methods for price in reader.assigned(method.body, _ATTRIBUTE)
    ]
    if by_attribute:
        return tuple(by_attribute)
    formula = methods_of(configurator).get("_get_bytes_per_full_token")
    return tuple(reader.assigned(formula.body, _LOCAL)) if formula is not None else ()


class _Reader:
    """Computes formulas over known sizes, branch by branch; leaves out what it cannot compute."""

    def __init__(self, functions: Mapping[str, ast.FunctionDef], path: str) -> None:
        self._functions = functions
        self._path = path

    def returns(
        self, body: Iterable[ast.stmt], when: tuple[str, ...], known: dict[str, int]
    ) -> list[Price]:
        """What a function's `return`s give, in order."""
        found: list[Price] = []
        for statement in body:
            if isinstance(statement, ast.If):
                condition = ast.unparse(statement.test)
                found += self.returns(statement.body, (*when, condition), dict(known))
                found += self.returns(statement.orelse, (*when, f"not {condition}"), dict(known))
            elif isinstance(statement, ast.Return) and statement.value is not None:
                found += self._values(statement.value, when, known, statement.lineno)
            else:
                self._learn(statement, known)
        return found

    def assigned(self, body: Iterable[ast.stmt], name: str) -> list[Price]:
        """The values that `name`, or `self.name`, is given: one a branch, sums added up."""
        return self._assigned(body, name, (), dict(_KNOWN))

    def _assigned(
        self, body: Iterable[ast.stmt], name: str, when: tuple[str, ...], known: dict[str, int]
    ) -> list[Price]:
        found: list[Price] = []
        for statement in body:
            if isinstance(statement, ast.If):
                condition = ast.unparse(statement.test)
                found += self._assigned(statement.body, name, (*when, condition), dict(known))
                other = (*when, f"not {condition}")
                found += self._assigned(statement.orelse, name, other, dict(known))
                continue
            if isinstance(statement, ast.With | ast.For):
                found += self._assigned(statement.body, name, when, known)
                continue
            if isinstance(statement, ast.Assign) and _target(statement.targets[0]) == name:
                found += self._values(statement.value, when, known, statement.lineno)
            if isinstance(statement, ast.AugAssign) and _target(statement.target) == name:
                added = self._values(statement.value, when, known, statement.lineno)
                found = [_sum(price, more) for price in found for more in added[:1]] or found
            self._learn(statement, known)
        return found

    def _learn(self, statement: ast.stmt, known: dict[str, int]) -> None:
        if isinstance(statement, ast.Assign):
            values = self._values(statement.value, (), known, 0)
            name = _target(statement.targets[0])
            if name and len(values) == 1:
                known[name] = values[0].bytes

    def _values(
        self, node: ast.expr, when: tuple[str, ...], known: Mapping[str, int], line: int
    ) -> list[Price]:
        if isinstance(node, ast.IfExp):
            condition = ast.unparse(node.test)
            return [
                *self._values(node.body, (*when, condition), known, line),
                *self._values(node.orelse, (*when, f"not {condition}"), known, line),
            ]
        if isinstance(node, ast.Call) and _target(node.func) in self._functions:
            return self._of_call(node, when, known)
        number = _number(node, known)
        if number is None:
            return []
        return [
            Price(
                bytes=number,
                condition=" and ".join(when),
                formula=ast.unparse(node),
                path=self._path,
                line=line,
            )
        ]

    def _of_call(
        self, node: ast.Call, when: tuple[str, ...], known: Mapping[str, int]
    ) -> list[Price]:
        function = self._functions[_target(node.func)]
        bound = dict(_KNOWN)
        for argument, value in zip(function.args.args, node.args, strict=False):
            number = _number(value, known)
            if number is not None:
                bound[argument.arg] = number
        prices = _Reader(self._functions, MEMORY_POOL).returns(function.body, when, bound)
        constant = {
            keyword.arg: keyword.value.value
            for keyword in node.keywords
            if isinstance(keyword.value, ast.Constant)
        }
        names = [argument.arg for argument in function.args.args]
        constant |= {
            name: value.value
            for name, value in zip(names, node.args, strict=False)
            if isinstance(value, ast.Constant)
        }
        return [price for price in prices if _possible(price.condition, constant)]


def _possible(condition: str, constant: Mapping[str | None, object]) -> bool:
    """Whether a branch on a flag given as a constant can be taken at all."""
    for name, value in constant.items():
        parts = condition.split(" and ")
        if (name in parts and not value) or (f"not {name}" in parts and value):
            return False
    return True


def _sum(price: Price, more: Price) -> Price:
    return Price(
        bytes=price.bytes + more.bytes,
        condition=price.condition,
        formula=f"{price.formula} + {more.formula}",
        path=price.path,
        line=price.line,
    )


def _target(node: ast.expr) -> str:
    """The name that is bound or called, without its owner."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _number(node: ast.expr, known: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name | ast.Attribute):
        return known.get(_target(node))
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, known), _number(node.right, known)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv) and right:
            return left // right
    return None
