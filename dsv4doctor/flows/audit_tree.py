"""`audit --source`: read a tree's files, judge them, and say it as facts, findings and tables."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dsv4doctor.audit.facts import Fact
from dsv4doctor.audit.rule import AuditFinding
from dsv4doctor.audit.source.gates import Standing
from dsv4doctor.audit.source.report import SourceReport, read_source, source_findings
from dsv4doctor.audit.source.tree import CONFIGURATOR, GLOBS, MEMORY_POOL, SourceTree
from dsv4doctor.errors import UsageError
from dsv4doctor.patching.tree import ROOTS
from dsv4doctor.units import many

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeAudit:
    """`release` as pip knows it; `edited`: files that differ from its list; None without one."""

    package: Path
    report: SourceReport
    facts: dict[str, Fact]
    findings: tuple[AuditFinding, ...]
    release: str | None
    edited: tuple[str, ...] | None

    def line(self) -> str:
        """The tables in one line."""
        standings = [gate.standing for gate in self.report.gates]
        waits = standings.count(Standing.GATED) + standings.count(Standing.DELEGATED)
        stored, counted = (
            "/".join(f"{price.bytes}" for price in side) or "?"
            for side in (self.report.prices.stored, self.report.prices.counted)
        )
        edited = "" if self.edited is None else f"; {many(len(self.edited), 'file')} edited"
        return (
            f"{self.package}: {waits} reads wait for their layer, "
            f"{standings.count(Standing.UNGATED)} do not; index-K stored in {stored} B a c4 token, "
            f"counted as {counted} B{edited}"
        )

    def body(self) -> dict[str, Any]:
        """The `source` object of `audit --json`: the tables that the findings were drawn from."""
        graphs = self.report.graphs
        return {
            "path": str(self.package),
            "release": self.release,
            "gates": [
                {**asdict(gate), "standing": gate.standing.value} for gate in self.report.gates
            ],
            "past_accessors": [asdict(escape) for escape in self.report.escapes],
            "prefill_graphs": None if graphs is None else asdict(graphs),
            "index_k": {
                "stored": [asdict(price) for price in self.report.prices.stored],
                "counted": [asdict(price) for price in self.report.prices.counted],
            },
            "edits_in_use": list(self.report.edits.live),
            "edited_files": None if self.edited is None else list(self.edited),
            "unread": dict(self.report.unread),
        }


def audit_tree(folder: Path, base: Path | None, note: Note) -> TreeAudit:
    """The audit of the tree under `folder`; `base` holds the same release unedited.

    Raises:
        UsageError: no SGLang tree there, or its pools are no Python.
    """
    package = find_package(folder, "--source")
    tree = SourceTree(_texts(package))
    plain = SourceTree(_texts(find_package(base, "--source-base"))) if base is not None else None
    report = read_source(tree, plain)
    for path in (MEMORY_POOL, CONFIGURATOR):
        if path in report.unread:
            raise UsageError(
                f"{package / path} is {report.unread[path]}", "a tree that Python could import"
            )
    for path, problem in report.unread.items():
        note(f"{package / path} was left out: {problem}")
    release, edited = _release(package)
    said: dict[str, Any] = report.facts()
    if edited:
        said["edited_files"] = len(edited)
    source = str(package)
    return TreeAudit(
        package=package,
        report=report,
        facts={name: Fact(name=name, value=value, source=source) for name, value in said.items()},
        findings=source_findings(report, source),
        release=release,
        edited=edited,
    )


def find_package(folder: Path, flag: str) -> Path:
    """The package's folder under `folder`.

    Raises:
        UsageError: there is none, or one older than DeepSeek-V4.
    """
    if not folder.is_dir():
        raise UsageError(f"{flag} {folder} is no folder", "the folder that holds sglang/srt")
    for root in ROOTS:
        package = folder / root if root else folder
        if not (package / "srt").is_dir():
            continue
        missing = [path for path in (CONFIGURATOR, MEMORY_POOL) if not (package / path).is_file()]
        if missing:
            raise UsageError(
                f"the SGLang under {package} has no {missing[0]}",
                "a tree of 0.5.12 or newer: older ones have no DeepSeek-V4 configurator",
            )
        return package
    raise UsageError(
        f"{flag} {folder} is no SGLang tree: no srt, sglang/srt or python/sglang/srt in it",
        "a checkout, an unpacked wheel, or site-packages",
    )


def _texts(package: Path) -> dict[str, str]:
    """The files that matter, as text; bytes that are no UTF-8 stay visible as replacements."""
    try:
        return {
            path.relative_to(package).as_posix(): path.read_text(encoding="utf-8", errors="replace")
            for pattern in GLOBS
            for path in package.glob(pattern)
            if path.is_file()
        }
    except OSError as problem:
        raise UsageError(
            f"{problem.filename} cannot be read: {problem.strerror}", "a readable SGLang tree"
        ) from problem


def _release(package: Path) -> tuple[str | None, tuple[str, ...] | None]:
    """The release that pip says it is, and the files that differ from that release's list."""
    records = sorted(package.parent.glob("sglang-*.dist-info/RECORD"))
    if not records:
        return None, None
    edited = []
    for line in records[-1].read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, rest = line.partition(",sha256=")
        path = package.parent / name
        if not name.startswith("sglang/srt/") or not name.endswith(".py") or not path.is_file():
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest())
        if digest.rstrip(b"=").decode() != rest.partition(",")[0]:
            edited.append(name.removeprefix("sglang/"))
    return records[-1].parent.name.removeprefix("sglang-").removesuffix(".dist-info"), tuple(edited)
