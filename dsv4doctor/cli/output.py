"""The result on stdout: one JSON document in the contract's envelope, or a rendered report."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any

from dsv4doctor import SCHEMA_VERSION, __version__
from dsv4doctor.finding import Finding


def plain(value: Any) -> Any:
    """`value` as JSON types: dataclasses become objects, NaN and infinities null."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if hasattr(value, "item"):  # a numpy scalar
        return plain(value.item())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def envelope(
    command: str, verdict: str, exit_code: int, findings: Sequence[Finding], body: Any
) -> dict[str, Any]:
    """The document that `--json` prints, as JSON types."""
    return {
        "schema_version": SCHEMA_VERSION,
        "dsv4doctor_version": __version__,
        "command": command,
        "verdict": verdict,
        "exit_code": exit_code,
        "findings": plain(findings),
        command: plain(body),
    }


def emit_json(
    command: str, verdict: str, exit_code: int, findings: Sequence[Finding], body: Any
) -> None:
    """Print the envelope on stdout."""
    print_document(envelope(command, verdict, exit_code, findings, body))


def print_document(document: Mapping[str, Any]) -> None:
    """Print an envelope on stdout.

    ASCII only, so that a lone surrogate in model output is an escape that every reader takes and no
    terminal obeys. Whole or not at all, where the form fails.
    """
    text = json.dumps(document, ensure_ascii=True, allow_nan=False)
    _Printed.documents += 1
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class _Printed:
    """What this process has answered: more than one document there never is."""

    documents = 0


def is_printed() -> bool:
    """Whether the document is on stdout, or was begun."""
    return _Printed.documents > 0


def begin() -> None:
    """Another command line begins (in one process: tests)."""
    _Printed.documents = 0
