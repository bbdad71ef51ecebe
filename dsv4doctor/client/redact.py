"""Secrets in what a server tells of itself, blotted out before anything keeps it."""

from __future__ import annotations

import re
from typing import Any

BLOT = "[redacted]"

# A key counts as secret by its last word: `hf_token` does, `max_total_tokens` does not.
_SECRET_KEY = re.compile(
    r"(?:^|[_\-.])(?:api_?key|apikey|access_?key(?:_id)?|token|secret|password|passwd|passphrase"
    r"|authorization|credentials?|private_?key)$",
    re.IGNORECASE,
)
_SECRET_FLAG = re.compile(
    r"(--?[\w-]*(?:api-?key|token|secret|password|access-?key)(?:=|\s+))(?:'[^']*'|\"[^\"]*\"|\S+)",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(://)[^/\s:@]*:[^/\s@]*@")


def redacted(value: Any) -> Any:
    """`value` with secrets replaced, by key, in command lines and in URLs."""
    if isinstance(value, dict):
        return {
            key: BLOT
            if item not in (None, "", False) and _SECRET_KEY.search(str(key))
            else redacted(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return _redacted_list(value)
    if isinstance(value, str):
        return _USERINFO.sub(rf"\1{BLOT}@", _SECRET_FLAG.sub(rf"\1{BLOT}", value))
    return value


def _redacted_list(items: list[Any]) -> list[Any]:
    """A list, perhaps an argument vector: what follows a secret flag is a secret."""
    result, follows_flag = [], False
    for item in items:
        result.append(BLOT if follows_flag else redacted(item))
        is_flag = isinstance(item, str) and item.startswith("-") and "=" not in item
        follows_flag = is_flag and _SECRET_KEY.search(item.replace("-", "_")) is not None
    return result
