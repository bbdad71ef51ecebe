"""A scan's result as lines for a person; whatever came from the log is shown escaped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dsv4doctor.units import many

if TYPE_CHECKING:
    from rich.console import Console

    from dsv4doctor.flows.scan import ScanResult

# A narrower terminal is not worth more than a word a line.
_LEAST_WIDTH = 20
_HANGING = "    "


def lines_of(result: ScanResult, *, groups_shown: int) -> Iterator[str]:
    """The result from top to bottom: verdict, counts, evidence, onset, groups, what was not
    read."""
    totals = result.body["totals"]
    yield (
        f"{result.verdict}: {totals['corrupted']:,} of"
        f" {many(totals['records'], 'response')} corrupted"
        f" ({_share(totals['corrupted'], totals['records'])})"
    )
    for label, count in totals["by_label"].items():
        yield f"  {label:<22}{count:>10,}  {_share(count, totals['records'])}"
    if totals["failures"]:
        yield f"  no response: {totals['failures']:,} ({_counts(totals['by_failure'])})"
    if totals["aborted_by_us"]:
        yield f"  aborted on purpose: {totals['aborted_by_us']:,}"
    for finding in result.findings:
        yield ""
        yield finding.title
        for item in finding.evidence:
            yield f"  {_safe(item.where)}"
            yield f"    {_safe(item.what)}"
    yield from _onset(result.body["onset"])
    yield from _groups(result.body.get("groups", []), groups_shown)
    yield from _records(result.body.get("records"))
    yield from _unread(result.body, totals["unreadable_lines"])


def wrapped(line: str, console: Console) -> Iterator[str]:
    """The line in pieces as wide as the console, the later ones further in than the first."""
    from rich.text import Text

    body = line.lstrip(" ")
    indent = line[: len(line) - len(body)]
    width = max(_LEAST_WIDTH, console.width - len(indent) - len(_HANGING))
    if Text(line).cell_len <= console.width:
        yield line
        return
    for place, piece in enumerate(Text(body).wrap(console, width)):
        yield f"{indent}{_HANGING if place else ''}{piece.plain.rstrip()}"


def _onset(onset: dict[str, Any] | None) -> Iterator[str]:
    if onset is None:
        return
    yield ""
    yield f"first corruption {onset['first_corrupted']}, last {onset['last_corrupted']}"
    change = onset["change"]
    if change is not None:
        yield (
            f"the rate changes at {change.time}:"
            f" {_share(change.corrupted_before, change.responses_before)} before,"
            f" {_share(change.corrupted_after, change.responses_after)} after"
        )


def _groups(groups: list[dict[str, Any]], shown: int) -> Iterator[str]:
    for place, group in enumerate(groups[:shown]):
        if not place:
            yield ""
        names = [k for k in group if k not in ("records", "corrupted", "by_label")]
        name = ", ".join(f"{key}={_safe(str(group[key]))}" for key in names)
        share = _share(group["corrupted"], group["records"])
        yield f"  {name}: {group['corrupted']:,} of {group['records']:,} corrupted ({share})"
    if len(groups) > shown:
        yield f"  … and {many(len(groups) - shown, 'more group')} (--json lists them)"


def _records(records: list[dict[str, Any]] | None) -> Iterator[str]:
    for place, record in enumerate(records or ()):
        if not place:
            yield ""
        also = f" (also {', '.join(record['also'])})" if record["also"] else ""
        yield f"  {_safe(record['id'])}  {record['primary']}{also}"


def _unread(body: dict[str, Any], count: int) -> Iterator[str]:
    if count:
        yield ""
        yield f"{many(count, 'line')} could not be read:"
        for item in body["unreadable"]:
            yield f"  {_safe(item['where'])}: {_safe(item['problem'])}"
    for source in body["sources"]:
        if source["problem"]:
            yield f"  {_safe(source['name'])}: {source['problem']}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "no responses"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _safe(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
