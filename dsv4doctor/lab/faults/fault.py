"""What a fault may change. A mechanism, never a rate: it says who waits, which page a row names,
what a thread survives; the bytes that result decide what a reply becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWrite:
    """A request's page-table row about to be written.

    `pages` is what belongs there, the first `restored` of them cached ones; `previous_row` is what
    the row buffer still holds from the request before it (empty for the first of a batch).
    """

    pages: tuple[int, ...]
    restored: int
    previous_row: tuple[int, ...]


def whole_row(row: RowWrite) -> tuple[int, ...]:
    """The row as it should be."""
    return row.pages


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One known way in which a deployment can be wrong; the defaults are a healthy one.

    `stores_replies` says that it takes decode steps which write the pool: the engine then keeps
    replies' own pages and caches them (the record's table was made without). `fix` names the fix
    that takes the fault away. `needs_disaggregation`: it happens only between a prefill and a
    decode engine. `index_k`: the format that it shows in, where that is not every one.
    """

    name: str
    summary: str
    fix: str = ""
    needs_disaggregation: bool = False
    index_k: str | None = None
    index_read_waits: bool = True
    loads_wait_for_forward: bool = True
    backups_wait_for_forward: bool = True
    page_row: Callable[[RowWrite], tuple[int, ...]] = whole_row
    abort_kills_transfer_thread: bool = False
    parser_leaks_negative_numbers: bool = False
    stores_replies: bool = False
    early_send_waits_for_loads: bool = True
    decode_read_waits_for_store: bool = True
    ranks_await_results: bool = True
    decode_reads_interleaved: bool = False
