"""Corrupted responses against stale reads: does the one explain the other, or is there a second?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import comb

# Responses of the odd cells that are named.
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """Judged responses in four cells. `named_without` are corrupted ones that read nothing stale:
    a second cause, unless their reads were not seen."""

    corrupted_with_stale: int = 0
    corrupted_without: int = 0
    clean_with_stale: int = 0
    clean_without: int = 0
    named_without: tuple[str, ...] = ()

    @property
    def responses(self) -> int:
        return (
            self.corrupted_with_stale
            + self.corrupted_without
            + self.clean_with_stale
            + self.clean_without
        )

    @property
    def ratio(self) -> float | None:
        """The odds ratio, with half a response added to each cell where one is empty (Haldane).

        None where a row or a column is empty: there is nothing to compare.
        """
        cells = [
            self.corrupted_with_stale,
            self.corrupted_without,
            self.clean_with_stale,
            self.clean_without,
        ]
        a, b, c, d = cells
        if 0 in (a + b, c + d, a + c, b + d):
            return None
        if 0 in cells:
            a, b, c, d = (cell + 0.5 for cell in cells)  # type: ignore[assignment]
        return (a * d) / (b * c)

    @property
    def p_value(self) -> float | None:
        """Fisher's exact test, one-sided: corrupted responses read stale pages more often."""
        corrupted = self.corrupted_with_stale + self.corrupted_without
        stale = self.corrupted_with_stale + self.clean_with_stale
        if not self.responses or not corrupted or not stale:
            return None
        total = comb(self.responses, stale)
        rest = self.responses - corrupted
        most = min(corrupted, stale)
        at_least = range(self.corrupted_with_stale, most + 1)
        ways = sum(comb(corrupted, k) * comb(rest, stale - k) for k in at_least if stale - k >= 0)
        return ways / total


def odds_of(records: Iterable[Mapping[str, object]], stale: Collection[str]) -> Odds:
    """The four cells of a run's judged records; `stale` are the ids of requests that read stale."""
    cells = {(False, False): 0, (False, True): 0, (True, False): 0, (True, True): 0}
    named: list[str] = []
    for record in records:
        if record.get("aborted") or record.get("failure"):
            continue
        is_corrupted = bool(record.get("corrupted"))
        is_stale = record.get("request_id") in stale
        cells[is_corrupted, is_stale] += 1
        if is_corrupted and not is_stale and len(named) < _MOST_NAMED:
            named.append(str(record.get("id")))
    return Odds(
        corrupted_with_stale=cells[True, True],
        corrupted_without=cells[True, False],
        clean_with_stale=cells[False, True],
        clean_without=cells[False, False],
        named_without=tuple(named),
    )
