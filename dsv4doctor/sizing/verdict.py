"""From a plan to a verdict and findings: over-commit, does not fit, or fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dsv4doctor.finding import Certainty, Evidence, Finding, Severity
from dsv4doctor.sizing.architecture import FLASH, PRO
from dsv4doctor.sizing.causes import Cause, Waste, find_causes, find_waste, over_commit_words
from dsv4doctor.sizing.plan import Plan, plan_figures
from dsv4doctor.sizing.refusal import Refusal
from dsv4doctor.units import MIB, format_bytes, format_tokens

OVER_COMMIT, DOES_NOT_FIT, FITS = "over_commit", "does_not_fit", "fits"
# Below this an over-commit drowns in the allocator's rounding (2 MiB a tensor, some 170 of them).
LEAST_OVER_COMMIT_BYTES = 64 * MIB
LEAST_OVER_COMMIT_SHARE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A plan and what is to be said about it; `estimates`: why its figures are not checked ones."""

    plan: Plan
    release: str
    verdict: str
    causes: tuple[Cause, ...]
    cause_words: str | None
    waste: tuple[Waste, ...]
    estimates: tuple[str, ...]


def judge(plan: Plan, release: str, *, executed: bool) -> Judged:
    """The verdict on `plan` of SGLang `release`; `executed`: its own code was checked."""
    over = plan.over_commit_bytes
    verdict = FITS
    if plan.refusal is not None:
        verdict = DOES_NOT_FIT
    elif over is not None and over > over_commit_limit(plan.inputs.available_bytes):
        verdict = OVER_COMMIT
    causes = find_causes(plan)
    return Judged(
        plan=plan,
        release=release,
        verdict=verdict,
        causes=causes,
        cause_words=over_commit_words(plan, causes),
        waste=find_waste(plan),
        estimates=_estimates(plan, release, executed=executed),
    )


def over_commit_limit(available_bytes: int) -> float:
    """Bytes beyond the budget that count as an over-commit."""
    return max(LEAST_OVER_COMMIT_BYTES, LEAST_OVER_COMMIT_SHARE * available_bytes)


def _estimates(plan: Plan, release: str, *, executed: bool) -> tuple[str, ...]:
    inputs, found = plan.inputs, []
    if not executed:
        found.append(
            f"SGLang {release} is newer than {plan.accounting.newest}, whose accounting is used"
        )
    if inputs.encoder_replay:
        found.append("the request window's allocation was read and not executed")
    if inputs.hisparse_host_to_device_ratio > 1:
        found.append("HiSparse was read and not executed")
    if inputs.pp_size > 1:
        found.append("pipeline stages were read and not executed")
    if plan.geometry.unified and inputs.is_speculative:
        found.append("the unified pool with a draft was read and not executed")
    if inputs.max_total_tokens is not None:
        found.append("a cap by --max-total-tokens was read and not executed")
    if (inputs.speculative_eagle_topk or 1) > 1:
        found.append("speculation with topk > 1 was read and not executed")
    if inputs.platform == "cuda-sm120" and inputs.switch("SGLANG_OPT_SM120_DIRECT_SWA_KV"):
        found.append("64-token SWA pages (SM120) were read and not executed")
    return tuple(found)


def judged_figures(judged: Judged) -> dict[str, Any]:
    """The contract's `size` object."""
    figures: dict[str, Any] = {
        "engine": "sglang",
        "version": judged.release,
        "accounting": judged.plan.accounting.newest,
        "model": judged.plan.inputs.model.name,
        "available_bytes": judged.plan.inputs.available_bytes,
        "verdict": judged.verdict,
    }
    figures |= plan_figures(judged.plan)
    figures["over_commit_cause"] = judged.cause_words
    figures["figures_are"] = "estimate" if judged.estimates else "computed and checked"
    figures["estimate_because"] = list(judged.estimates)
    if judged.plan.refusal is not None:
        figures["error"] = str(judged.plan.refusal)
    return figures


