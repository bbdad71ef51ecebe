"""All that a tree proves, and the findings in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dsv4doctor.audit.rule import SEVERITY_OF, AuditFinding, Grade, Support
from dsv4doctor.audit.source.dead_edits import Edits, find_edits
from dsv4doctor.audit.source.escapes import Escape, escapes
from dsv4doctor.audit.source.gates import Gate, Standing, gate_table
from dsv4doctor.audit.source.graphs import PrefillGraphs, prefill_graphs
from dsv4doctor.audit.source.prices import Price, Prices, index_k_prices
from dsv4doctor.audit.source.tree import (
    ASSEMBLER,
    HICACHE_BUILDER,
    MEMORY_POOL,
    PREFILL_GRAPHS,
    SourceTree,
)
from dsv4doctor.finding import Certainty, Evidence, Finding

_INDEX_K = re.compile(r"get_\w*index_k\w*")
# V4-Flash: 21 layers at ratio 4, so a full token holds a quarter of a c4 token in each of them.
_FLASH_C4_LAYERS, _RATIO = 21, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What was read; `graphs` is None where the tree has no prefill graph runner."""

    gates: tuple[Gate, ...]
    escapes: tuple[Escape, ...]
    graphs: PrefillGraphs | None
    prices: Prices
    edits: Edits
    unread: Mapping[str, str]
    hicache_serves_unified: bool

    def facts(self) -> dict[str, Any]:
        """What the rules ask of a tree."""
        found: dict[str, Any] = {
            "index_k_gated": not any(
                gate.standing is Standing.UNGATED and _INDEX_K.fullmatch(gate.method)
                for gate in self.gates
            )
        }
        if self.prices.stored and self.prices.counted:
            found["index_k_priced"] = not _overcommitted(self.prices)
        if any(price.bytes not in (132, 68) for price in self.prices.stored):
            found["custom_build"] = True
        if self.graphs is not None and self.graphs.has_full_backend:
            found["prefill_graph_waits"] = self.graphs.waits
        return found


def read_source(tree: SourceTree, base: SourceTree | None = None) -> SourceReport:
    """Everything that the tree proves; `base` is the same release unedited."""
    return SourceReport(
        gates=gate_table(tree),
        escapes=escapes(tree),
        graphs=prefill_graphs(tree),
        prices=index_k_prices(tree),
        edits=find_edits(tree, base),
        unread=dict(tree.unread),
        hicache_serves_unified=_serves_unified(tree),
    )


def _serves_unified(tree: SourceTree) -> bool:
    """Whether HiCache's builder knows the unified pool: before 0.5.16 it does not."""
    module = tree.module(ASSEMBLER)
    return any(
        isinstance(node, ast.FunctionDef)
        and node.name == HICACHE_BUILDER
        and "unified_kv" in ast.unparse(node)
        for node in (module.body if module is not None else [])
    )


def source_findings(report: SourceReport, source: str) -> tuple[AuditFinding, ...]:
    """What is wrong in the tree at `source`, each with the line to look at."""
    found = [
        _gate(gate, source, latent=_is_latent(gate, report))
        for gate in report.gates
        if gate.standing is Standing.UNGATED
    ]
    found += [_escape(escape, source) for escape in report.escapes if not escape.is_store]
    if report.graphs is not None and report.graphs.has_full_backend and not report.graphs.waits:
        found.append(_graph(report.graphs, source))
    found += [_price(price, report.prices, source) for price in report.prices.uncounted]
    for dead in report.edits.dead:
        used = ", ".join(dead.used_instead) or "no class of that kind"
        found.append(
            _finding(
                "SRC-05",
                f"{dead.name} was edited for DeepSeek-V4, which does not use it",
                [(f"{source}/{dead.path}:{dead.line}", dead.why), (source, f"V4 uses {used}")],
                f"revert it; edit {used}, and judge it by dsv4doctor ab, not by one run",
                Grade.MEDIUM,
            )
        )
    return tuple(replace(one, subject=source) for one in found)


