"""Counts as people write them: `1 response`, `32K` tokens, `141 GiB`; sizes are parsed alike."""

from __future__ import annotations

import re

from dsv4doctor.errors import UsageError

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

# SGLang prints "GB" and means GiB; elsewhere the suffix decides.
_BYTE_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "K": KIB,
    "M": MIB,
    "G": GIB,
    "T": 1 << 40,
    "KIB": KIB,
    "MIB": MIB,
    "GIB": GIB,
    "TIB": 1 << 40,
}
_TOKEN_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20}
_NUMBER = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def _scaled(text: str, units: dict[str, int], what: str, example: str) -> int:
    match = _NUMBER.fullmatch(text)
    factor = units.get(match[2].upper()) if match else None
    if match is None or factor is None:
        raise UsageError(f"{text!r} is no {what}", f"write it as {example}")
    number = match[1].replace("_", "")
    return int(number) * factor if number.isdigit() else int(float(number) * factor)


def parse_bytes(text: str) -> int:
    """Bytes named by `text`; `GiB`, `G` are powers of two, `GB` powers of ten.

    Raises:
        UsageError: `text` is no size.
    """
    return _scaled(text, _BYTE_UNITS, "size in bytes", "26.9GiB or 28883655065")


def parse_tokens(text: str) -> int:
    """Tokens named by `text`; `K` and `M` are powers of two, as in context lengths (32K, 1M).

    Raises:
        UsageError: `text` is no token count.
    """
    return _scaled(text, _TOKEN_UNITS, "token count", "131072 or 128K")


def format_bytes(count: float) -> str:
    """`count` in the largest unit that keeps a whole part: `26.90 GiB`, `12.2 MiB`, `512 B`."""
    size = abs(count)
    if size >= GIB:
        return f"{count / GIB:,.2f} GiB"
    if size >= MIB:
        return f"{count / MIB:,.1f} MiB"
    if size >= KIB:
        return f"{count / KIB:,.1f} KiB"
    return f"{count:,.0f} B"


def format_tokens(count: float) -> str:
    """`count` with thousands separated: `3,395,840`."""
    return f"{count:,.0f}"


def many(number: int, noun: str, plural: str = "") -> str:
    """`1 response`, `2,000 responses`; `plural` where an s does not make it."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