def findings_of(judged: Judged) -> tuple[Finding, ...]:
    """What a person should know of `judged`, the gravest first."""
    plan = judged.plan
    found = [*_refused(plan.refusal), *_over_commit(judged), *_index_k(judged)]
    for waste in judged.waste:
        found.append(
            Finding(
                rule="SIZING_WASTE",
                severity=Severity.INFO,
                certainty=Certainty.INFERRED if judged.estimates else Certainty.MEASURED,
                title=waste.title,
                evidence=(Evidence(where=f"size.{waste.name}", what=waste.words),),
            )
        )
    found += _notes(judged)
    return tuple(found)


def _refused(refusal: Refusal | None) -> list[Finding]:
    if refusal is None:
        return []
    return [
        Finding(
            rule="SIZING_DOES_NOT_FIT",
            severity=Severity.ERROR,
            title="the server would stop at boot: its pools do not fit",
            evidence=(Evidence(where="the engine's own error", what=str(refusal)),),
            remedy="more available bytes (--mem-fraction-static), or fewer requests "
            "(--max-running-requests)",
        )
    ]


def _over_commit(judged: Judged) -> list[Finding]:
    over = judged.plan.over_commit_bytes
    if over is None or over <= 0:
        return []
    large = judged.verdict == OVER_COMMIT
    return [
        Finding(
            rule="SIZING_OVER_COMMIT",
            severity=Severity.ERROR if large else Severity.INFO,
            certainty=Certainty.INFERRED if judged.estimates else Certainty.MEASURED,
            title=f"the pools take {format_bytes(over)} a rank more than their budget",
            evidence=(
                Evidence(
                    where="size.over_commit_bytes",
                    what=f"{over} B allocated beyond {judged.plan.inputs.available_bytes} B",
                ),
                Evidence(where="size.over_commit_cause", what=judged.cause_words or "rounding"),
            ),
            remedy="lower --mem-fraction-static by that much, or have the configurator price what "
            "is stored (dsv4doctor patch)"
            if large
            else "",
        )
    ]


def _index_k(judged: Judged) -> list[Finding]:
    geometry, pools = judged.plan.geometry, judged.plan.pools
    if judged.plan.index_dtype != "bf16" or pools is None:
        return []
    found = [
        Finding(
            rule="SIZING_BF16_INDEX_K",
            severity=Severity.INFO,
            title="no released SGLang stores index-K as bf16: this is a patched server's sizing",
            evidence=(
                Evidence(
                    where="size.index_k",
                    what=f"{geometry.index_stored} B stored, {geometry.index_counted} B counted",
                ),
            ),
        )
    ]
    missing = geometry.index_stored - geometry.index_counted
    if missing:
        per_token = missing * geometry.stored.count(4) / 4
        found.append(
            Finding(
                rule="SIZING_INDEX_K_UNDERPRICED",
                severity=Severity.ERROR if judged.verdict == OVER_COMMIT else Severity.WARNING,
                title=f"index-K is counted {per_token:g} B a token too cheap",
                evidence=(
                    Evidence(
                        where="size.bytes_per_full_token",
                        what=f"{judged.plan.price.per_full_token:.2f} B for "
                        f"{format_tokens(pools.full)} tokens",
                    ),
                ),
                remedy="dsv4doctor patch --source DIR: match the configurator to the stored format",
            )
        )
    return found


def _notes(judged: Judged) -> list[Finding]:
    found = []
    if judged.estimates:
        found.append(
            Finding(
                rule="SIZING_ESTIMATE",
                severity=Severity.INFO,
                certainty=Certainty.INFERRED,
                title="these figures are an estimate",
                evidence=tuple(
                    Evidence(where="size.estimate_because", what=why) for why in judged.estimates
                ),
            )
        )
    model = judged.plan.inputs.model
    if judged.plan.accounting.whole_ratio_list and model.compress_ratios in (
        FLASH.compress_ratios,
        PRO.compress_ratios,
    ):
        layers = model.num_hidden_layers
        found.append(
            Finding(
                rule="SIZING_RATIO_LIST",
                severity=Severity.INFO,
                title=f"0.5.12 prices the whole compress_ratios list, here {layers} layers",
                evidence=(
                    Evidence(
                        where="config.json",
                        what=f"the file as shipped has {layers + 1} entries: --model-config, or "
                        f'--model "{model.name}({layers + 1}-entry HF list)"',
                    ),
                ),
            )
        )
    return found
