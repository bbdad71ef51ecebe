"""What `run.json` says of a run: written when it starts, amended later, read strictly."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from dsv4doctor import SCHEMA_VERSION, __version__
from dsv4doctor.artifacts.jsonlines import loads
from dsv4doctor.errors import UsageError
from dsv4doctor.redact import redact_argv, redact_value

MANIFEST = "run.json"

_HINT = "give a directory under reports/ that a run of dsv4doctor made"
# Libraries whose version can explain a difference between two runs.
_NAMED_PACKAGES = ("httpx", "aiohttp", "httpx-aiohttp", "numpy", "scipy")
_MOST_NAME_CHARS = 80
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run about to start: `details` are further keys of `run.json` (target, seed, plan)."""

    command: str
    label: str
    argv: Sequence[str]
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder_name(self) -> str:
        return f"{self.command}-{safe_name(self.label)}"

    def manifest(self, began: datetime) -> dict[str, Any]:
        """The first `run.json`, without a segment; secrets redacted."""
        return {
            "schema_version": SCHEMA_VERSION,
            "dsv4doctor_version": __version__,
            "command": self.command,
            "label": self.label,
            "argv": list(redact_argv(self.argv)),
            "versions": _versions(),
            "started": stamp(began),
            "ended": None,
            "segments": [],
            **redact_value(dict(self.details)),
        }


def segment(argv: Sequence[str], began: datetime, *, torn_lines: int) -> dict[str, Any]:
    """One process's part of a run; a run that was resumed has several."""
    return {
        "started": stamp(began),
        "ended": None,
        "argv": list(redact_argv(argv)),
        "torn_lines": torn_lines,
    }


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of the run directory `path`.

    Raises:
        UsageError: if `path` is no run directory, is damaged, or was written by a newer version.
    """
    if not path.exists():
        raise UsageError(f"there is no run directory {path}", _HINT)
    if not (path / MANIFEST).is_file():
        raise UsageError(f"{path} is no run directory: it has no {MANIFEST}", _HINT)
    manifest = read_object(path / MANIFEST)
    version = manifest.get("schema_version")
    if not isinstance(version, int) or not isinstance(manifest.get("command"), str):
        raise UsageError(f"{path / MANIFEST} is no run's manifest", _HINT)
    if version > SCHEMA_VERSION:
        raise UsageError(
            f"{path} was written by a newer dsv4doctor (schema {version})",
            f"update dsv4doctor; this one ({__version__}) knows schemas to {SCHEMA_VERSION}",
        )
    if not isinstance(manifest.get("segments"), list):
        manifest["segments"] = []
    return manifest


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object that a file of a run holds.

    Raises:
        UsageError: if it cannot be read or holds none.
    """
    try:
        value = loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", _HINT) from error
    except ValueError as error:
        raise UsageError(f"{path} is damaged: {error}", _HINT) from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} is damaged: it holds no object", _HINT)
    return value


def safe_name(name: str) -> str:
    """A file name that says `name`; where characters had to go, a digest keeps names apart."""
    safe = _UNSAFE.sub("_", name).strip(".") or "_"
    if safe == name and len(safe) <= _MOST_NAME_CHARS:
        return safe
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{safe[:_MOST_NAME_CHARS]}-{digest}"


def stamp(moment: datetime) -> str:
    """A moment as the run directory writes it: UTC, milliseconds, `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for package in _NAMED_PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found
