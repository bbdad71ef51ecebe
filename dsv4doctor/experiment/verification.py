"""Is an arm what its name says? Facts read off the server, before, during and after -> proofs.

A flag that was asked for is not yet a feature that ran: HiCache that never restored a token proves
nothing about HiCache. Each setting of an arm is therefore checked, and what cannot be read is
unknown, never taken for granted. An arm that is not verified takes no part in any comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Standing(StrEnum):
    PROVED = "proved"
    VACUOUS = "vacuous"  # set as asked, but it never came into play
    REFUTED = "refuted"  # the server says otherwise
    UNKNOWN = "unknown"  # nothing that could be read tells


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """What the server said of itself at one moment.

    `server_args` are SGLang's names from `/server_info`. `environment` is that of the process, None
    where it could not be read. `index_k_page_bytes` is the indexer pool's bytes a page of 64 slots,
    from the boot log (`item_bytes`) or a probe.
    """

    server_args: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] | None = None
    index_k_page_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What was seen while the arm's sessions ran; None is not seen, not zero.

    Token counts are differences of the server's counters, or sums over the responses' usage.
    `prompt_tokens` is the (least, greatest) length of a session's last prompt.
    """

    host_hit_tokens: int | None = None
    cached_tokens: int | None = None
    cuda_graph_used: bool | None = None
    accept_length: float | None = None
    peak_in_flight: int | None = None
    prompt_tokens: tuple[int, int] | None = None
    aborted: int | None = None
    streamed: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One setting, how it stands, and what was read."""

    setting: str
    standing: Standing
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """All checks of an arm, or of one of its blocks."""

    checks: tuple[Check, ...]

    @property
    def verified(self) -> bool:
        return all(check.standing is Standing.PROVED for check in self.checks)

    @property
    def reason(self) -> str:
        """Why the arm is not verified, in words; empty where it is."""
        return "; ".join(
            dict.fromkeys(
                f"{check.setting} is {check.standing}: {check.read}"
                for check in self.checks
                if check.standing is not Standing.PROVED
            )
        )


def combine(blocks: Sequence[Verification]) -> Verification:
    """The verification of an arm from those of its blocks: each must hold. None at all proves
    nothing."""
    if not blocks:
        nothing = Check(setting="arm", standing=Standing.UNKNOWN, read="no block was run")
        return Verification(checks=(nothing,))
    return Verification(checks=tuple(check for block in blocks for check in block.checks))
