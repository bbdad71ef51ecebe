"""Rates by context length, turn, cached tokens, concurrency and kind, from a run's rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4doctor.codec import to_builtins
from dsv4doctor.rate import Rate
from dsv4doctor.report.document import RateRow, RateTable
from dsv4doctor.report.rows import Row, Standing
from dsv4doctor.report.wording import count

# (corrupted, responses) of each session -> the rate with its interval
RateOf = Callable[[Sequence[tuple[int, int]]], Rate]
# tokens -> the lower edge of their bin
TokenBin = Callable[[int], int]

NOT_REPORTED = "not reported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """One way to part the responses; groups are told in the order of their keys."""

    title: str
    group_title: str
    key_of: Callable[[Row, int | None], Any]
    name_of: Callable[[Any], str]


def group_tables(
    rows: Sequence[Row],
    in_flight: Sequence[int | None],
    *,
    rate_of: RateOf,
    token_bin: TokenBin,
) -> tuple[RateTable, ...]:
    """A table for each grouping that parts the judged responses into two groups or more."""
    tables = []
    for grouping in _groupings(token_bin):
        found = _grouped(grouping, zip(rows, in_flight, strict=True))
        if len(found) > 1:
            tables.append(
                RateTable(
                    caption=grouping.title,
                    group_title=grouping.group_title,
                    of="responses",
                    rows=tuple(
                        RateRow(
                            group=NOT_REPORTED if key is None else grouping.name_of(key),
                            rate=to_builtins(rate_of(tuple(per_session))),
                        )
                        for key, per_session in found
                    ),
                )
            )
    return tuple(tables)


def concurrency_bin(requests: int) -> int:
    """The lower edge of the bin of `requests` in flight: 1, 2, 4, 8, ..."""
    return 1 << (requests.bit_length() - 1)


def _groupings(token_bin: TokenBin) -> tuple[Grouping, ...]:
    def binned(tokens: int | None) -> int | None:
        return None if tokens is None else token_bin(tokens)

    return (
        Grouping(
            title="By context length",
            group_title="prompt tokens from",
            key_of=lambda row, _: binned(row.prompt_tokens),
            name_of=count,
        ),
        Grouping(
            title="By turn", group_title="turn", key_of=lambda row, _: row.turn, name_of=count
        ),
        Grouping(
            title="By cached tokens",
            group_title="cached tokens from",
            key_of=lambda row, _: binned(row.cached_tokens),
            name_of=count,
        ),
        Grouping(
            title="By concurrency",
            group_title="in flight when sent",
            key_of=lambda _, flying: None if flying is None else concurrency_bin(flying),
            name_of=_concurrency_name,
        ),
        Grouping(
            title="By what was asked for",
            group_title="asked for",
            key_of=lambda row, _: row.kind or None,
            name_of=str,
        ),
    )


def _concurrency_name(low: int) -> str:
    return str(low) if low == 1 else f"{low} to {2 * low - 1}"


def _grouped(
    grouping: Grouping, rows: Iterable[tuple[Row, int | None]]
) -> list[tuple[Any, list[tuple[int, int]]]]:
    """(key, (corrupted, responses) of each session) in the order of the keys, None at the end."""
    groups: dict[Any, dict[Hashable, list[int]]] = {}
    for row, flying in rows:
        if row.standing is not Standing.JUDGED:
            continue
        sessions = groups.setdefault(grouping.key_of(row, flying), {})
        # A record of no session of ours stands for itself.
        share = sessions.setdefault(row.id if row.session is None else row.session, [0, 0])
        share[0] += row.corrupted
        share[1] += 1
    order = sorted(groups, key=lambda key: (key is None, 0 if key is None else key))
    return [(key, [(k, n) for k, n in groups[key].values()]) for key in order]
