"""stub"""

from __future__ import annotations


def debris(prose: str, *, in_call: bool) -> str | None:
    return None
