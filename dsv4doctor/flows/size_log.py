"""`size --from-log`: the boot lines read, recomputed, and the difference told figure by figure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dsv4doctor.errors import UsageError
from dsv4doctor.sglang_log.boot import BootReport, HostPool, read_boot
from dsv4doctor.sizing.architecture import find_architecture
from dsv4doctor.sizing.identify import Match, identify, ratio_of_pools
from dsv4doctor.sizing.inputs import DEFAULT_MAX_RUNNING_REQUESTS, Inputs
from dsv4doctor.sizing.launch import sglang_spec
from dsv4doctor.sizing.layouts import index_row_bytes
from dsv4doctor.sizing.plan import Plan, make_plan
from dsv4doctor.sizing.refusal import Refusal
from dsv4doctor.sizing.spec import read_spec
from dsv4doctor.sizing.versions import accounting_of
from dsv4doctor.units import GIB

_GIB_STEP = 0.01  # the log prints GiB to two places
_INDEX_POOL = "deepseek_v4_c4_indexer"
_MOST_TRIED = 60  # candidates compared in full; a log rarely leaves ten


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSizing:
    """A log's boot beside our own sizing of it; `plan` is None when no settings give it."""

    boot: BootReport
    release: str
    plan: Plan | None
    matches: tuple[Match, ...]
    differences: tuple[dict[str, Any], ...]
    index_k_proven: str | None


def size_log(
    lines: Iterable[str], args: Mapping[str, Any], version: str | None, model: str | None
) -> LogSizing:
    """Our sizing of the server whose boot `lines` tell of; `args` are flags that the user adds.

    Raises:
        UsageError: the log holds no DSV4 sizing line, or its line is cut.
    """
    boot = read_boot(lines)
    if not boot.memory:
        raise _no_memory_line(boot)
    printed = float(boot.memory["bytes_per_full_token"])
    known = _known_inputs(boot, args)
    releases = (version,) if version else _releases(boot)
    models = (find_architecture(model),) if model else None
    draft_known = known.speculative is not None or "speculative_algorithm" in boot.server_args
    options: dict[str, Any] = {} if models is None else {"models": models}
    matches: tuple[Match, ...] = ()
    for candidate in _ratio_guesses(known, boot):
        matches = identify(printed, releases, candidate, draft_known=draft_known, **options)
        if matches:
            break
    proven = _proven_index(boot.host_pools)
    if not matches:
        return LogSizing(
            boot=boot, release=releases[-1], plan=None, matches=(), differences=(),
            index_k_proven=proven,
        )  # fmt: skip
    release, plan, differences = _best(boot, matches, proven)
    return LogSizing(
        boot=boot,
        release=release,
        plan=plan,
        matches=matches,
        differences=differences,
        index_k_proven=proven,
    )


def _best(
    boot: BootReport, matches: Iterable[Match], proven: str | None
) -> tuple[str, Plan | None, tuple[dict[str, Any], ...]]:
    """The match whose other figures agree best with the log's, too; the plainest of equals."""
    best: tuple[str, Plan | None, tuple[dict[str, Any], ...]] = ("", None, ())
    fewest = -1
    for match in itertools.islice(matches, _MOST_TRIED):
        inputs = match.inputs
        if proven is not None and proven != inputs.index_dtype:
            inputs = replace(inputs, index_dtype=_stored_as(proven, inputs.index_dtype))
        try:
            plan = make_plan(inputs, accounting_of(match.release)[0])
        except Refusal:
            continue
        rows = tuple(_differences(boot, plan))
        off = sum(not row["within_rounding"] for row in rows)
        if fewest < 0 or off < fewest:
            best, fewest = (match.release, plan, rows), off
    return best


def _stored_as(proven: str, priced: str) -> str:
    """A format that was proved by the host pool, with the price that the log shows."""
    return "bf16_priced" if proven == "bf16" and priced == "bf16_priced" else proven


def _no_memory_line(boot: BootReport) -> UsageError:
    if boot.cut is not None:
        return UsageError(
            f"the log ends in the middle of a sizing line: {boot.cut[-80:]!r}",
            "a log with the whole `DSV4 memory calculation: … full_token=N` line",
        )
    return UsageError(
        f"no `DSV4 memory calculation` line among {boot.lines} log lines",
        "the log of a DeepSeek-V4 server's boot (V3.2 and other models print none)",
    )


def _releases(boot: BootReport) -> tuple[str, ...]:
    if boot.version is not None:
        return (boot.version,)
    if not boot.releases:
        raise UsageError(
            "the log's sizing line carries none of the known keys", "--version with the release"
        )
    return boot.releases


