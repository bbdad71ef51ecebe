"""A full prefill graph replays without calling an accessor: it must wait for all loads itself.

Seen: a gate is a Python call; a captured graph does not make it. The full backend exists from
0.5.15 on, its own wait from 0.5.23 on. Breakable graphs run the accessors at their eager breaks.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from dsv4doctor.audit.source.tree import PREFILL_GRAPHS, SourceTree, called

_WAIT = "_wait_for_layer_loads"
_FULL = "_is_full_backend"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillGraphs:
    """Whether the tree can replay a whole prefill, and whether that replay waits for loads."""

    has_full_backend: bool
    waits: bool
    line: int  # of the first replay


def prefill_graphs(tree: SourceTree) -> PrefillGraphs | None:
    """What the prefill graph runner does; None where the tree has none."""
    module = tree.module(PREFILL_GRAPHS)
    if module is None:
        return None
    replays = [
        node.lineno
        for node in ast.walk(module)
        if called(node).endswith(".replay") and isinstance(node, ast.Call)
    ]
    return PrefillGraphs(
        has_full_backend=any(
            isinstance(node, ast.Attribute) and node.attr == _FULL for node in ast.walk(module)
        ),
        waits=_waits(module),
        line=min(replays, default=1),
    )


def _waits(module: ast.Module) -> bool:
    """A wait for the last layer that a method of the runner really makes."""
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
    waiting = {function.name for function in functions if _waits_for_a_layer(function)}
    calls = {called(node).rpartition(".")[2] for node in ast.walk(module)}
    return bool(waiting - {_WAIT}) or (_WAIT in waiting and _WAIT in calls)


def _waits_for_a_layer(function: ast.FunctionDef) -> bool:
    return any(called(node).endswith(".wait_until") for node in ast.walk(function))
