"""How a sizing looks: a bar of the rank's memory with its pools, and the tables under it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsv4doctor.cli.findings import print_finding
from dsv4doctor.units import format_bytes, format_tokens

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dsv4doctor.flows.size import SizeOutcome

BAR_WIDTH = 72
# Legible on black and on white: no yellow, no cyan.
_STYLES = {
    "swa": "blue",
    "c4": "red",
    "c128": "green",
    "index_k": "magenta",
    "c4_state": "bold red",
    "c4_indexer_state": "bold magenta",
    "c128_state": "bold green",
    "unified": "red",
    "draft": "bold blue",
    "c1": "red",
    "c2": "green",
    "index_k_r1": "magenta",
    "index_k_r2": "bold magenta",
    "c2_state": "bold green",
    "request_window": "blue",
}
# One mark a pool, so that the bar reads without colour, too.
_MARKS = {
    "swa": "S",
    "c4": "4",
    "c128": "8",
    "index_k": "I",
    "c4_state": "s",
    "c4_indexer_state": "i",
    "c128_state": "t",
    "unified": "U",
    "draft": "D",
    "c1": "1",
    "c2": "2",
    "index_k_r1": "J",
    "index_k_r2": "K",
    "c2_state": "p",
    "request_window": "W",
}


def show(outcome: SizeOutcome, *, no_color: bool) -> None:
    """Print the report on stdout."""
    from dsv4doctor.cli.console import stdout_console

    console = stdout_console(no_color=no_color)
    body = outcome.body
    _head(console, outcome)
    if "allocated_bytes" in body and outcome.judged is not None:
        _bar(console, body)
        console.print(_pool_table(body))
    elif outcome.vllm is not None:
        console.print(_block_table(body))
    elif body.get("path") == "dsa":
        _dsa(console, body)
    for part in ("index_k_formats", "differences", "capacity", "fraction", "sweep"):
        _PARTS[part](console, body)
    _findings(console, outcome)


def _head(console: Console, outcome: SizeOutcome) -> None:
    from rich.text import Text

    from dsv4doctor.safetext import one_line

    body = outcome.body
    colour = "green" if outcome.verdict == "fits" else "red"
    words = {"fits": "fits", "over_commit": "OVER-COMMIT", "does_not_fit": "DOES NOT FIT"}
    title = f"{body.get('model', 'DeepSeek-V4')} on {body['engine']} {body.get('version') or ''}"
    head = Text(one_line(title), style="bold")
    console.print(head.append(f"  {words[outcome.verdict]}", style=f"bold {colour}"))
    if "available_bytes" in body:
        line = f"budget {format_bytes(body['available_bytes'])} a rank"
        if "bytes_per_full_token" in body:
            line += f"   bytes_per_full_token {body['bytes_per_full_token']:.2f}"
        if "pool_sizes" in body:
            line += f"   tokens {format_tokens(body['pool_sizes']['full'])}"
        console.print(line)
    standing = body.get("figures_are")
    if standing:
        source = {
            "computed and checked": "from formulas checked against the release's own executed code",
            "estimate": "see below",
        }[standing]
        console.print(f"figures: {standing} ({source})", style="dim")


def _shares(body: dict[str, Any]) -> dict[str, int]:
    pools = {name: size for name, size in body["allocated_bytes"].items() if size}
    if body["draft_allocated_total"]:
        pools["draft"] = body["draft_allocated_total"]
    return pools


def _bar(console: Console, body: dict[str, Any]) -> None:
    from rich.text import Text

    pools, budget = _shares(body), body["available_bytes"]
    total = sum(pools.values())
    scale = BAR_WIDTH / max(total, budget, 1)
    bar, drawn = Text("  "), 0.0
    cells = 0
    for name, size in pools.items():
        drawn += size * scale
        width = round(drawn) - cells
        cells += width
        bar.append(_MARKS.get(name, "?") * width, style=f"black on {_STYLES.get(name, 'white')}")
    if cells < BAR_WIDTH:
        bar.append("·" * (BAR_WIDTH - cells), style="dim")
    console.print(bar)
    edge = min(BAR_WIDTH, round(budget * scale))
    over = body["over_commit_bytes"]
    note = f"{format_bytes(over)} over" if over > 0 else f"{format_bytes(-over)} free"
    label = f"budget, {note} ^"
    console.print(Text("  " + label.rjust(edge), style="dim"))


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, show_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place == 0 else "right")
    return table


def _pool_table(body: dict[str, Any]) -> Table:
    table = _table("pool", "size", "pages", "page bytes", "layers", "allocated")
    geometry, rows = body["geometry"], body["state_rows"]
    sizes = body["pool_sizes"] | {"index_k": body["pool_sizes"]["c128"] * 32}
    for name, count in body["allocated_bytes"].items():
        pool = geometry.get(name)
        size = sizes.get(name, sizes.get("c4_state") if name == "c4_indexer_state" else None)
        mark = _MARKS.get(name, "?")
        table.add_row(
            f"{mark} {name}",
            format_tokens(size) if size is not None else "",
            format_tokens(pool["pages"]) if pool else f"{format_tokens(rows.get(name, 0))} rows",
            format_tokens(pool["page_bytes"]) if pool else "",
            str(pool["layers"]) if pool else "",
            format_bytes(count),
        )
    if body["draft_allocated_total"]:
        table.add_row("D draft worker", "", "", "", "", format_bytes(body["draft_allocated_total"]))
    both = body["allocated_total"] + body["draft_allocated_total"]
    table.add_row("all", "", "", "", "", format_bytes(both), style="bold")
    for name, count in body["fixed_bytes"].items():
        if count:
            table.add_row(
                f"  of which fixed: {name}", "", "", "", "", format_bytes(count), style="dim"
            )
    return table


def _block_table(body: dict[str, Any]) -> Table:
    table = _table("cache group", "layers", "block tokens", "bytes a block", "blocks a request")
    for group in body["groups"]:
        table.add_row(
            " + ".join(group["kind"]),
            str(group["n_layers"]),
            str(group["block_size"]),
            format_tokens(group["page_bytes"]),
            format_tokens(group["pages_per_request"]),
        )
    table.add_row(
        "pool",
        "",
        f"{format_tokens(body['num_blocks'])} blocks",
        format_tokens(body["bytes_per_block"]),
        format_tokens(body["blocks_per_request"]),
        style="bold",
    )
    table.caption = (
        f"max concurrency {body['max_concurrency']:.3f}, "
        f"capacity {format_tokens(body['capacity_tokens'])} tokens"
    )
    return table


def _dsa(console: Console, body: dict[str, Any]) -> None:
    console.print(
        f"DSA path (V3.2), not V4: {body['bytes_per_token']} B a token, "
        f"{format_tokens(body['tokens'])} tokens"
    )


def _formats(console: Console, body: dict[str, Any]) -> None:
    rows = body.get("index_k_formats")
    if not rows:
        return
    table = _table(
        "index-K", "counted", "stored", "tokens", "if priced right", "against fp8", "over"
    )
    for row in rows:
        name = row["dtype"] + ("" if row["stored_by_this_release"] else " (not in this release)")
        against = row["tokens_against_fp8"]
        over = row["over_commit_bytes"]
        table.add_row(
            name,
            f"{row['bytes_per_token_counted']} B",
            f"{row['bytes_per_token_allocated']} B",
            "–" if row["tokens"] is None else format_tokens(row["tokens"]),
            "–" if row["tokens_if_priced_right"] is None
            else format_tokens(row["tokens_if_priced_right"]),
            "–" if against is None else f"{against:+,}",
            "–" if over is None else format_bytes(over),
        )  # fmt: skip
    console.print(table)


def _differences(console: Console, body: dict[str, Any]) -> None:
    log = body.get("from_log")
    if not log or not log["differences"]:
        return
    table = _table("figure", "log", "ours", "difference", "")
    for row in log["differences"]:
        table.add_row(
            row["figure"],
            f"{row['log']:,.10g}",
            f"{row['ours']:,.10g}",
            f"{row['difference']:+,.6g}",
            "within rounding" if row["within_rounding"] else "DIFFERS",
        )
    console.print(table)


def _capacity(console: Console, body: dict[str, Any]) -> None:
    found = body.get("capacity")
    if not found:
        return
    console.print(
        f"{found['gpus']} GPUs, {found['replicas']} replicas, {found['kv_pools']} KV pools: "
        f"{format_tokens(found['tokens'])} tokens, {format_tokens(found['sessions'])} sessions of "
        f"{format_tokens(found['session_tokens'])} (limited by {found['limited_by']})"
    )


def _fraction(console: Console, body: dict[str, Any]) -> None:
    found = body.get("mem_fraction_static")
    if not isinstance(found, dict):
        return
    value = found["mem_fraction_static"]
    if value is None:
        console.print("no --mem-fraction-static fits (estimate)")
        return
    console.print(
        f"--mem-fraction-static {value:g} fits (estimate: "
        f"{format_bytes(found['reserve_bytes'])} kept for activations and graphs, "
        f"{format_bytes(found['outside_bytes'])} of tables beside the pools)"
    )


def _sweep(console: Console, body: dict[str, Any]) -> None:
    rows = body.get("sweep")
    if not rows:
        return
    names = [name for name in rows[0] if name not in ("error", "draft_allocated_total")]
    table = _table(*names)
    for row in rows:
        table.add_row(*(_cell(name, row[name]) for name in names))
    console.print(table)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name in ("available_bytes", "allocated_total", "over_commit_bytes"):
        return format_bytes(value)
    if name == "bytes_per_full_token":
        return f"{value:.2f}"
    return format_tokens(value) if name == "tokens" else str(value)


_PARTS = {
    "index_k_formats": _formats,
    "differences": _differences,
    "capacity": _capacity,
    "fraction": _fraction,
    "sweep": _sweep,
}


def _findings(console: Console, outcome: SizeOutcome) -> None:
    for finding in outcome.findings:
        print_finding(console, finding)
