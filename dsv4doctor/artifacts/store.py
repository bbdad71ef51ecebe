"""The run directory: created, appended to while a run goes on, finished, loaded, resumed.

    reports/20261129T104500Z-repro-tool-calls/
      run.json        what was run: argv (redacted), versions, target, seed, plan, segments
      records.jsonl   one response a line, handed to the kernel whole before anything shows it
      findings.jsonl  one finding a line
      summary.json    the command's JSON document
      raw/            the bytes as received of corrupted or failed responses
      report.md

What survives: a record that was appended survives the death of this process (each is one `write`;
nothing is buffered here); it is forced to the disk only at the end of the run, so a power failure
may cost the last seconds. Files written whole go through a temporary file, `fsync` and a rename:
they are the old or the new, never a mixture. One process at a time may write: the open
`records.jsonl` carries an advisory lock that ends with the process.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dsv4doctor.artifacts.diskfull import told_plainly
from dsv4doctor.artifacts.jsonlines import Damage, encode, loads, read_objects, whole_length
from dsv4doctor.artifacts.manifest import (
    MANIFEST,
    NewRun,
    read_manifest,
    read_object,
    safe_name,
    segment,
    stamp,
)
from dsv4doctor.errors import DoctorError, UsageError
from dsv4doctor.redact import redact_value

RECORDS = "records.jsonl"
FINDINGS = "findings.jsonl"
SUMMARY = "summary.json"
RAW = "raw"
REPORT_MARKDOWN = "report.md"
# What a start leaves behind before anything was seen: its own log tells nobody more than the error.
LAB_LOG = "lab.log"
_OF_A_START = frozenset({MANIFEST, RECORDS, LAB_LOG})


class RunDirectory:
    """One run on disk. `create` and `resume` give a writer, `open` a reader.

    `manifest` is what `run.json` holds. `damage` counts what `records` could not read, and is
    complete once an iteration over them has ended.
    """

    def __init__(self, path: Path, manifest: dict[str, Any], *, writable: bool = False) -> None:
        self.path = path
        self.manifest = manifest
        self.damage = Damage()
        self._was_amended = False
        self._descriptor = _open_locked(path) if writable else None

    @classmethod
    def create(cls, output_dir: Path, new: NewRun, *, now: datetime | None = None) -> RunDirectory:
        """A new run directory under `output_dir`, named after the time and the run.

        Raises:
            DoctorError: if it cannot be written there.
        """
        began = now or datetime.now(UTC)
        path = _make_folder(output_dir, began, new.folder_name)
        run = cls(path, new.manifest(began), writable=True)
        run._begin_segment(new.argv, began, torn_lines=0)
        return run

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """The run at `path`, for reading: finished, killed or still going.

        Raises:
            UsageError: if `path` is no run directory, or a newer version's.
        """
        return cls(path, read_manifest(path))

    @classmethod
    def resume(
        cls, path: Path, *, argv: Sequence[str], now: datetime | None = None
    ) -> RunDirectory:
        """The run at `path`, to be finished: a torn last line is cut off, a segment is begun.

        Raises:
            UsageError: as `open`, or if another process is writing it.
        """
        run = cls(path, read_manifest(path), writable=True)
        torn = run._cut_torn_tail()
        run.manifest["ended"] = None
        run.manifest.pop("failed", None)
        run._begin_segment(argv, now or datetime.now(UTC), torn_lines=torn)
        return run

    @property
    def torn_lines(self) -> int:
        """Torn lines dropped from the records: by every resume so far, and while reading."""
        segments = self.manifest.get("segments") or ()
        dropped = sum(int(each.get("torn_lines") or 0) for each in segments)
        return dropped + self.damage.torn_lines

    def records(self) -> Iterator[dict[str, Any]]:
        """The records on disk, in the order in which they ended; damage is counted, not raised."""
        self.damage = Damage()
        path = self.path / RECORDS
        if path.exists():
            yield from read_objects(path, self.damage)

    def findings(self) -> Iterator[dict[str, Any]]:
        """The findings on disk."""
        path = self.path / FINDINGS
        if path.exists():
            yield from read_objects(path, Damage())

    def summary(self) -> dict[str, Any] | None:
        """The summary on disk; None if the run never got to one."""
        path = self.path / SUMMARY
        return read_object(path) if path.exists() else None

    def append_record(self, record: Mapping[str, Any]) -> None:
        """Add one record; when this returns, the kernel has it whole."""
        _append_line(self._writing(), encode(record) + b"\n", self.path / RECORDS)

    def save_raw(self, record_id: str, body: bytes) -> str:
        """Keep a body as it was received; the path, relative to the run directory."""
        relative = f"{RAW}/{safe_name(record_id)}.txt"
        target = self.path / relative
        with told_plainly(target):
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(body)
        return relative

    def write_findings(self, findings: Iterable[Any]) -> None:
        """Replace the findings."""
        self._write(FINDINGS, b"".join(encode(finding) + b"\n" for finding in findings))

    def write_summary(self, summary: Any) -> None:
        """Replace the summary."""
        self._write(SUMMARY, encode(summary, indent=True) + b"\n")

    def write_text(self, name: str, text: str) -> Path:
        """Replace a text file of the run, such as `report.md`; its path."""
        return self._write(name, text.encode("utf-8", "backslashreplace"))

    def amend(self, **details: Any) -> None:
        """Set keys of `run.json` that became known later, such as the target's version."""
        self._was_amended = True
        self.manifest.update(redact_value(details))
        self._write_manifest()

    def finish(self, *, now: datetime | None = None) -> None:
        """Force the records to disk, note the end of run and segment, let go of the lock."""
        descriptor = self._writing()
        with told_plainly(self.path / RECORDS):
            os.fsync(descriptor)
        ended = stamp(now or datetime.now(UTC))
        self.manifest["ended"] = ended
        self.manifest["segments"][-1]["ended"] = ended
        self._write_manifest()
        self.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While the run goes on; closed in the end. Where an error ends it, `failed` in `run.json`
        says so; a run that was ended before anything was seen leaves no directory.
        """
        try:
            yield
        except (DoctorError, KeyboardInterrupt) as problem:
            with suppress(OSError, DoctorError):  # the first error is the one to tell
                if self._is_untouched():
                    shutil.rmtree(self.path)
                else:
                    self._note_failure(str(problem) or "interrupted")
            raise
        finally:
            self.close()

    def _is_untouched(self) -> bool:
        is_resumed = len(self.manifest["segments"]) > 1
        if is_resumed or self._was_amended or (self.path / RECORDS).stat().st_size:
            return False
        return {each.name for each in self.path.iterdir()} <= _OF_A_START

    def _note_failure(self, problem: str) -> None:
        """Amend nothing else: the run has no end, and may be resumed."""
        self.manifest["failed"] = redact_value(problem)
        self._write_manifest()

    def close(self) -> None:
        """Let go of the records and their lock, without a note that the run ended."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _writing(self) -> int:
        if self._descriptor is None:
            raise ValueError(f"{self.path} is not open for writing")
        return self._descriptor

    def _begin_segment(self, argv: Sequence[str], began: datetime, *, torn_lines: int) -> None:
        self.manifest["segments"].append(segment(argv, began, torn_lines=torn_lines))
        self._write_manifest()

    def _cut_torn_tail(self) -> int:
        """Cut off a torn last line; how many were (0 or 1). A whole one gets its newline."""
        path = self.path / RECORDS
        whole = whole_length(path)
        with path.open("rb") as file:
            file.seek(whole)
            tail = file.read()
        if not tail:
            return 0
        with told_plainly(path):
            if _is_object(tail):
                os.write(self._writing(), b"\n")
                return 0
            os.ftruncate(self._writing(), whole)
        return 1

    def _write_manifest(self) -> None:
        self._write(MANIFEST, encode(self.manifest, indent=True) + b"\n")

    def _write(self, name: str, content: bytes) -> Path:
        target = self.path / name
        temporary = self.path / f".{name}.{os.getpid()}.tmp"
        with told_plainly(target):
            try:
                with temporary.open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
        return target


def _append_line(descriptor: int, line: bytes, path: Path) -> None:
    """Append `line` whole or not at all, unless the process dies in the middle."""
    before = os.fstat(descriptor).st_size
    with told_plainly(path):
        try:
            written = 0
            while written < len(line):
                written += os.write(descriptor, line[written:])
        except OSError:
            with suppress(OSError):  # the first error is the one to tell
                os.ftruncate(descriptor, before)
            raise


def _open_locked(path: Path) -> int:
    records = path / RECORDS
    with told_plainly(records):
        descriptor = os.open(records, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise UsageError(
            f"{path} is being written by another process",
            "wait until that run has ended, or stop it, and resume again",
        ) from error
    return descriptor


def _make_folder(output_dir: Path, began: datetime, name: str) -> Path:
    stem = f"{began:%Y%m%dT%H%M%SZ}-{name}"
    with told_plainly(output_dir / stem):
        output_dir.mkdir(parents=True, exist_ok=True)
        attempt = 1
        while True:
            path = output_dir / (stem if attempt == 1 else f"{stem}-{attempt}")
            try:
                path.mkdir()
                return path
            except FileExistsError:
                attempt += 1


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(loads(line), dict)
    except ValueError:
        return False
