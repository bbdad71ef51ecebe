"""Why a release over-commits or wastes: bytes believed against bytes allocated, pool by pool."""

from __future__ import annotations

from dataclasses import dataclass

from dsv4doctor.sizing.plan import Plan
from dsv4doctor.sizing.pricing import c4_state_width, low_ratio_index_bytes, padded_row
from dsv4doctor.units import MIB, format_bytes

NOTEWORTHY_SHARE = 0.1  # of the whole difference: smaller parts are left out of the sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason: `over_bytes` allocated beyond belief; negative: believed and not used."""

    name: str
    over_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """Bytes that are priced and can never be used: allocated for nothing, or left free."""

    name: str
    title: str
    wasted_bytes: float
    words: str


def believed_bytes(plan: Plan) -> dict[str, float]:
    """What the configurator believes each pool takes at its size; `draft` is the inflation."""
    pools, geometry, accounting = plan.pools, plan.geometry, plan.accounting
    if pools is None:
        return {}
    priced, full = geometry.priced, pools.full
    n4 = priced.count(4)
    state, index_state = c4_state_width(geometry)
    swa_tokens = _priced_swa_tokens(plan)
    per = geometry.page if accounting.page_padding_priced else geometry.window
    windows = swa_tokens * geometry.rings[4] / per
    row = plan.price.swa_row
    believed: dict[str, float] = {
        "swa": swa_tokens * row * priced.total,
        "c4": full * _row(plan, 4) * n4 / (4 * geometry.shrink),
        "c128": full * _row(plan, 128) * priced.count(128) / 128,
        "index_k": full * geometry.index_counted * n4 / 4,
        "c4_state": windows * state * n4,
        "c4_indexer_state": windows * index_state * n4,
    }
    for ratio in (1, 2):
        believed[f"c{ratio}"] = full * _row(plan, ratio) * priced.count(ratio) / ratio
        index = low_ratio_index_bytes(geometry) * priced.count(ratio)
        believed[f"index_k_r{ratio}"] = full * index / ratio
    if accounting.c128_state_per_token:
        rows = swa_tokens * geometry.rings[128] / geometry.window * (1 + geometry.draft_banks)
        width = geometry.online_width * geometry.head_dim * geometry.state_bytes
        believed["c128_state"] = rows * width * priced.count(128)
    believed["draft"] = (plan.price.inflation - 1) * sum(believed.values())
    _add_fixed(plan, believed)
    if geometry.unified:
        rows = believed.pop("c4") + believed.pop("c128") + believed.pop("swa")
        believed["unified"] = rows + believed.pop("swa_ring", 0)
    return believed


def _add_fixed(plan: Plan, believed: dict[str, float]) -> None:
    for name, count in plan.fixed_bytes.items():
        if name == "swa_fixed":
            believed["request_window"] = plan.swa.window_bytes
            if plan.inputs.encoder_replay:
                believed["draft"] += count - plan.swa.window_bytes
        elif name == "c4_state":
            if plan.geometry.unified:
                widths = plan.geometry.head_dim, plan.geometry.index_head_dim
                believed["c4_state"] = count * widths[0] / sum(widths)
                believed["c4_indexer_state"] = count * widths[1] / sum(widths)
        elif name == "low_ratio_padding":
            believed["c1"] = believed.get("c1", 0) + count
        else:
            believed[name] = count


def _priced_swa_tokens(plan: Plan) -> float:
    if plan.pools is None or (plan.geometry.unified and plan.accounting.unified_priced):
        return 0
    if plan.inputs.encoder_replay:
        return 0
    if plan.swa.cap_tokens is not None:
        return plan.swa.cap_tokens
    return plan.pools.full * plan.geometry.swa_ratio


def _row(plan: Plan, ratio: int) -> float:
    if not plan.accounting.page_padding_priced:
        return plan.geometry.row_bytes
    if ratio in (1, 2) and not plan.accounting.low_ratio_by_layout:
        return plan.geometry.row_bytes
    return padded_row(plan.geometry, ratio)


def find_causes(plan: Plan) -> tuple[Cause, ...]:
    """Every difference between belief and allocation, the largest first; empty after a refusal."""
    if plan.pools is None or plan.allocation is None or plan.draft is None:
        return ()
    believed = believed_bytes(plan)
    allocated = dict(plan.allocation.allocated_bytes)
    draft = believed.pop("draft")
    found = [
        Cause(name=name, over_bytes=over)
        for name in {**believed, **allocated}
        if (over := allocated.get(name, 0) - believed.get(name, 0))
    ]
    over = plan.draft.total - draft
    if over:
        found.append(Cause(name="draft", over_bytes=over))
    left = plan.pools.estimated_bytes - plan.inputs.available_bytes
    found.append(Cause(name="rounding", over_bytes=left))
    return tuple(sorted(found, key=lambda cause: -abs(cause.over_bytes)))


