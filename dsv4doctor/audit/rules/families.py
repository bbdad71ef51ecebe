"""Predicates on what is served, shared by the rules: model families, engines, roles, drafts."""

from __future__ import annotations

from dsv4doctor.audit.facts import Facts
from dsv4doctor.audit.logic import (
    NO,
    Answer,
    Check,
    above,
    all_of,
    any_of,
    contains,
    given,
    off,
    on,
    one_of,
)
from dsv4doctor.finding import Evidence

SGLANG = one_of("engine", "sglang")
VLLM = one_of("engine", "vllm")
ASCEND = one_of("engine", "vllm-ascend")
V4 = one_of("model_family", "v4")
V41 = one_of("model_family", "v41")
V4_ANY = one_of("model_family", "v4", "v41")
DSA = one_of("model_family", "v32", "glm")
FLASH_0731 = contains("model", "0731")
PD = one_of("disaggregation_mode", "prefill", "decode")
SPEC = given("speculative_algorithm")
DSPARK = one_of("speculative_algorithm", "DSPARK")
ROCM = any_of(contains("platform", "hip", "rocm"), contains("gpu", "mi3", "gfx"))
SM90 = any_of(one_of("platform", "cuda-sm90"), contains("gpu", "h100", "h200", "h20", "sm90"))
# vLLM captures full graphs and caches prefixes unless told otherwise.
GRAPHS = all_of(
    off("enforce_eager"),
    one_of("cudagraph_mode", "full", "full_and_piecewise", default="full_and_piecewise"),
)
PREFIX_CACHE = on("enable_prefix_caching", default=True)
SM12X = any_of(
    one_of("platform", "cuda-sm120", "cuda-sm121"), contains("gpu", "sm12", "rtx-pro", "spark")
)
SM8X_OR_12X = any_of(SM12X, one_of("platform", "cuda-sm80", "cuda-sm86", "cuda-sm89"))


def long_draft(bound: float) -> Check:
    """More draft tokens than `bound`; DSPARK's own default is 6."""
    counted = above("speculative_num_draft_tokens", bound)
    return any_of(all_of(SPEC, counted), all_of(DSPARK, _dspark_default))


def _dspark_default(facts: Facts) -> Answer:
    if facts.get("speculative_num_draft_tokens") is not None:
        return NO
    told = Evidence(where=facts.subject, what="speculative_num_draft_tokens is not given: 6")
    return Answer(holds=True, evidence=(told,))
