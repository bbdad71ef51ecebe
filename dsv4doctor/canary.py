"""Canary values: strings planted in a prompt that say who owns them.

A reply that must repeat a canary proves by it which bytes the model really attended to: its own
(right), its own of an earlier turn (stale), another session's (foreign), or nobody's (damaged).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryOwner:
    """Who a canary value was made for; `slot` numbers the canaries of one turn."""

    session: int
    turn: int
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """One value that the reply has to repeat.

    With `tool` set, the `call_index`-th call has to be to `tool` and its argument `argument` has to
    equal `value` exactly (any JSON value). Without, `content` has to contain `value` (a string).
    `label` is the name under which the prompt planted it, `planted_turn` where.
    """

    label: str
    value: object
    planted_turn: int
    tool: str | None = None
    call_index: int = 0
    argument: str | None = None
