"""Every verdict of a scan as a table: CSV as it goes, parquet at the end."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from dsv4doctor.errors import DoctorError, UsageError
from dsv4doctor.flows.scan_records import Judged
from dsv4doctor.report.formats.csv import harmless, require_parquet

SUFFIXES = (".csv", ".parquet")
# Rows that are written at once: a few megabytes.
_ROWS = 20_000
_COLUMNS = ("id", "source", "line", "time", "primary", "also", "corrupted", "aborted", "evidence")


class VerdictTable:
    """A file of verdicts, opened before the scan starts so that a bad path costs no work.

    CSV is appended in batches; parquet is written on leaving, since its columns want all rows.
    """

    def __init__(self, path: Path, group_by: tuple[str, ...] = ()) -> None:
        if path.suffix not in SUFFIXES:
            raise UsageError(
                f"--output {path}: no such format",
                f"name it {path.stem}.csv or {path.stem}.parquet",
            )
        if path.suffix == ".parquet":
            require_parquet("name a .csv file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        except OSError as error:
            raise DoctorError(
                f"cannot write {path}: {error.strerror}", "give another --output"
            ) from error
        self._path = path
        self._group_by = group_by
        self._rows: list[tuple[Any, ...]] = []
        self._begun = False

    def __enter__(self) -> VerdictTable:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._flush(last=True)

    def add(self, judged: Judged) -> None:
        """One row; in CSV as text that neither a terminal nor a spreadsheet obeys."""
        judgement = judged.judgement
        row = (
            judged.id,
            judged.source,
            judged.line,
            None if judged.time is None else str(judged.time),
            judgement.primary.value,
            " ".join(label.value for label in judgement.also),
            judgement.corrupted,
            judged.aborted,
            "; ".join(f"{item.where}: {item.what}" for item in judgement.evidence),
            *judged.groups,
        )
        writable = harmless if self._path.suffix == ".csv" else _encodable
        self._rows.append(tuple(writable(cell) if isinstance(cell, str) else cell for cell in row))
        if len(self._rows) >= _ROWS and self._path.suffix == ".csv":
            self._flush(last=False)

    def _flush(self, *, last: bool) -> None:
        import pandas as pd

        if not self._rows and not (last and not self._begun):
            return
        columns = [*_COLUMNS, *(f"group_{key}" for key in self._group_by)]
        frame = pd.DataFrame(self._rows, columns=columns)
        try:
            if self._path.suffix == ".parquet":
                frame.to_parquet(self._path, engine="pyarrow", index=False)
            else:
                frame.to_csv(self._path, mode="a", header=not self._begun, index=False)
        except OSError as error:
            raise DoctorError(
                f"cannot write {self._path}: {error.strerror}",
                "free some space, or give another --output",
            ) from error
        self._begun = True
        self._rows.clear()


def _encodable(cell: str) -> str:
    """Arrow's text is UTF-8, which a lone surrogate is not."""
    return cell.encode("utf-8", "backslashreplace").decode("utf-8")
