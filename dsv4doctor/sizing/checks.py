"""Combinations that a release refuses at boot, checked before anything is priced."""

from __future__ import annotations

from dsv4doctor.sizing.accounting import Accounting
from dsv4doctor.sizing.architecture import KNOWN_RATIOS
from dsv4doctor.sizing.inputs import Inputs
from dsv4doctor.sizing.layouts import MAIN_LAYOUTS, V4
from dsv4doctor.sizing.refusal import Refusal

_STATE_DTYPES = ("float32", "fp32", "bfloat16", "bf16")
# A draft's tail must stay in the ring beside the compressor's window: ring - window + 2.
_C4_RING_DRAFTS = 16 - 8 + 2
_C128_RING_DRAFTS = 256 - 128 + 2


def refuse(inputs: Inputs, accounting: Accounting) -> None:
    """Return when the release accepts the inputs.

    Raises:
        Refusal: what the release itself would stop with.
    """
    # In the order of the release's own constructor: the first refusal is the one it logs.
    _check_rows(inputs)
    _check_ratios(inputs, accounting)
    _check_online_ring(inputs, accounting)
    _check_unified(inputs, accounting)
    _check_draft_tokens(inputs, accounting)
    if accounting.page_padding_priced:
        _check_layout(inputs)
    _check_state_dtype(inputs, accounting)
    _check_online(inputs, accounting)
    if inputs.page_size <= 0 or inputs.page_size % 128:
        raise Refusal(
            "AssertionError", "page_size must be multiple of 128 for compressed attention"
        )


def _check_rows(inputs: Inputs) -> None:
    model = inputs.model
    packed = model.head_dim + model.qk_rope_head_dim + 8
    if model.qk_rope_head_dim >= model.head_dim or packed != V4.token_bytes:
        raise Refusal(
            "AssertionError",
            f"DSV4 KV layout: head_dim {model.head_dim} with qk_rope_head_dim "
            f"{model.qk_rope_head_dim} packs to {packed} B a row, the pools take {V4.token_bytes}",
        )


def _check_ratios(inputs: Inputs, accounting: Accounting) -> None:
    ratios = set(inputs.model.layer_ratios)
    odd = sorted(ratios - set(KNOWN_RATIOS))
    if odd:
        raise Refusal("ValueError", f"Unsupported compression ratio: {odd[0]}")
    if ratios & {1, 2} and not accounting.page_padding_priced:
        raise Refusal(
            "ValueError",
            f"SGLang {accounting.newest} knows no compression ratio 1 or 2 (V4.1 is served from "
            "0.5.21 on)",
        )
    if inputs.encoder_replay and not accounting.page_padding_priced:
        raise Refusal("ValueError", f"SGLang {accounting.newest} has no encoder SWA replay")
    if inputs.encoder_replay and inputs.max_running_requests is None:
        raise Refusal("TypeError", "encoder SWA replay needs --max-running-requests")
    if inputs.encoder_replay and inputs.is_dspark and not inputs.draft_layers:
        raise Refusal("AssertionError", "DSpark draft layer count is required")


def _online_with_draft(inputs: Inputs) -> bool:
    return inputs.switch("SGLANG_OPT_USE_ONLINE_COMPRESS") and inputs.is_speculative


def _banks(inputs: Inputs, accounting: Accounting) -> bool:
    switched = inputs.switch("SGLANG_EXPERIMENTAL_ONLINE_C128_MTP")
    return accounting.online_draft_banks and switched


def _check_online_ring(inputs: Inputs, accounting: Accounting) -> None:
    """The pool module's own refusal, where it honours online c128 at all."""
    in_pool = accounting.online_on_hip or not inputs.is_hip
    if _online_with_draft(inputs) and in_pool and not _banks(inputs, accounting):
        raise Refusal("AssertionError", "online c128 does not support MTP")


def _check_online(inputs: Inputs, accounting: Accounting) -> None:
    """The configurator's refusal, after everything else."""
    if not _online_with_draft(inputs):
        return
    eagle = str(inputs.speculative).upper() in ("EAGLE", "NEXTN")
    if not (_banks(inputs, accounting) and eagle):
        words = "SGLANG_OPT_USE_ONLINE_COMPRESS does not support speculative decode (MTP) yet"
        if accounting.online_draft_banks:
            words += (
                ", except the experimental EAGLE topk=1 path gated by "
                "SGLANG_EXPERIMENTAL_ONLINE_C128_MTP=1"
            )
        raise Refusal("AssertionError", words)
    if not inputs.draft_tokens:
        raise Refusal(
            "AssertionError",
            "SGLANG_EXPERIMENTAL_ONLINE_C128_MTP requires speculative_num_draft_tokens to be set.",
        )


