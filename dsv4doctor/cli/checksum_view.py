"""What `checksum` shows a person: hosts, checks that fail, the race's or the bench's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsv4doctor.cli.console import say, stdout_console
from dsv4doctor.cli.findings import print_finding
from dsv4doctor.units import many

if TYPE_CHECKING:
    from rich.console import Console

    from dsv4doctor.flows.checksum import Outcome

_BACKENDS = {
    "interpreter": "no GPU: kernels ran under Triton's interpreter, the pool on the CPU path",
    "cpu": "no GPU: the CPU path ran",
}


def print_outcome(outcome: Outcome, *, no_color: bool) -> None:
    """The outcome on stdout; hosts that gave nothing on stderr too."""
    console = stdout_console(no_color=no_color)
    body = outcome.body
    for row in body["hosts"]:
        _print_host(console, row)
    _print_checks(console, body["checks"])
    for key, columns in (("race", _RACE), ("bench", _BENCH)):
        if body.get(key):
            _print_table(console, body[key], columns)
    if "compare" in body:
        _print_compare(console, body["compare"])
    for finding in outcome.findings:
        print_finding(console, finding)
    console.print(outcome.verdict, markup=False)


def _print_host(console: Console, row: dict[str, Any]) -> None:
    name = f"{row['host']}  {row['device'] or ''}".rstrip()
    if row["error"]:
        say(f"{row['error']}")
    if row["backend"] is None:
        return
    notes = [_BACKENDS.get(row["backend"], ""), row.get("note") or ""]
    console.print(
        f"{name}  ({'; '.join(filter(None, notes))})" if any(notes) else name, markup=False
    )
    if row["digest"]:
        speed = f"{row['gb_per_s']:.2f} GB/s" if row["gb_per_s"] is not None else ""
        console.print(
            f"    {many(row['pages'], 'page')}  digest {row['digest']}  {speed}", markup=False
        )


def _print_checks(console: Console, checks: list[dict[str, Any]]) -> None:
    if not checks:
        return
    passed = sum(check["passed"] for check in checks)
    console.print(f"    {passed} of {len(checks)} checks passed", markup=False)
    for check in checks:
        if not check["passed"]:
            console.print(
                f"    failed: {check['name']}: {check['found']} of {check['planted']}", markup=False
            )


_RACE = (
    "machine",
    "dtype",
    "gate",
    "queue_depth",
    "reads",
    "stale_share",
    "window_us",
    "top512_overlap",
)
_BENCH = ("layout", "pages", "gb_per_s", "copy_gb_per_s", "ratio")


def _print_table(console: Console, rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    several = len({row["host"] for row in rows}) > 1
    names = ("host", *columns) if several else columns
    for name in names:
        is_word = isinstance(rows[0].get(name), str)
        table.add_column(name.replace("_", " "), justify="left" if is_word else "right")
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in names))
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _print_compare(console: Console, compared: dict[str, Any]) -> None:
    if "manifest" in compared:
        console.print(
            f"{many(compared['pages'], 'page')} digested into {compared['manifest']}", markup=False
        )
        return
    console.print(
        f"{compared['differing_pages']} of {many(compared['pages'], 'page')} differ "
        f"({many(compared['tensors'], 'tensor')} compared)",
        markup=False,
    )
