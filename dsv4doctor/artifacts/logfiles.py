"""Log files as numbered lines: plain, gzip or zstd, from names, globs or standard input.

A source that cannot be read is a value with its reason, not an exception: one vanished file must
not cost the other ninety. Lines are handed on as bytes; what they mean is `logformats`' concern.
Memory does not grow with the file: a line longer than the limit is skipped to its end and counted.
"""

from __future__ import annotations

import glob
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from dsv4doctor.artifacts.unpack import GZIP_MAGIC, ZSTD_MAGIC, Unpacker

STDIN = "-"
# The longest line that is judged: far above any reply, far below a memory's end.
MAX_LINE_BYTES = 16 * 1024 * 1024
_READ_BYTES = 1 << 20
_SNIFF_BYTES = 8192
# Lines between two looks at how far a file has been read.
_LINES_PER_LOOK = 32
_UTF8_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True, kw_only=True)
class Line:
    """One line without its line break; `problem` is set where it was not read. Not frozen, since
    that triples what making one costs."""

    number: int
    raw: bytes
    problem: str | None = None


@dataclass(slots=True, kw_only=True)
class Source:
    """One log; `bytes_read` counts the file's own (packed) bytes as they are consumed."""

    name: str
    size: int | None = None
    bytes_read: int = 0
    problem: str | None = None
    # Which file it is, whatever its name: device and number.
    place: tuple[int, int] | None = None
    _stream: IO[bytes] | None = field(default=None, repr=False)

    def lines(self) -> Iterator[Line]:
        """The lines from the first on; ends with `problem` set when the source breaks off."""
        try:
            with self._open() as packed:
                stream = _unpacked(packed)
                if stream is None:
                    self.problem = "is binary, no log"
                    return
                yield from self._numbered(stream, packed)
                raw = getattr(stream, "raw", None)
                if isinstance(raw, Unpacker):
                    self.problem = raw.problem
        except OSError as error:
            self.problem = _reason(error)

    def is_at(self, path: Path) -> bool:
        """True if this is the file at `path`, under whatever name, standard input included."""
        try:
            if self._stream is not None:
                return os.path.samestat(os.fstat(self._stream.fileno()), path.stat())
            return path.samefile(self.name)
        except (OSError, ValueError):
            return False

    def _open(self) -> IO[bytes]:
        if self._stream is not None:
            return self._stream
        return Path(self.name).open("rb")

    def _numbered(self, stream: IO[bytes], packed: IO[bytes]) -> Iterator[Line]:
        number = 0
        while True:
            raw = stream.readline(MAX_LINE_BYTES + 1)
            # Asking a file where it stands is a system call.
            if number % _LINES_PER_LOOK == 0 or not raw:
                self.bytes_read = _position(packed, self.bytes_read + len(raw))
            if not raw:
                return
            number += 1
            if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
                _skip_line(stream)
                limit = MAX_LINE_BYTES >> 20
                yield Line(number=number, raw=b"", problem=f"longer than {limit} MiB")
                continue
            if number == 1:
                raw = raw.removeprefix(_UTF8_BOM)
            yield Line(number=number, raw=raw.rstrip(b"\r\n"))


def open_sources(names: Iterable[str]) -> list[Source]:
    """A source for every file that the names stand for, globs expanded; what cannot be read
    carries its reason. A file that is named again, or by another name, is read once."""
    sources: list[Source] = []
    for name in dict.fromkeys(names):
        if name == STDIN:
            sources.append(Source(name="<stdin>", _stream=sys.stdin.buffer))
            continue
        if not name:
            sources.append(Source(name="''", problem="is an empty name (a variable not set?)"))
            continue
        matches = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else [name]
        if Path(name).exists():
            matches = [name]
        if not matches:
            sources.append(Source(name=name, problem="matches no file"))
        sources.extend(_source(match) for match in matches)
    return list(_each_once(sources))


def _each_once(sources: Iterable[Source]) -> Iterator[Source]:
    seen: set[tuple[int, int] | str] = set()
    for source in sources:
        known = source.place or source.name
        if known not in seen:
            seen.add(known)
            yield source


def _source(name: str) -> Source:
    path = Path(name)
    try:
        status = path.stat()
    except OSError as error:
        return Source(name=name, problem=_reason(error))
    if path.is_dir():
        return Source(name=name, problem="is a directory, not a file; name its files or a glob")
    # A pipe or a device has no size worth showing.
    if not stat.S_ISREG(status.st_mode):
        return Source(name=name)
    return Source(name=name, size=status.st_size, place=(status.st_dev, status.st_ino))


def _unpacked(packed: IO[bytes]) -> IO[bytes] | None:
    """The stream of plain bytes under gzip or zstd; None for binary data."""
    buffered = packed if isinstance(packed, io.BufferedReader) else io.BufferedReader(packed)  # type: ignore[type-var]
    head = buffered.peek(_SNIFF_BYTES)[:_SNIFF_BYTES]
    stream: IO[bytes] = buffered
    for magic in (GZIP_MAGIC, ZSTD_MAGIC):
        if head.startswith(magic):
            stream = io.BufferedReader(Unpacker(buffered, magic), _READ_BYTES)
    if stream is not buffered:
        head = stream.peek(_SNIFF_BYTES)[:_SNIFF_BYTES]  # type: ignore[attr-defined]
    return None if b"\x00" in head else stream


def _skip_line(stream: IO[bytes]) -> None:
    while True:
        piece = stream.readline(_READ_BYTES)
        if not piece or piece.endswith(b"\n"):
            return


def _position(packed: IO[bytes], fallback: int) -> int:
    try:
        return packed.tell()
    except (OSError, ValueError):
        return fallback


def _reason(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "is not there"
    if isinstance(error, PermissionError):
        return "may not be read"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return f"breaks off ({error})"
