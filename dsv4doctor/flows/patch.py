"""`patch`: find a tree's two files, compute the fixes, print them, write them when told to."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4doctor.errors import EXIT_COULD_NOT, EXIT_DONE, EXIT_FINDINGS, DoctorError, UsageError
from dsv4doctor.finding import Evidence, Finding, Severity
from dsv4doctor.patching.fixes import FilePatch, Standing, TreeFix, fix_tree
from dsv4doctor.patching.tree import CONFIGURATOR, MEMORY_POOL, ROOTS

BACKUP_SUFFIX = ".dsv4doctor.orig"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchOutcome:
    """What the command says; `diff` is for stdout."""

    fix: TreeFix
    package: Path
    prefix: str
    written: bool
    diff: str
    findings: tuple[Finding, ...]

    def exit_code(self, *, check: bool) -> int:
        """`--check` ends with 1 when there is something to patch; an unknown tree with 3."""
        if self.fix.standing is Standing.UNRECOGNISED:
            return EXIT_COULD_NOT
        if check and self.fix.standing is Standing.APPLICABLE:
            return EXIT_FINDINGS
        return EXIT_DONE

    @property
    def verdict(self) -> str:
        return "written" if self.written else self.fix.standing.value

    def body(self) -> dict[str, Any]:
        """The contract's `patch` object."""
        return {
            "source": str(self.package),
            "applicable": self.fix.standing is Standing.APPLICABLE,
            "already_patched": self.fix.standing is Standing.ALREADY_PATCHED,
            "refused": self.fix.reason or None,
            "written": self.written,
            "files": [
                {
                    "path": self.prefix + patch.path,
                    "fixes": list(patch.fixes),
                    "backup": self.prefix + patch.path + BACKUP_SUFFIX if self.written else None,
                }
                for patch in self.fix.patches
            ],
            "diff": self.diff,
        }


def run_patch(source: Path, *, write: bool) -> PatchOutcome:
    """The fixes for the tree under `source`; applied with `write`, each file backed up first.

    Raises:
        UsageError: no SGLang tree there.
        DoctorError: a file cannot be written.
    """
    package, prefix = _find_package(source)
    files = {path: _read(package / path) for path in (CONFIGURATOR, MEMORY_POOL)}
    was_patched = any((package / (path + BACKUP_SUFFIX)).exists() for path in files)
    fix = fix_tree(files, was_patched=was_patched)
    written = write and fix.standing is Standing.APPLICABLE
    if written:
        for patch in fix.patches:
            _write(package / patch.path, patch)
    return PatchOutcome(
        fix=fix,
        package=package,
        prefix=prefix,
        written=written,
        diff="".join(patch.diff(prefix) for patch in fix.patches),
        findings=_findings(fix, prefix),
    )


def _find_package(source: Path) -> tuple[Path, str]:
    """The package's folder under `source` and its path from there, with a slash."""
    if not source.is_dir():
        raise UsageError(f"--source {source} is no folder", "the folder that holds sglang/srt")
    for root in ROOTS:
        package = source / root if root else source
        if (package / "srt").is_dir():
            missing = [p for p in (CONFIGURATOR, MEMORY_POOL) if not (package / p).is_file()]
            if missing:
                raise UsageError(
                    f"the SGLang under {package} has no {missing[0]}",
                    "a tree of 0.5.12 or newer: older ones have no DeepSeek-V4 configurator",
                )
            return package, f"{root}/" if root else ""
    raise UsageError(
        f"--source {source} is no SGLang tree: no srt, sglang/srt or python/sglang/srt in it",
        "a checkout, an unpacked wheel, or site-packages",
    )


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no text"
        raise UsageError(f"{path} cannot be read: {reason}", "a readable SGLang tree") from problem


def _write(path: Path, patch: FilePatch) -> None:
    """Replace `path` at once, after its backup is on disk; an older backup is kept."""
    backup = path.with_name(path.name + BACKUP_SUFFIX)
    try:
        if not backup.exists():
            _replace(backup, patch.before, path)
        _replace(path, patch.after, path)
    except OSError as problem:
        raise DoctorError(
            f"{path} cannot be written: {problem.strerror}", "run it as the tree's owner"
        ) from problem


def _replace(path: Path, text: str, like: Path) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, like.stat().st_mode & 0o7777)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _findings(fix: TreeFix, prefix: str) -> tuple[Finding, ...]:
    rules = {CONFIGURATOR: "PATCH_INDEX_K_PRICE", MEMORY_POOL: "PATCH_INDEX_K_GATE"}
    return tuple(
        Finding(
            rule=rules[patch.path],
            severity=Severity.ERROR,
            title="; ".join(patch.fixes),
            evidence=(Evidence(where=prefix + patch.path, what="differs from the fixed source"),),
            remedy="dsv4doctor patch --source DIR --write",
        )
        for patch in fix.patches
    )
