"""Factors: what an arm may change, by name, on which side, and to which values.

Beside the named factors any flag (`--mem-fraction-static=0.8`) or variable of the server
(`SGLANG_RADIX_FORCE_MISS=1`) is a factor under its own spelling: a flag may be `on`, `off` or
`unset`, a variable `unset`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from dsv4doctor.errors import UsageError


class Side(StrEnum):
    """Who carries the change: what we send, or how the server is launched."""

    CLIENT = "client"
    SERVER = "server"


class ValueKind(StrEnum):
    CHOICE = "choice"
    COUNT = "count"
    NUMBER = "number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """`values` are the choices; empty where `kind` is a number or a count, at least 1."""

    name: str
    side: Side
    summary: str
    values: tuple[str, ...] = ()
    kind: ValueKind = ValueKind.CHOICE


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A factor at a value; `side` says who carries it. Unnamed factors are flags and variables."""

    factor: str
    value: str
    side: Side

    @property
    def is_flag(self) -> bool:
        return self.factor.startswith("--")

    @property
    def is_variable(self) -> bool:
        return not self.is_flag and self.factor.isupper()

    def __str__(self) -> str:
        return f"{self.factor}={self.value}"


ON_OFF = ("on", "off")

CLIENT_FACTORS = (
    Factor(
        name="concurrency",
        side=Side.CLIENT,
        kind=ValueKind.COUNT,
        summary="sessions in flight at a time",
    ),
    Factor(
        name="cache",
        side=Side.CLIENT,
        values=("hit", "miss"),
        summary="miss salts the first block of each prompt, so that no prefix can match",
    ),
    Factor(
        name="context",
        side=Side.CLIENT,
        values=("short", "long"),
        summary="below or above 2,048 tokens, where the indexer begins to choose",
    ),
    Factor(name="aborts", side=Side.CLIENT, values=ON_OFF, summary="hang up on some requests"),
    Factor(name="stream", side=Side.CLIENT, values=ON_OFF, summary="ask for streamed replies"),
    Factor(
        name="history",
        side=Side.CLIENT,
        values=("scripted", "live"),
        summary="whose replies later turns carry",
    ),
    Factor(
        name="temperature",
        side=Side.CLIENT,
        kind=ValueKind.NUMBER,
        summary="sampling temperature of every request",
    ),
)

SERVER_FACTORS = (
    Factor(
        name="index_k",
        side=Side.SERVER,
        values=("fp8", "bf16", "fp4"),
        summary="storage format of the indexer's keys",
    ),
    Factor(name="hicache", side=Side.SERVER, values=ON_OFF, summary="hierarchical cache"),
    Factor(name="overlap", side=Side.SERVER, values=ON_OFF, summary="overlap schedule"),
    Factor(
        name="early_send",
        side=Side.SERVER,
        values=ON_OFF,
        summary="prefill sends a cached prefix before its forward",
    ),
    Factor(
        name="war_barrier",
        side=Side.SERVER,
        values=("coarse", "default"),
        summary="coarse: copies wait for the whole forward",
    ),
    Factor(name="cuda_graph", side=Side.SERVER, values=ON_OFF, summary="CUDA graphs"),
    Factor(name="spec", side=Side.SERVER, values=ON_OFF, summary="speculative decoding"),
)

FACTORS = CLIENT_FACTORS + SERVER_FACTORS
BY_NAME = {factor.name: factor for factor in FACTORS}

_FLAG = re.compile(r"--[a-z][a-z0-9-]*\Z")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*\Z")


def parse_setting(text: str) -> Setting:
    """The setting that `factor=value` names.

    Raises:
        UsageError: naming the factor or the value that does not exist, with those that do.
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise UsageError(f"{text.strip()!r} is no factor=value", "write for example hicache=off")
    if _FLAG.match(name) or _VARIABLE.match(name):
        return Setting(factor=name, value=value, side=Side.SERVER)
    factor = BY_NAME.get(name)
    if factor is None:
        raise UsageError(
            f"there is no factor {name!r}",
            f"factors are {', '.join(BY_NAME)}, any --flag and any VARIABLE",
        )
    return Setting(factor=name, value=_checked(factor, value), side=factor.side)


def _checked(factor: Factor, value: str) -> str:
    if factor.kind is ValueKind.CHOICE:
        if value in factor.values:
            return value
        hint = f"it may be {' or '.join(factor.values)}"
    elif factor.kind is ValueKind.COUNT:
        if value.isascii() and value.isdigit() and int(value) >= 1:
            return str(int(value))
        hint = "it is a count of at least 1"
    else:
        if re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII):
            return value
        hint = "it is a number of at least 0"
    raise UsageError(f"{factor.name} cannot be {value!r}", hint)
