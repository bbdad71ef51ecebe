"""Plain bytes out of gzip or zstd, as far as they go: a log that is still written is cut short."""

from __future__ import annotations

import io
import zlib
from typing import IO, Any

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW = 31  # zlib's largest window, plus 16 for gzip's header
# What is lost at most where a zstd frame goes bad that began earlier: its decoder has no copy.
_READ_BYTES = {GZIP_MAGIC: 1 << 18, ZSTD_MAGIC: 1 << 14}


class Unpacker(io.RawIOBase):
    """A raw stream of what `packed` unpacks to, over all its members or frames.

    Data that breaks off or goes bad ends the stream where it does; `problem` then says so. What
    came before is handed out whole: the rest of a log is worth reading.
    """

    def __init__(self, packed: IO[bytes], magic: bytes) -> None:
        self._packed = packed
        self._magic = magic
        self._decoder = _decoder(magic)
        self._is_fresh = True
        self._ready = b""
        self._is_over = False
        self.problem: str | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._is_over:
            self._unpack_more()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _unpack_more(self) -> None:
        data = self._packed.read(_READ_BYTES[self._magic])
        if not data:
            self._is_over = True
            if not self._decoder.eof:
                self.problem = "breaks off; what was there was read"
            return
        parts = []
        spare = None
        try:
            while data:
                if self._decoder.eof:
                    self._decoder = _decoder(self._magic)
                    self._is_fresh = True
                spare = self._spare()
                parts.append(self._decoder.decompress(data))
                self._is_fresh = False
                data = self._decoder.unused_data if self._decoder.eof else b""
        except Exception as error:
            if not _is_bad_data(error):
                raise
            if spare is not None:
                parts.append(_before_damage(spare, data))
            self._is_over = True
            self.problem = f"is broken inside ({error}); what came before was read"
        self._ready = b"".join(parts)

    def _spare(self) -> Any:
        """A decoder that stands where this one does; None where there is no telling."""
        if self._magic == GZIP_MAGIC:
            return self._decoder.copy()
        return _decoder(self._magic) if self._is_fresh else None


def _before_damage(decoder: Any, data: bytes) -> bytes:
    """What `data` unpacks to before it goes bad. A decoder that fails keeps what it had unpacked in
    that call, which of a wrong checksum at the end is all; so it is given a byte at a time."""
    parts = []
    try:
        for at in range(len(data)):
            parts.append(decoder.decompress(data[at : at + 1]))
    except Exception as error:
        if not _is_bad_data(error):
            raise
    return b"".join(parts)


def _decoder(magic: bytes) -> Any:
    if magic == GZIP_MAGIC:
        return zlib.decompressobj(_GZIP_WINDOW)
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


def _is_bad_data(error: Exception) -> bool:
    """zlib's error, or zstandard's, whose class must not be imported where none is needed."""
    module = type(error).__module__.partition(".")[0]
    return isinstance(error, zlib.error) or module in {"zstd", "zstandard"}
