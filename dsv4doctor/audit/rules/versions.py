"""Versions of packages beside the engine: predicates of single rules."""

from __future__ import annotations

from collections.abc import Callable

from dsv4doctor.audit.facts import Facts, version_key
from dsv4doctor.audit.logic import NO, Answer
from dsv4doctor.finding import Evidence


def lmcache_old(facts: Facts) -> Answer:
    """LMCache is 0.5.2 or older."""
    return _compare(facts, "lmcache", lambda key: key <= (0, 5, 2, 99))


def flashinfer_new(facts: Facts) -> Answer:
    """FlashInfer is 0.7.0 or newer."""
    return _compare(facts, "flashinfer", lambda key: key >= (0, 7, 0, 0))


def prefill_graph_skips_loads(facts: Facts) -> Answer:
    """The tree's runner does not wait; without a tree, the release is one that does not."""
    waits = facts.get("prefill_graph_waits")
    if waits is not None:
        seen = Evidence(where=waits.source, what=f"{waits.name} = {waits.value}")
        return NO if waits.value else Answer(holds=True, evidence=(seen,))
    return _compare(facts, "version", lambda key: (0, 5, 15, 0) <= key < (0, 5, 23, 0))


def _compare(facts: Facts, name: str, holds: Callable[[tuple[int, int, int, int]], bool]) -> Answer:
    fact = facts.get(name)
    key = None if fact is None else version_key(str(fact.value))
    if fact is None or key is None:
        return Answer(holds=None, missing=(name,))
    if not holds(key):
        return NO
    return Answer(holds=True, evidence=(Evidence(where=fact.source, what=f"{name} {fact.value}"),))
