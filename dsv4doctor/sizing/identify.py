"""Which model, release and settings give a printed `bytes_per_full_token`; logs do not say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.architecture import (
    FLASH,
    FLASH_AS_SHIPPED,
    PRO,
    PRO_AS_SHIPPED,
    V41_FLASH,
    Architecture,
)
from dsv4doctor.sizing.inputs import Inputs, resolve_geometry
from dsv4doctor.sizing.pricing import price_tokens
from dsv4doctor.sizing.spec import DEFAULT_DRAFT_TOKENS
from dsv4doctor.sizing.versions import accounting_of

PRINTED_STEP = 0.01  # the log rounds to two places
# As shipped before cut lists: a log comes from a real config.json.
_MODELS = (FLASH_AS_SHIPPED, PRO_AS_SHIPPED, V41_FLASH, FLASH, PRO)
_DRAFTS = (None, "EAGLE", "DSPARK")
_INDEX = ("fp8", "bf16_priced", "fp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Settings that reproduce the printed figure."""

    release: str
    inputs: Inputs
    bytes_per_full_token: float


def identify(
    printed: float,
    releases: Sequence[str],
    known: Inputs,
    *,
    models: Sequence[Architecture] = _MODELS,
    draft_known: bool = False,
) -> tuple[Match, ...]:
    """Every candidate that prints `printed`, the plainest first; empty when none does.

    `known` carries what the log does say (ratio, requests, environment); its model is replaced by
    each of `models`. Newer releases of the range are tried first.
    """
    found = []
    for release in reversed(releases):
        accounting, _ = accounting_of(release)
        for candidate in _candidates(known, models, draft_known=draft_known):
            price = _price(candidate, accounting)
            if price is not None and abs(price - printed) <= PRINTED_STEP / 2 + 1e-6:
                found.append(Match(release=release, inputs=candidate, bytes_per_full_token=price))
    return tuple(found)


def _candidates(
    known: Inputs, models: Sequence[Architecture], *, draft_known: bool
) -> Iterator[Inputs]:
    for index in dict.fromkeys((known.index_dtype, *_INDEX)):
        for draft in (known.speculative,) if draft_known else _DRAFTS:
            for model in models:
                yield with_draft(replace(known, model=model, index_dtype=index), draft)


def with_draft(inputs: Inputs, algorithm: str | None) -> Inputs:
    """`inputs` under a draft algorithm, its length and layers what the algorithm implies."""
    if algorithm is None:
        return replace(inputs, speculative=None, speculative_num_draft_tokens=None, draft_layers=0)
    drafts = inputs.speculative_num_draft_tokens or DEFAULT_DRAFT_TOKENS.get(algorithm.upper(), 4)
    layers = inputs.model.draft_layers if algorithm.upper() == "DSPARK" else 1
    return replace(
        inputs,
        speculative=algorithm,
        speculative_num_draft_tokens=drafts,
        draft_layers=layers,
    )


def _price(inputs: Inputs, accounting: Accounting) -> float | None:
    ratios = set(inputs.model.layer_ratios)
    if ratios & {1, 2} and not accounting.page_padding_priced:
        return None
    geometry = resolve_geometry(inputs, accounting)
    capped = accounting.page_padding_priced and inputs.swa_full_tokens_ratio is None
    price: float = price_tokens(
        inputs, geometry, accounting, capped=capped, paged_draft=0
    ).per_full_token
    return price


def ratio_of_pools(full: int, swa: int, page: int) -> float | None:
    """The shortest decimal ratio that gives `swa` tokens of `full` after page rounding."""
    if full <= 0 or swa <= 0:
        return None
    low, high = swa / full, (swa + page) / full
    for places in range(1, 7):
        step = float(10**-places)
        ratio = round(-(-low // step) * step, places)
        if low <= ratio < high:
            return ratio
    return None