def _check_state_dtype(inputs: Inputs, accounting: Accounting) -> None:
    name = inputs.env.get("SGLANG_DSV4_COMPRESS_STATE_DTYPE")
    if name is None or not accounting.state_dtype_switch:
        return
    if name.strip().lower() not in _STATE_DTYPES:
        raise Refusal(
            "ValueError",
            f"Unsupported SGLANG_DSV4_COMPRESS_STATE_DTYPE={name!r}. Expected one of: "
            f"{', '.join(_STATE_DTYPES)}.",
        )
    narrow = name.strip().lower() in ("bf16", "bfloat16")
    if (
        narrow
        and accounting.online_needs_fp32_state
        and inputs.switch("SGLANG_OPT_USE_ONLINE_COMPRESS")
    ):
        raise Refusal(
            "ValueError",
            "SGLANG_DSV4_COMPRESS_STATE_DTYPE=bf16 is not supported when "
            "SGLANG_OPT_USE_ONLINE_COMPRESS=1; online c128 state must stay float32.",
        )


def _check_draft_tokens(inputs: Inputs, accounting: Accounting) -> None:
    if not (accounting.draft_tokens_bounded and inputs.is_speculative):
        return
    drafts, ratios = inputs.draft_tokens, inputs.model.layer_ratios
    online = inputs.switch("SGLANG_OPT_USE_ONLINE_COMPRESS")
    for ratio, ring, bound in ((4, 16, _C4_RING_DRAFTS), (128, 256, _C128_RING_DRAFTS)):
        if ratio not in ratios or (ratio == 128 and online):
            continue
        if drafts > bound:
            raise Refusal(
                "AssertionError",
                f"speculative_num_draft_tokens={drafts} exceeds what the c{ratio} compress state "
                f"ring can keep resident (ring_size={ring} serves at most {bound} draft tokens). "
                "Lower the draft count, or grow the ring in get_compress_state_ring_size().",
            )


def _check_layout(inputs: Inputs) -> None:
    mode = inputs.env.get("SGLANG_DSV4_KV_LAYOUT", inputs.kv_layout).lower()
    if mode not in (*MAIN_LAYOUTS, "auto"):
        raise Refusal("AssertionError", f"unknown SGLANG_DSV4_KV_LAYOUT={mode!r}")
    if mode in ("v4", "auto"):
        return
    if inputs.dsv4_attn_backend == "trtllm":
        raise Refusal(
            "AssertionError",
            "trtllm uses uniform FP8 pools, not the packed V4.1 KV layouts",
        )
    # A platform without its compute capability is given the benefit of the doubt.
    if inputs.platform in ("cuda-sm90", "cuda-sm89", "cuda-sm120"):
        raise Refusal("AssertionError", "the V4.1 KV cache layouts need an SM100 / SM103 GPU")


def _check_unified(inputs: Inputs, accounting: Accounting) -> None:
    unified = (
        accounting.unified_pool
        and inputs.is_hip
        and inputs.env.get("SGLANG_HACK_FLASHMLA_BACKEND") == "unified_kv_triton"
    )
    if unified and set(inputs.model.layer_ratios) & {1, 2}:
        raise Refusal("AssertionError", "unified_kv has no low compress ratio layout")
    asked = unified and inputs.switch("SGLANG_DSV4_UNIFIED_KV_FP8")
    if not (asked and inputs.platform == "hip-gfx95" and accounting.unified_priced):
        return
    if inputs.disaggregation_mode == "null":
        return
    if accounting.unified_fp8_refuses_pd:
        raise Refusal(
            "ValueError",
            "SGLANG_DSV4_UNIFIED_KV_FP8=1 does not support PD disaggregation "
            f"(disaggregation_mode={inputs.disaggregation_mode!r}). Unset the fp8 switch or run "
            "without disaggregation.",
        )
    if inputs.pp_size > 1 or inputs.hisparse_host_to_device_ratio > 1:
        raise Refusal(
            "ValueError",
            "SGLANG_DSV4_UNIFIED_KV_FP8=1 does not support PD disaggregation with pp_size > 1 or "
            "--enable-hisparse.",
        )
