"""What a live server says of itself. Every field is optional: unknown is an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """`engine` is `sglang`, `vllm` or None; `server_args` are SGLang's names, secrets redacted."""

    base_url: str
    engine: str | None = None
    version: str | None = None
    model: str | None = None
    server_args: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
