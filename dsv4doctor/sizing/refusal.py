"""Why an engine would stop at boot instead of sizing its pools, in the words it logs."""

from __future__ import annotations


class Refusal(Exception):
    """The engine's own error: `kind` is its exception class; `memory`: more bytes would cure it."""

    def __init__(self, kind: str, message: str, *, memory: bool = False) -> None:
        super().__init__(f"{kind}: {message}")
        self.memory = memory


def not_enough_memory() -> Refusal:
    return Refusal(
        "RuntimeError",
        "Not enough memory. Please try to increase --mem-fraction-static.",
        memory=True,
    )


def swa_floor(swa_tokens: int, window: int, page: int) -> Refusal:
    return Refusal(
        "ValueError",
        f"SWA pool ({swa_tokens} tokens) cannot hold even one request: the prefill admission floor "
        f"is sliding_window_size ({window}) + page_size ({page}). Increase --swa-full-tokens-ratio "
        "or the total KV budget.",
        memory=True,
    )


def cap_too_big(cap_tokens: int, cap_bytes: float, available_bytes: int) -> Refusal:
    gib = 1 << 30
    return Refusal(
        "RuntimeError",
        f"The DSV4 SWA pool cap ({cap_tokens} tokens, {cap_bytes / gib:.2f} GB) leaves no room for "
        f"the full KV pool within the available {available_bytes / gib:.2f} GB. Reduce "
        "--max-running-requests, lower --swa-prefix-tails or SGLANG_SWA_EVICTION_INTERVAL, or "
        "increase --mem-fraction-static.",
        memory=True,
    )