def _is_latent(gate: Gate, report: SourceReport) -> bool:
    return gate.method.startswith("get_unified_kv") and not report.hicache_serves_unified


def _gate(gate: Gate, source: str, *, latent: bool) -> AuditFinding:
    where = f"{source}/{MEMORY_POOL}:{gate.line}"
    evidence = [(where, f"{gate.pool}.{gate.method}: {gate.why}")]
    title = f"{gate.method} hands out pages whose HiCache load may still run"
    if latent:
        title = f"{gate.method} does not wait; latent: HiCache does not load that pool here"
        evidence.append((f"{source}/{ASSEMBLER}", f"{HICACHE_BUILDER} knows no unified pool"))
    by_patch = _INDEX_K.fullmatch(gate.method) is not None
    return _finding(
        "SRC-01",
        title,
        evidence,
        "dsv4doctor patch --source DIR; until then HiCache off"
        if by_patch
        else "self.wait_layer_transfer(layer_id) as its first statement; until then HiCache off",
        Grade.LOW if latent else Grade.CRITICAL,
    )


def _escape(escape: Escape, source: str) -> AuditFinding:
    return _finding(
        "SRC-02",
        "pool data is read past the token pool's accessor, so nothing waits for its load",
        [(f"{source}/{escape.path}:{escape.line}", escape.what)],
        "read through the token pool's own get_ method; until then HiCache off",
        Grade.CRITICAL,
    )


def _graph(graphs: PrefillGraphs, source: str) -> AuditFinding:
    return _finding(
        "SRC-03",
        "a full prefill graph replays without waiting for HiCache's loads; only where an operator "
        "turns that backend on",
        [(f"{source}/{PREFILL_GRAPHS}:{graphs.line}", "replays; no wait for the last layer")],
        "no --cuda-graph-backend-prefill full together with HiCache, or 0.5.23",
        Grade.LOW,
    )


def _overcommitted(prices: Prices) -> bool:
    most = max((price.bytes for price in prices.counted), default=0)
    return any(price.bytes > most for price in prices.uncounted)


def _price(price: Price, prices: Prices, source: str) -> AuditFinding:
    counted = prices.counted[-1]
    difference = price.bytes - counted.bytes
    a_token = difference * _FLASH_C4_LAYERS / _RATIO
    evidence = [
        (f"{source}/{price.path}:{price.line}",
         f"stores {price.formula} = {price.bytes} B a c4 token"
         + (f", if {price.condition}" if price.condition else "")),
        (f"{source}/{counted.path}:{counted.line}",
         f"counts {counted.formula} = {counted.bytes} B"),
    ]  # fmt: skip
    if difference > 0:
        return _finding(
            "SRC-04",
            f"index-K is stored in {price.bytes} B and counted as {counted.bytes} B: "
            f"{a_token:g} B a full token of V4-Flash are promised and not there",
            evidence,
            "dsv4doctor patch --source DIR; until then a lower --mem-fraction-static",
            Grade.HIGH,
        )
    return _finding(
        "SRC-04",
        f"index-K of {price.bytes} B is counted as {counted.bytes} B: {-a_token:g} B a full token "
        "of V4-Flash are reserved and never used",
        evidence,
        "nothing is unsafe; dsv4doctor size says how many tokens it costs",
        Grade.LOW,
    )


def _finding(
    rule: str,
    title: str,
    evidence: list[tuple[str, str]],
    remedy: str,
    grade: Grade,
) -> AuditFinding:
    return AuditFinding(
        finding=Finding(
            rule=rule,
            severity=SEVERITY_OF[grade],
            title=title,
            evidence=tuple(Evidence(where=where, what=what) for where, what in evidence),
            certainty=Certainty.MEASURED,
            remedy=remedy,
        ),
        grade=grade,
        support=Support.CONFIRMED,
        subject="",
    )