def over_commit_words(plan: Plan, causes: tuple[Cause, ...]) -> str | None:
    """One sentence for the over-commit (or the waste); None when there is nothing to explain."""
    total = plan.over_commit_bytes
    if total is None or abs(total) < MIB:
        return None
    same = [cause for cause in causes if cause.over_bytes * total > 0]
    named = [c for c in same if abs(c.over_bytes) >= NOTEWORTHY_SHARE * abs(total)] or same[:1]
    return "; ".join(f"{_words(plan, c)} ({format_bytes(c.over_bytes)})" for c in named)


def _words(plan: Plan, cause: Cause) -> str:
    geometry, name, over = plan.geometry, cause.name, cause.over_bytes
    if name == "rounding":
        return "tokens are rounded down to whole pages"
    if name == "draft":
        return _draft_words(plan, over)
    if name == "index_k" and geometry.index_stored != geometry.index_counted:
        more = geometry.index_stored - geometry.index_counted
        layers = geometry.stored.count(4)
        return (
            f"index-K is stored as {plan.index_dtype} ({geometry.index_stored} B a c4 token) but "
            f"counted as {geometry.index_counted} B: {more:+d} B x {layers} layers / 4 = "
            f"{more * layers / 4:+g} B a token"
        )
    if name == "c128":
        if not plan.accounting.page_padding_priced:
            page = geometry.page // 128
            raw = page * geometry.row_bytes
            padded = geometry.main_layout.page_bytes(page)
            return (
                f"c128 pages are padded from {raw} to {padded} B "
                f"(+{100 * (padded - raw) / raw:.0f} %) and priced without it"
            )
        return "c128 pages reserved for the dummy page are not priced"
    if name in ("c1", "c2") and not plan.accounting.low_ratio_by_layout:
        return f"{name} rows are priced at {geometry.row_bytes} B whatever their layout stores"
    if name == "unified":
        if plan.accounting.unified_priced:
            return "rows reserved in the unified pool are not priced"
        return "the unified pool stores 1024 B rows and rings, priced as packed rows by ratio"
    if name == "swa" and plan.accounting.whole_ratio_list:
        extra = geometry.priced.total - geometry.stored.total
        if extra:
            return f"{extra} entry of compress_ratios past the layers is priced and holds no pool"
    if name == "c128_state" and over < 0 and not plan.accounting.c128_state_per_token:
        return "c128 state is deducted for more requests than the server then runs"
    if over > 0:
        return f"{name} pages and rows are rounded up and padded beyond their price"
    return f"{name} takes less than its price"


def _draft_words(plan: Plan, over: float) -> str:
    layers = plan.inputs.draft_layers
    if over > 0:
        return f"the draft's {layers} SWA layers are priced as one"
    return "the draft is priced as one whole layer's share of every pool, but holds SWA alone"


def find_waste(plan: Plan) -> tuple[Waste, ...]:
    """Priced bytes that nothing can use."""
    if plan.allocation is None:
        return ()
    geometry, accounting = plan.geometry, plan.accounting
    allocated = plan.allocation.allocated_bytes
    found = []
    reachable = geometry.window / geometry.page
    if not accounting.page_padding_priced and not geometry.unified and reachable < 1:
        names = ["c4_state", "c4_indexer_state"]
        if accounting.c128_state_per_token:
            names.append("c128_state")
        lost = (1 - reachable) * sum(allocated.get(name, 0) for name in names)
        if lost:
            found.append(
                Waste(
                    name="unreachable_state",
                    title=f"{format_bytes(lost)} of the compress state can never be reached",
                    wasted_bytes=lost,
                    words=f"compress state is sized per {geometry.window} tokens and addressed per "
                    f"{geometry.page}-token page: {100 * (1 - reachable):.0f} % of its rows are "
                    "never reached",
                )
            )
    short = geometry.index_counted - geometry.index_stored
    if short > 0 and plan.pools is not None:
        free = short * geometry.stored.count(4) / 4 * plan.pools.full
        found.append(
            Waste(
                name="index_k_overpriced",
                title=f"{format_bytes(free)} that index-K is priced at stay free",
                wasted_bytes=free,
                words=f"index-K is stored in {geometry.index_stored} B and priced at "
                f"{geometry.index_counted} B",
            )
        )
    return tuple(found)