def _known_inputs(boot: BootReport, args: Mapping[str, Any]) -> Inputs:
    """What the log says, flags laid over it; unknown stays at the V4 defaults."""
    said = {key: value for key, value in boot.server_args.items() if value not in ("None", "")}
    merged: dict[str, Any] = {**said, **args}
    merged.pop("page_size", None)
    env = {"SGLANG_OPT_USE_ONLINE_COMPRESS": "1"} if boot.online_c128 else {}
    if boot.memory.get("unified") == "True":
        env["SGLANG_HACK_FLASHMLA_BACKEND"] = "unified_kv_triton"
        env["SGLANG_DSV4_UNIFIED_KV_FP8"] = str(boot.memory.get("unified_fp8") == "True")
        merged.setdefault("platform", "hip-gfx95")
    spec = sglang_spec(merged, env)
    if "max_running_requests" not in args:
        spec["max_running_requests"] = _requests(boot, spec)
    spec["available_bytes"] = round(float(boot.memory["available_bytes"]) * GIB)
    return read_spec(spec).inputs


def _requests(boot: BootReport, spec: Mapping[str, Any]) -> int:
    """Requests of the whole server: the pool's own word is per worker."""
    dp = int(spec.get("attn_dp_size", 1))
    if (said := boot.initialize.get("max_num_reqs", "")).isdigit():
        return int(said) * dp
    if "max_running_requests" in spec:
        return int(spec["max_running_requests"])
    return int(float(boot.hooks.get("max_running_requests", DEFAULT_MAX_RUNNING_REQUESTS)))


def _ratio_guesses(known: Inputs, boot: BootReport) -> tuple[Inputs, ...]:
    """`known` with each SWA ratio that the log allows, the best attested first."""
    ratios: list[float | None] = []
    for source in (boot.swa, boot.server_args, boot.hooks):
        text = source.get("swa_full_tokens_ratio", "").rstrip(".")
        if text.replace(".", "", 1).isdigit():
            ratios.append(float(text))
    if boot.pools:
        fitting = ratio_of_pools(
            boot.pools.get("full", 0), boot.pools.get("swa", 0), known.page_size
        )
        if fitting is not None:
            ratios.append(fitting)
    ratios += [known.swa_full_tokens_ratio, 0.1, None]
    if boot.swa.get("mode") == "cap":
        ratios = [None]
    return tuple(replace(known, swa_full_tokens_ratio=ratio) for ratio in dict.fromkeys(ratios))


def _proven_index(pools: Iterable[HostPool]) -> str | None:
    """The index-K format that HiCache's host pool proves by the bytes of its items."""
    for pool in pools:
        if pool.name != _INDEX_POOL or pool.item_bytes is None:
            continue
        for dtype in ("fp8", "fp4", "bf16"):
            if pool.item_bytes == 64 * index_row_bytes(dtype, 128):
                return dtype
    return None


def _differences(boot: BootReport, plan: Plan) -> list[dict[str, Any]]:
    """One row a printed figure: the log's, ours, the difference, and if rounding explains it."""
    rows = [_row("bytes_per_full_token", boot.memory, plan.price.per_full_token, slack=0.005)]
    for key in ("c128_state", "c2_state", "swa", "swa_ring", "c4_state"):
        name = f"{key}_fixed"
        if name in boot.memory:
            ours = plan.fixed_bytes.get("swa_fixed" if key == "swa" else key, 0) / GIB
            rows.append(_row(name, boot.memory, ours, unit="GiB", slack=_GIB_STEP / 2))
    if plan.pools is None:
        return rows
    # The budget itself is printed to 0.01 GiB: that many tokens are beyond the log's precision.
    blur = _GIB_STEP / 2 * GIB / plan.price.per_full_token + plan.inputs.page_size
    rows.append(_row("full_token", boot.memory, plan.pools.full, slack=blur))
    sizes = plan.pools.as_sizes() | {"c128_state": plan.pools.c128_state_before_finalize}
    shares = {"full": 1.0, "c4": 0.25, "c128": 1 / 128}
    for key, ours in sizes.items():
        if key in boot.pools:
            share = shares.get(key) or (ours / max(plan.pools.full, 1))
            slack = blur * share + plan.inputs.page_size
            rows.append(_row(f"pool_sizes.{key}", {f"pool_sizes.{key}": str(boot.pools[key])}, ours,
                             slack=slack))  # fmt: skip
    return rows


def _row(
    name: str, printed: Mapping[str, str], ours: float, *, slack: float, unit: str = ""
) -> dict[str, Any]:
    said = float(printed[name])
    return {
        "figure": name + (f" ({unit})" if unit else ""),
        "log": said,
        "ours": ours,
        "difference": ours - said,
        "within_rounding": abs(ours - said) <= slack + 1e-6,
    }
